/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SINGLE_FLIGHT_H
#define PRELOAD_SINGLE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/reason.h"

struct sock;

/* A client in mode auto beside others that connect to the same peer */
struct single_flight {
	uint64_t since; /* under the stream's locks: when it began to wait; 0: it has not */
	uint64_t heard; /* the same: for the answer of the peer's host, and how long at most */
	uint64_t timeout;
	uint32_t waived; /* atomic; enum config_reason: why its Request does not go */
	int32_t asker;	 /* the process that asks; a child has a copy of the socket */
	bool knew;	 /* the peer had answered before */
	bool asks;	 /* atomic: the others wait for what comes of it */
	bool waits;	 /* atomic: for longer than an answer mostly takes */
	bool helped;	 /* atomic: somebody sees to the one who asks */
};

/* Of stream_param, with the socket */
int single_flight_may_probe(void *sock, uint64_t limit, uint64_t *when);
void single_flight_probed(void *sock);

/* It has ended without an answer: another one may ask */
void single_flight_give_up(struct sock *s);

/* Why it is plain, though it asked nobody; CONFIG_REASON_NONE: it did */
enum config_reason single_flight_waived(const struct sock *s);

/* It is open, if the stream is, and that a client's peer speaks DDP is noted; else it has ended */
void sock_settle(struct sock *s);

#endif
