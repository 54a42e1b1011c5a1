/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_JOB_JOIN_H
#define AM_JOB_JOIN_H

#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "am/job_wire.h"

#define AM_JOIN_PENDING 64		     /* connections that have not said who they are */
#define AM_JOIN_POLLED (1 + AM_JOIN_PENDING) /* descriptors */

struct am_join_pending {
	int fd;
	size_t used;
	struct am_job_hello hello;
};

/* The console's listener: a connection has joined when it has said the secret. */
struct am_join {
	int listener;
	uint64_t secret;
	struct sockaddr_in name; /* where workers find it */
	struct am_join_pending pending[AM_JOIN_PENDING];
	int num_pending;
};

/* Listens there, or at all addresses unless it is the loopback's; 0 or -errno. */
int am_join_open(struct am_join *j, uint32_t address);
/* What to wait for; returns how many. */
int am_join_poll(const struct am_join *j, struct pollfd *fds);
/*
 * The next that has come in, and what it has said, in our order of bytes: a descriptor, which is
 * the caller's then. -EAGAIN: none for now; other errors: none can, for want of something.
 */
int am_join_next(struct am_join *j, struct am_job_hello *hello);

#endif
