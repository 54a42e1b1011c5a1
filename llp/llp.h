/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seam to whoever carries bytes: an ordered stream of them, with an end. Nothing here waits;
 * llp.fd is what to poll: POLLIN, POLLOUT mean what they mean for a socket.
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
	LLP_RECORD = 0x1, /* a boundary follows: do not put later bytes into the same segment */
	LLP_MORE = 0x2,	  /* more follows at once */
};

struct llp_ops {
	const char *name;
	/* Bytes taken (> 0), -EAGAIN, or the end: -EPIPE, -ECONNRESET, -ETIMEDOUT ... */
	ssize_t (*send)(struct llp *l, const struct iovec *iov, unsigned int n, unsigned int flags);
	/* Bytes got (> 0), 0 at the peer's orderly end, -EAGAIN, or a negative errno */
	ssize_t (*recv)(struct llp *l, const struct iovec *iov, unsigned int n);
	/* The largest segment that travels in one piece now; 0: as before, it cannot be asked */
	unsigned int (*emss)(const struct llp *l);
	/* Our orderly end */
	int (*shutdown)(struct llp *l);
	/* Both directions at once, what is under way may be lost */
	void (*abort)(struct llp *l);
};

struct llp {
	const struct llp_ops *ops;
	int fd;
	/* Of the last recv that got bytes: surely no more wait, and no end; a reset may */
	bool empty;
	/* The next recv waits for bytes by this, and only the next; NULL: none does */
	struct base_recv_sleep *sleep;
};

/* TCP: a connected socket, which stays the caller's. Sets TCP_NODELAY and TCP_INQ. */
void llp_tcp_init(struct llp *l, int fd);
/* The same over a socket that was set up before, without a system call */
void llp_tcp_view(struct llp *l, int fd);
/*
 * Looks at the first bytes that wait and leaves them there: their number, 0 at the end, -EAGAIN,
 * -errno. *@ended: fewer than @n, and nothing will follow them.
 */
ssize_t llp_tcp_peek(int fd, void *p, size_t n, bool *ended);

#endif
