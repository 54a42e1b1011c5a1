/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_SELF_H
#define AM_SELF_H

#include "am/handler.h"

/* A translation of the endpoint's own name: its messages take no wire. */
static inline bool am_self_is(const struct amudp_ep *ep, const struct am_peer *peer)
{
	return peer->name.sin_port == ep->name.sin_port &&
	       peer->name.sin_addr.s_addr == ep->name.sin_addr.s_addr;
}

/* The handler runs before the call returns. */
void am_self_request(struct amudp_ep *ep, amudp_node_t dest, struct am_frame *f,
		     const int32_t *args, const void *data);
void am_self_reply(struct am_token *token, struct am_frame *f, const int32_t *args,
		   const void *data);

#endif
