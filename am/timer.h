/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_TIMER_H
#define AM_TIMER_H

#include "am/endpoint.h"

/* Sends again what is due, and returns what has waited too long. */
void am_timer_run(struct amudp_ep *ep, uint64_t now);
/* The same for messages in fragments, of which only the giving up is left: bulk.c does the rest. */
void am_timer_run_bulks(struct amudp_ep *ep, uint64_t now);
/* Looks at this request, which has just been sent, when it is due. */
void am_timer_set(struct amudp_ep *ep, const struct am_peer *peer, const struct am_tx_slot *slot,
		  uint64_t now);
/* The peer has not got the request, of which this copy was the last when it was asked. */
void am_timer_absent(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
		     uint8_t copy, uint64_t now);
/* The answer drawn by this copy is here: what that says about round trips and losses. */
void am_timer_answered(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
		       uint8_t copy, uint64_t now);

#endif
