/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_CAPTURES_PAIR_H
#define TESTS_CAPTURES_PAIR_H

#include <warp/rdma.h>

/*
 * Both ends of a connection over loopback in one thread: nothing that a scenario does runs
 * beside something else, so that what is on the wire is the same in each run. Calls end the
 * program when they fail, with the scenario's name and what failed.
 */
#define PAIR_BUF (256 * 1024u)
#define PAIR_SMALL 64u
#define PAIR_WAIT_MS 10000

struct side {
	struct warp_device *dev;
	struct warp_pd *pd, *other_pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	char *buf;					       /* PAIR_BUF octets, all rights */
	char small[2][PAIR_SMALL] __attribute__((aligned(8))); /* to be invalidated */
	struct warp_mr *mr, *small_mr[2], *local_mr, *other_mr;
	uint64_t recvs; /* that were posted */
	struct warp_wc last;
};

struct pair {
	const char *name;
	struct warp_listener *listener;
	struct side a, b; /* initiator, responder */
};

/* How to connect */
struct pair_mode {
	unsigned int a_flags, b_flags; /* enum warp_conn_flag */
	uint16_t depth;
	int mss;      /* 0: the system's */
	bool crossed; /* the initiator is who accepted TCP */
	size_t private_len;
};

void pair_fail(const struct pair *p, const char *what, int err) __attribute__((noreturn));
/* @expr < 0 ends the program */
#define PAIR_TRY(p, expr)                                \
	do {                                             \
		int try_ret_ = (expr);                   \
		if (try_ret_ < 0)                        \
			pair_fail((p), #expr, try_ret_); \
	} while (0)
#define PAIR_CHECK(p, cond)                       \
	do {                                      \
		if (!(cond))                      \
			pair_fail((p), #cond, 0); \
	} while (0)

void pair_open(struct pair *p, const char *name, struct warp_listener *listener,
	       struct warp_device *a, struct warp_device *b);
void pair_close(struct pair *p);
/* Up to the Request: p->b.conn is there, to be accepted or rejected */
void pair_request(struct pair *p, const struct pair_mode *m);
/* Both established; prints the port that names the connection in the capture */
void pair_connect(struct pair *p, const struct pair_mode *m);
/* Both end it in order */
void pair_disconnect(struct pair *p);

/* One receive of the whole buffer but the first half, or of @len octets */
void pair_recv(struct pair *p, struct side *s, uint32_t len);
/* Posts it and waits for its success */
void pair_do(struct pair *p, struct side *s, const struct warp_send_wr *wr);
/* Waits for a completion of @s while both sides move */
void pair_await(struct pair *p, struct side *s, enum warp_wc_opcode opcode);
/*
 * Posts what the other side must refuse, waits for the end of the connection and prints the
 * Terminate
 */
void pair_doom(struct pair *p, struct side *s, const struct warp_send_wr *wr);

#endif
