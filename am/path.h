/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_PATH_H
#define AM_PATH_H

#include "am/endpoint.h"

/* One more path: by the driver that the environment asks for, or else by UDP. 0 or -errno. */
int am_path_add(struct amudp_ep *ep, uint32_t ip, uint32_t receive_bytes);
/* Opens the paths that AMUDP_PATHS names and this machine has. */
void am_path_open_all(struct amudp_ep *ep);

/* This process is one of many: what its endpoints miss is told for all at once, or not at all. */
extern bool am_path_shared;

/* Which addresses of PATHS an endpoint's machine has not: bit n is the n-th one of the list. */
struct am_path_missed {
	uint64_t list; /* the same number for the same list */
	uint64_t bits;
};
struct am_path_missed am_path_missed(const struct amudp_ep *ep);
/*
 * Warns of the addresses of our list that no machine has, of n endpoints' machines: the first
 * endpoint of those that have the same list does so.
 */
void am_path_missed_tell(const struct am_path_missed *all, int n, int ours);
/* Goes over to another interface when the link of the one in use is down. */
void am_path_check(struct amudp_ep *ep, uint64_t now);
/* All peers know where we are, or have had their time: the place that was left is closed. */
void am_path_left(struct amudp_ep *ep);

#endif
