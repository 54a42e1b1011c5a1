/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_BULK_H
#define AM_BULK_H

#include "am/endpoint.h"

/* Starts sending a message of more than one fragment; the pump does the rest. 0 or -ENOMEM. */
int am_bulk_create(struct am_bulk **out, struct am_peer *peer, struct am_message *message,
		   bool is_reply, uint16_t slot, uint16_t seq);
void am_bulk_destroy(struct am_bulk *bulk);

/* Sends what the windows allow and what is due again. */
void am_bulk_pump(struct amudp_ep *ep, uint64_t now);
/* When the pump has to be called next for it. */
uint64_t am_bulk_deadline(const struct am_bulk *bulk);
/* What a SACK says; true when all fragments are there. */
bool am_bulk_sack(struct am_bulk *bulk, const struct am_frame *f, uint64_t now);

#endif
