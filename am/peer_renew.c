/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that has been replaced or restarted: another process has its name, and knows nothing of
 * what the one before it has said and heard.
 */
#include "am/bulk.h"
#include "am/endpoint.h"
#include "am/gather.h"
#include "am/move.h"
#include "am/queue.h"
#include "am/slot.h"
#include "base/bits.h"

static void rx_slots_forget(struct am_peer *peer)
{
	struct am_rx_slot *rx;
	int i;

	for (i = 0; peer->rx && i < peer->ep->depth; i++) {
		rx = &peer->rx[i];
		am_bulk_destroy(rx->bulk);
		am_gather_destroy(rx->gather);
		am_queue_retire(peer->ep, &rx->reply);
		rx->bulk = NULL;
		rx->gather = NULL;
		/* a handler that runs now must not find its slot taken by another */
		if (rx->state == AM_RX_RUNNING)
			rx->orphan = true;
		else
			memset(rx, 0, sizeof(*rx));
	}
}

static void tx_slot_renew(struct am_peer *peer, struct am_tx_slot *slot, uint64_t now)
{
	am_gather_destroy(slot->gather);
	slot->gather = NULL;
	slot->received = false;
	if (slot->state == AM_TX_REFUSING) {
		am_slot_release(peer->ep, peer, slot);
		return;
	}
	am_bulk_destroy(slot->bulk);
	slot->bulk = NULL;
	am_slot_send(peer->ep, peer, slot, now);
}

void am_peer_renew(struct am_peer *peer, uint32_t incarnation)
{
	struct base_list again, *node;
	bool first = peer->incarnation == 0;

	peer->incarnation = incarnation;
	peer->move_serial = 0;
	peer->takes_unsealed = false;
	if (first)
		return;
	am_move_renewed(peer->ep, peer);
	rx_slots_forget(peer);
	base_list_init(&again);
	while ((node = base_list_pop_front(&peer->waiting)))
		base_list_push_back(&again, node);
	while ((node = base_list_pop_front(&again))) {
		base_list_push_back(&peer->waiting, node);
		tx_slot_renew(peer, base_list_entry(node, struct am_tx_slot, node),
			      peer->ep->last_poll);
	}
}
