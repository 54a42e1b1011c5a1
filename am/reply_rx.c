/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers coming in: docs/amudp-wire.md, section 5.
 *
 * An answer counts only while its slot waits for exactly that sequence number. The slot is free
 * before the reply's handler runs, for the reply has come. A reply that cannot be run (no such
 * handler, outside the segment) is refused, and the slot is kept until the replier has
 * acknowledged that.
 */
#include "am/bulk.h"
#include "am/gather.h"
#include "am/request.h"
#include "am/slot.h"
#include "am/timer.h"
#include "base/bits.h"
#include "base/clock.h"

static struct am_tx_slot *slot_at(struct amudp_ep *ep, struct am_peer *peer,
				  const struct am_frame *f)
{
	return peer->tx && f->slot < ep->depth ? &peer->tx[f->slot] : NULL;
}

static bool is_awaited(const struct am_tx_slot *slot, const struct am_frame *f)
{
	return slot && slot->state == AM_TX_WAITING && slot->seq == f->seq;
}

static void latency_count(struct amudp_ep *ep, const struct am_tx_slot *slot)
{
	uint64_t us = (ep->last_poll - slot->first_sent) / BASE_NS_PER_US;

	if (ep->last_poll < slot->first_sent)
		us = 0;
	ep->stats.RequestMinLatency = base_min(ep->stats.RequestMinLatency, us);
	ep->stats.RequestMaxLatency = base_max(ep->stats.RequestMaxLatency, us);
	ep->stats.RequestSumLatency += us;
	ep->xstats.LatencySamples++;
}

static void reply_refuse(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			 int reason)
{
	am_bulk_destroy(slot->bulk);
	am_gather_destroy(slot->gather);
	slot->bulk = NULL;
	slot->gather = NULL;
	slot->state = AM_TX_REFUSING;
	slot->reason = (uint8_t)reason;
	slot->copy = 0;
	slot->first_sent = ep->last_poll;
	am_slot_refuse(ep, peer, slot);
}

static void run(struct amudp_ep *ep, struct am_peer *peer, amudp_node_t dest,
		const struct am_frame *f, uint8_t *buffer)
{
	struct am_token token = { .ep = ep,
				  .peer = peer,
				  .tag = f->tag,
				  .source = peer->name,
				  .source_index = (int)dest };
	struct am_args args;

	am_args_get(&args, f);
	am_handler_run(&token, f, &args, buffer);
}

static void slot_answered(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			  const struct am_frame *f)
{
	latency_count(ep, slot);
	am_timer_answered(ep, peer, slot, f->copy, ep->last_poll);
	am_slot_release(ep, peer, slot);
	ep->messages++;
}

static void take_whole(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
		       const struct am_frame *f)
{
	uint8_t *buffer = (uint8_t *)f->data;
	amudp_node_t dest = slot->dest;

	if (am_frame_category(f) == amudp_Long) {
		buffer = am_segment_at(ep, f->offset);
		if (f->nbytes)
			memcpy(buffer, f->data, f->nbytes);
	}
	slot_answered(ep, peer, slot, f);
	if (!(f->flags & AM_MESSAGE_AUTO))
		run(ep, peer, dest, f, buffer);
}

static void take_fragment(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			  const struct am_frame *f)
{
	amudp_node_t dest = slot->dest;
	struct am_gather *g;
	int ret;

	if (!slot->gather && am_gather_create(&slot->gather, peer, f, true) < 0)
		return; /* without memory now: as if it had been lost */
	if (!slot->received)
		am_timer_answered(ep, peer, slot, f->copy, ep->last_poll);
	am_bulk_destroy(slot->bulk);
	slot->bulk = NULL;
	slot->received = true; /* whatever the reply is made of, the request has been taken */
	slot->last_sent = ep->last_poll;
	g = slot->gather;
	ret = am_gather_add(g, f);
	if (ret < 0)
		reply_refuse(ep, peer, slot, EBADARGS);
	if (ret <= 0)
		return;
	slot->gather = NULL;
	base_list_remove(&g->node);
	am_gather_sack_all(ep, peer, f, true);
	slot_answered(ep, peer, slot, f);
	run(ep, peer, dest, f, g->buffer ? g->buffer : am_segment_at(ep, f->offset));
	am_gather_destroy(g);
}

/* Not awaited. A fragment of a reply that is here already wants to be told so. */
static void stray_receive(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			  const struct am_frame *f)
{
	ep->stats.OutOfOrderReplies++;
	if (!slot || (int16_t)(f->seq - slot->seq) > 0)
		return;
	if (slot->state == AM_TX_REFUSING && slot->seq == f->seq)
		am_slot_refuse(ep, peer, slot);
	else if (f->fragment_size)
		am_gather_sack_all(ep, peer, f, true);
}

void am_reply_receive(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_tx_slot *slot = slot_at(ep, peer, f);
	int reason;

	ep->stats.RepliesReceived[am_frame_category(f)]++;
	if (!is_awaited(slot, f)) {
		stray_receive(ep, peer, slot, f);
		return;
	}
	reason = (f->flags & AM_MESSAGE_AUTO) ? 0 : am_frame_refusal(ep, f);
	if (reason)
		reply_refuse(ep, peer, slot, reason);
	else if (f->fragment_size)
		take_fragment(ep, peer, slot, f);
	else
		take_whole(ep, peer, slot, f);
}

/* The peer has fragments of a request of ours, or all of it. */
void am_reply_receive_sack(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_tx_slot *slot = slot_at(ep, peer, f);

	if (!is_awaited(slot, f))
		return;
	if (slot->bulk) {
		if (!am_bulk_sack(slot->bulk, f, ep->last_poll))
			return;
		am_bulk_destroy(slot->bulk);
		slot->bulk = NULL;
	}
	if (!f->total) {
		slot->received = true;
		slot->last_sent = ep->last_poll;
	}
}

void am_reply_receive_absent(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_tx_slot *slot = slot_at(ep, peer, f);

	if (is_awaited(slot, f))
		am_timer_absent(ep, peer, slot, f->flags, ep->last_poll);
}

void am_reply_receive_refusal(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f)
{
	struct am_tx_slot *slot = slot_at(ep, peer, f);

	if (!is_awaited(slot, f))
		return;
	am_slot_return(ep, peer, slot, f->reason);
}

void am_reply_receive_refuse_ack(struct amudp_ep *ep, struct am_peer *peer,
				 const struct am_frame *f)
{
	struct am_tx_slot *slot = slot_at(ep, peer, f);

	if (slot && slot->state == AM_TX_REFUSING && slot->seq == f->seq)
		am_slot_release(ep, peer, slot);
}
