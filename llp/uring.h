/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A carrier by io_uring: one system call receives for many TCP sockets.
 */
#ifndef LLP_URING_H
#define LLP_URING_H

#include "llp/llp.h"

/* What one call receives for at most */
#define LLP_URING_BATCH 32u

/* A ring. One thread at a time uses it, whichever; a forked child's calls do nothing */
struct llp_uring;

/* A connection over TCP of which llp_uring_receive() may have received something already */
struct llp_uring_conn {
	struct llp llp;
	struct llp_ops ops;
	const struct llp_ops *tcp;
	ssize_t got; /* what the last recv() returned */
	bool there;  /* no: what the next one returns */
};

/* Where a connection's next recv() puts its bytes: that call must name the same place */
struct llp_uring_want {
	struct llp_uring_conn *conn;
	struct iovec iov;
};

/* 0; -ENOSYS, -ENOPKG, -EPERM, ...: there is no io_uring here, which is logged with the cause */
int llp_uring_create(struct llp_uring **out);
void llp_uring_destroy(struct llp_uring *u);

/* As llp_tcp_init() */
void llp_uring_conn_init(struct llp_uring_conn *c, int fd);

/*
 * Receives for all of these, and waits for none. Where it does not do that for one of them, the
 * connection's recv() asks the socket as ever
 */
void llp_uring_receive(struct llp_uring *u, const struct llp_uring_want *w, unsigned int n);

#endif
