/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_GATHER_H
#define AM_GATHER_H

#include "am/endpoint.h"

/* For the message that this fragment is part of. 0 or -ENOMEM. */
int am_gather_create(struct am_gather **out, struct am_peer *peer, const struct am_frame *f,
		     bool is_reply);
void am_gather_destroy(struct am_gather *g);

/*
 * Puts the fragment where it belongs; a long message's place is the segment, which the caller
 * has checked. 1 when it was the last one missing, 0 when more are to come, -EPROTO when it is
 * of another message than those before.
 */
int am_gather_add(struct am_gather *g, const struct am_frame *f);
/* Queues a SACK for each message that fragments came for since the last time. */
void am_gather_flush(struct amudp_ep *ep);
/* The same, if they are worth one by now, or will not wait for more. */
void am_gather_run(struct amudp_ep *ep, uint64_t now);
/* Queues the SACK that says all is there. */
void am_gather_sack_all(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
			bool is_reply);

#endif
