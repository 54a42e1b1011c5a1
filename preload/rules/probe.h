/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PROBE_H
#define PRELOAD_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/clock.h"

/*
 * What this process, and those that it has forked, know of peers: whether there was an answer when
 * they were sent a Request. No lock, no memory; safe in a signal handler and after fork(). It may
 * forget.
 */
enum probe_answer {
	PROBE_UNKNOWN,
	PROBE_PLAIN, /* none, or not the right one */
	PROBE_DDP,
	PROBE_ASKED, /* somebody waits for its answer */
};

/* How long an answer is waited for: so long or so many round trips, whichever is more */
#define PROBE_LIMIT (50 * BASE_NS_PER_MS)
#define PROBE_RTTS 4

/* When the process starts: what is known is its children's, too */
void probe_init(void);

/* How long an answer may be kept */
#define PROBE_LIFE_MAX (86400 * BASE_NS_PER_S)

/* Kept for @life, which is counted in whole seconds; @now: base/clock.h */
void probe_note(const struct sockaddr *peer, socklen_t len, enum probe_answer answer, uint64_t life,
		uint64_t now);
/* What stands for an address and port, one of IPv4 for the same mapped to IPv6; 0: none of IP */
uint64_t probe_hash(const struct sockaddr *addr, socklen_t len);
enum probe_answer probe_known(const struct sockaddr *peer, socklen_t len, uint64_t now);
/*
 * As probe_known(), for who is about to send a Request. PROBE_UNKNOWN is said to one: the others
 * are told PROBE_ASKED, until the answer is noted or was due by @limit.
 */
enum probe_answer probe_flight(const struct sockaddr *peer, socklen_t len, uint64_t limit,
			       uint64_t now);
/* The one who was told PROBE_UNKNOWN has given up: the next one is */
void probe_flight_end(const struct sockaddr *peer, socklen_t len, uint64_t now);
/* A peer that answered before has not answered now: nothing is known of it */
void probe_doubt(const struct sockaddr *peer, socklen_t len, uint64_t now);

#endif
