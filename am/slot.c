/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requester's half of a slot, once a request has taken it: sent, sent again, answered or
 * given up. docs/amudp-wire.md, section 5.
 *
 * The slot is released by the answer, or by giving up; either happens once, for the sequence
 * number moves on with the next use.
 */
#include "am/slot.h"

#include "am/bulk.h"
#include "am/gather.h"
#include "am/handler.h"
#include "am/queue.h"
#include "base/clock.h"

void am_slot_send(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot, uint64_t now)
{
	struct am_message *m = &slot->message;

	slot->before_sent = slot->last_sent;
	slot->last_sent = now;
	slot->ask_at = base_deadline(now, am_rtt_late(&peer->rtt, peer->sleeps));
	am_frame_patch_copy(m->head, slot->copy);
	base_list_remove(&slot->node);
	base_list_push_back(&peer->waiting, &slot->node);
	if (!m->fragment_size)
		am_queue_message(ep, peer, m->head, m->head_len, m->data, m->length);
	else if (!slot->bulk &&
		 am_bulk_create(&slot->bulk, peer, m, false, slot->index, slot->seq) < 0)
		return; /* without memory now; the time-out tries again */
}

void am_slot_refuse(struct amudp_ep *ep, struct am_peer *peer, const struct am_tx_slot *slot)
{
	struct am_frame f = { .type = AM_FRAME_REFUSE,
			      .flags = AM_FRAME_OF_REPLY,
			      .slot = slot->index,
			      .seq = slot->seq,
			      .reason = slot->reason };
	uint8_t p[16];

	am_queue_frame(ep, peer, p, (uint32_t)am_frame_put_refuse(p, &f));
}

void am_slot_release(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot)
{
	am_bulk_destroy(slot->bulk);
	am_gather_destroy(slot->gather);
	slot->bulk = NULL;
	slot->gather = NULL;
	am_queue_retire(ep, &slot->message);
	peer->inflight -= slot->cost;
	ep->outstanding--;
	slot->state = AM_TX_FREE;
	base_list_remove(&slot->node);
	/* the last one used is warm in the cache */
	base_list_push_front(&peer->free, &slot->node);
	if (base_list_empty(&peer->waiting))
		base_list_remove(&peer->active);
}

void am_slot_return(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot, int reason)
{
	struct am_token token = { .ep = ep,
				  .peer = peer,
				  .source = peer->name,
				  .source_index = (int)slot->dest,
				  .tag = ep->translations[slot->dest].tag };
	int opcode = slot->message.opcode;

	am_slot_release(ep, peer, slot);
	am_handler_return(&token, reason, opcode);
}
