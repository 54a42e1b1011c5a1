/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef RDMAP_TERMINATE_H
#define RDMAP_TERMINATE_H

#include "rdmap/state.h"

/* The segment that is to blame, as a Terminate returns it */
struct rdmap_culprit {
	const __u8 *ddp; /* its DDP header; NULL: there is none */
	__u8 ddp_len;
	__u16 seg_len;			   /* of its ULPDU */
	const struct rdmap_read_req *read; /* NULL: not a Read Request */
};

/* The stream is FAULTED with @fault, unless it was ended before. The first fault stays. */
void rdmap_fault_at(struct rdmap_stream *s, enum iwarp_fault fault, const struct rdmap_culprit *at);

/* The DDP payload of a Terminate as RFC 5040 wants it; returns its octets, at most RDMAP_HDR_MAX */
size_t rdmap_term_put(const struct rdmap_term_info *t, __u8 *out);

/*
 * Takes a Terminate of any size apart. @starting: nothing else has come from this peer, so that
 * it can only be about start-up; decides what a Terminate without headers means that reads as
 * valid in either form.
 */
void rdmap_term_get(struct rdmap_term_info *t, const __u8 *p, size_t n, bool starting);

#endif
