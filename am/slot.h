/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_SLOT_H
#define AM_SLOT_H

#include "am/endpoint.h"

/* Sends the request of the slot, for the first time or again. */
void am_slot_send(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot, uint64_t now);
/* Says that its reply cannot be taken, until the peer knows. */
void am_slot_refuse(struct amudp_ep *ep, struct am_peer *peer, const struct am_tx_slot *slot);
/* An answer is there: the slot is free. */
void am_slot_release(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot);
/* None will come: the slot is free, and handler 0 runs with the reason. */
void am_slot_return(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot, int reason);

#endif
