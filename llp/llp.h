/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seam to whoever carries octets: an ordered stream of them, with an end. Nothing here waits;
 * wait_fd is what to poll.
 */
#ifndef LLP_LLP_H
#define LLP_LLP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct llp;
struct base_recv_sleep;

enum llp_send_flag {
	LLP_RECORD = 0x1, /* a boundary follows: do not put later octets into the same segment */
	LLP_MORE = 0x2,	  /* more follows at once */
};

struct llp_ops {
	const char *name;
	/* Octets taken (> 0), -EAGAIN, or the end: -EPIPE, -ECONNRESET, -ETIMEDOUT ... */
	ssize_t (*send)(struct llp *l, const struct iovec *iov, unsigned int n, unsigned int flags);
	/* Octets got (> 0), 0 at the peer's orderly end, -EAGAIN, or a negative errno */
	ssize_t (*recv)(struct llp *l, const struct iovec *iov, unsigned int n);
	/* For poll: POLLIN, POLLOUT mean what they mean for a socket */
	int (*wait_fd)(const struct llp *l);
	/* The largest segment that travels in one piece now; 0: as before, it cannot be asked */
	unsigned int (*emss)(const struct llp *l);
	/*
	 * Octets that were taken and that the peer's transport has not acknowledged; 0 when not
	 * known
	 */
	unsigned int (*unacked)(const struct llp *l);
	/* Our orderly end */
	int (*shutdown)(struct llp *l);
	/* Both directions at once, what is under way may be lost */
	void (*abort)(struct llp *l);
};

struct llp {
	const struct llp_ops *ops;
	int fd;
	/* Of the last recv that got octets: surely no more wait, and no end; a reset may */
	bool empty;
	/* The next recv waits for bytes by this, and only the next; NULL: none does */
	struct base_recv_sleep *sleep;
};

/* TCP: a connected socket, which stays the caller's. Sets TCP_NODELAY and TCP_INQ. */
void llp_tcp_init(struct llp *l, int fd);
/* The same over a socket that was set up before, without a system call */
void llp_tcp_view(struct llp *l, int fd);
/*
 * Looks at the first octets that wait and leaves them there: their number, 0 at the end, -EAGAIN,
 * -errno. *@ended: fewer than @n, and nothing will follow them.
 */
ssize_t llp_tcp_peek(int fd, void *p, size_t n, bool *ended);

/*
 * A pair in memory, for tests: what one end sends the other receives, after what the tampering
 * below does to it
 */
struct llp_mem;

struct llp_mem_tamper {
	size_t cut;  /* a recv returns at most so many octets; 0: as many as there are */
	size_t take; /* a send takes at most so many octets; 0: all that fit */
	/* so many recv calls answer -EAGAIN before each one that gives octets */
	unsigned int delay;
	/* with flip_mask != 0: the octet at this offset of the direction is XORed */
	unsigned long flip_at;
	unsigned char flip_mask;
};

/*
 * Both ends; each direction holds @capacity octets. wait_fd is an eventfd that is readable when
 * input or an end is there.
 */
int llp_mem_pair(size_t capacity, struct llp **a, struct llp **b);
/*
 * What happens to octets that @l sends from now on; the offset of flip_at counts from the first
 * octet ever sent
 */
void llp_mem_tamper(struct llp *l, const struct llp_mem_tamper *t);
void llp_mem_set_emss(struct llp *l, unsigned int emss);
void llp_mem_destroy(struct llp *a, struct llp *b);

#endif
