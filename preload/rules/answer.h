/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ANSWER_H
#define PRELOAD_ANSWER_H

#include <netinet/in.h>
#include <stdint.h>

#include "base/siphash.h"
#include "preload/rules/answer_rate.h"

/*
 * Answers to those that ask whether there is a listener for DDP on this host: for all listeners of
 * the network namespace, whoever has them. No lock, no memory, no sleep; whoever calls it waits.
 */
struct answer {
	int fd;
	sa_family_t family;
	in_port_t port; /* 0: it has none yet */
	struct base_siphash_key key;
	struct answer_rate rate;
};

#define ANSWER_INIT      \
	{                \
		.fd = -1 \
	}

/*
 * The socket, without a port. It takes the lowest descriptor for a moment, so it is for a thread of
 * the program's own to make: one that runs beside may count on that number. 0 or -errno
 */
int answer_make(struct answer *a);
/* The port, and the socket if there is none yet. 0; -EADDRINUSE: another process answers; -errno */
int answer_open(struct answer *a, in_port_t port);
void answer_close(struct answer *a);
/* Answers what has come. When to look again: BASE_NEVER, when more comes, or later than that */
uint64_t answer_serve(struct answer *a);

#endif
