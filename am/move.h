/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_MOVE_H
#define AM_MOVE_H

#include "am/endpoint.h"

/* The peer says that it is reached where this came from. */
void am_move_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
		     const struct sockaddr_in *from);
void am_move_receive_ack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f);

/* Tells every peer that this endpoint is reached where its packets now come from. */
void am_move_announce(struct amudp_ep *ep);
/* It is time: tells those again that have not acknowledged. True when that is over. */
bool am_move_run(struct amudp_ep *ep, uint64_t now);
/* A message to this peer goes again: perhaps since the peer does not know our path. */
void am_move_repeat(struct amudp_ep *ep, struct am_peer *peer);
/* The peer is a new one, which knows us by our name only. */
void am_move_renewed(struct amudp_ep *ep, struct am_peer *peer);

#endif
