/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests that wait too long: docs/amudp-wire.md, section 7.
 *
 * Three things make a request go again. The peer says that it is not there: it was asked, for the
 * answer was late. Or an answer to one that was sent clearly later: then it is lost, for a peer
 * takes requests in the order they come. Or the time-out, with only the oldest request of a peer
 * sent as a probe: when the peer merely lost its processor, all the others would be sent in vain.
 * Questions and time-outs spend from the budget of rtt.c, and what proves needless does.
 *
 * A request that the peer has does not go again: the peer is asked for the answer.
 */
#include "am/timer.h"

#include "am/bulk.h"
#include "am/move.h"
#include "am/queue.h"
#include "am/slot.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#define WORKING_NS (20 * BASE_NS_PER_MS) /* time-out once the peer said it has the request */
#define READ_NS BASE_NS_PER_S		 /* after which whatever had come has been read */
#define REORDER_NS (10 * BASE_NS_PER_US)
#define COPY_MAX (AM_COPY_ASKED - 1)
#define ASKED_MAX 4 /* of one request */

static bool is_received(const struct am_tx_slot *slot)
{
	return slot->received && slot->state == AM_TX_WAITING;
}

static uint64_t slot_due(const struct amudp_ep *ep, const struct am_tx_slot *slot, uint64_t rto)
{
	uint64_t ns = slot->received ? base_max(rto, WORKING_NS) : rto;
	unsigned int n = is_received(slot) ? slot->asked : slot->copy;

	return slot->last_sent + am_rtt_backoff(ns, n, ep->options.backoff);
}

static bool is_overtaken(const struct am_peer *peer, const struct am_tx_slot *slot)
{
	return !slot->message.fragment_size && !slot->received && slot->state == AM_TX_WAITING &&
	       slot->last_sent + peer->rtt.srtt / 2 + REORDER_NS < peer->newest_answered;
}

static bool slot_timed_out(const struct amudp_ep *ep, const struct am_tx_slot *slot, uint64_t now)
{
	return ep->options.timeout_max != BASE_NEVER &&
	       now >= slot->first_sent + ep->options.timeout_max;
}

static void slot_give_up(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot)
{
	if (slot->state == AM_TX_REFUSING)
		am_slot_release(ep, peer, slot);
	else
		am_slot_return(ep, peer, slot, ECONGESTION);
}

/* The request, or its refusal of the reply, once more. */
static void copy_send(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
		      uint64_t now)
{
	slot->copy = base_min(slot->copy + 1, COPY_MAX);
	if (slot->state == AM_TX_REFUSING) {
		slot->last_sent = now;
		am_slot_refuse(ep, peer, slot);
		return;
	}
	am_move_repeat(ep, peer);
	ep->stats.RequestsRetransmitted[slot->message.category]++;
	am_slot_send(ep, peer, slot, now);
}

/* Sends it again if the budget allows; returns when to look at it next. */
static uint64_t slot_again(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			   uint64_t rto, uint64_t now)
{
	uint64_t delayed = slot_due(ep, slot, base_max(rto, ep->retransmit.delay));
	bool paid = am_retransmit_spend(&ep->retransmit);

	if (!is_overtaken(peer, slot))
		delayed = base_max(delayed, ep->retransmit.probe_at);
	if (!paid && now < delayed)
		return delayed;
	slot->spent += paid;
	/* without a budget, one copy tells as much as one of each request */
	peer->probe_at = now + (paid ? rto : ep->retransmit.delay);
	if (!paid)
		ep->retransmit.probe_at = peer->probe_at;
	copy_send(ep, peer, slot, now);
	return now + rto;
}

static void question_queue(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot)
{
	struct am_frame f = {
		.type = AM_FRAME_ASK, .flags = slot->copy, .slot = slot->index, .seq = slot->seq
	};
	uint8_t p[8];

	slot->asked = base_min(slot->asked + 1, UINT8_MAX);
	ep->xstats.QuestionsSent++;
	am_queue_frame(ep, peer, p, (uint32_t)am_frame_put_bare(p, &f));
}

/*
 * Asks for the answer to a request that the peer has; returns when to look again. It may be here,
 * and not read: when we lost the processor, all answers look late. One question at a time is enough
 * for a peer, until an answer proves to have been lost.
 */
static uint64_t answer_ask(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
			   uint64_t rto, uint64_t now)
{
	uint64_t due = slot_due(ep, slot, rto);

	if (ep->drained < due && now < due + READ_NS)
		return now + 1;
	if (now < peer->answer_at)
		return peer->answer_at;
	peer->answer_at = now + WORKING_NS;
	am_move_repeat(peer->ep, peer);
	slot->last_sent = now;
	base_list_remove(&slot->node);
	base_list_push_back(&peer->waiting, &slot->node);
	question_queue(ep, peer, slot);
	return slot_due(ep, slot, rto);
}

static uint64_t resend(struct amudp_ep *ep, struct am_peer *peer, uint64_t now)
{
	uint64_t rto = am_rtt_timeout(&peer->rtt, peer->sleeps, ep->options.timeout_initial);
	uint64_t due, next = BASE_NEVER;
	struct base_list *node, *following;
	struct am_tx_slot *slot;

	base_list_foreach(node, following, &peer->waiting) {
		slot = base_list_entry(node, struct am_tx_slot, node);
		if (slot->bulk)
			continue;
		due = is_overtaken(peer, slot) ? now : slot_due(ep, slot, rto);
		if (due > now) {
			next = base_min(next, due);
			if (slot->last_sent + rto > now)
				break; /* the rest were sent later still */
			continue;
		}
		if (slot_timed_out(ep, slot, now)) {
			slot_give_up(ep, peer, slot);
			return now; /* its handler may have changed the list */
		}
		if (is_received(slot)) {
			next = base_min(next, answer_ask(ep, peer, slot, rto, now));
			continue;
		}
		if (now < peer->probe_at && !is_overtaken(peer, slot))
			return base_min(next, peer->probe_at);
		due = slot_again(ep, peer, slot, rto, now);
		next = base_min(next, due);
	}
	return next;
}

/*
 * Asks for the answer to the oldest request, when it is late; returns when to look again. A
 * question costs the peer next to nothing, so it may come long before the time-out.
 */
static uint64_t inquire(struct amudp_ep *ep, struct am_peer *peer, uint64_t now)
{
	struct base_list *node = base_list_first(&peer->waiting);
	struct am_tx_slot *slot = node ? base_list_entry(node, struct am_tx_slot, node) : NULL;

	if (!slot || slot->state != AM_TX_WAITING || slot->received || peer->sleeps ||
	    slot->message.fragment_size || slot->asked == ASKED_MAX)
		return BASE_NEVER;
	if (slot->ask_at > now)
		return slot->ask_at;
	if (!am_retransmit_ask(&ep->retransmit))
		return BASE_NEVER;
	question_queue(ep, peer, slot);
	slot->spent++;
	slot->ask_at = now + slot->asked * am_rtt_late(&peer->rtt, false);
	return slot->ask_at;
}

static uint64_t peer_run(struct amudp_ep *ep, struct am_peer *peer, uint64_t now)
{
	uint64_t due = resend(ep, peer, now);

	return due > now ? base_min(due, inquire(ep, peer, now)) : due;
}

void am_timer_set(struct amudp_ep *ep, const struct am_peer *peer, const struct am_tx_slot *slot,
		  uint64_t now)
{
	uint64_t rto = am_rtt_timeout(&peer->rtt, peer->sleeps, ep->options.timeout_initial);

	ep->next_deadline = base_min(ep->next_deadline, base_min(now + rto, slot->ask_at));
}

void am_timer_run(struct amudp_ep *ep, uint64_t now)
{
	struct base_list *node, *next;

	ep->next_deadline = BASE_NEVER;
	base_list_foreach(node, next, &ep->active) {
		struct am_peer *peer = base_list_entry(node, struct am_peer, active);
		uint64_t due = peer_run(ep, peer, now);

		ep->next_deadline = base_min(ep->next_deadline, due);
		if (due <= now)
			return;
	}
}

/* No SACK brought anything new for too long. */
static bool bulk_timed_out(const struct am_bulk *b, uint64_t now)
{
	uint64_t max = b->peer->ep->options.timeout_max;

	return max != BASE_NEVER && now > b->started + max;
}

static void bulk_give_up(struct amudp_ep *ep, struct am_bulk *b)
{
	struct am_peer *peer = b->peer;

	if (b->is_reply) {
		struct am_rx_slot *rx = &peer->rx[b->slot];

		base_warn("am: a bulk reply was given up: its peer does not answer");
		rx->bulk = NULL;
		am_bulk_destroy(b);
		am_queue_retire(ep, &rx->reply);
		return;
	}
	am_slot_return(ep, peer, &peer->tx[b->slot], ECONGESTION);
}

void am_timer_run_bulks(struct amudp_ep *ep, uint64_t now)
{
	struct base_list *node, *next;
	struct am_bulk *b;

	base_list_foreach(node, next, &ep->bulks) {
		b = base_list_entry(node, struct am_bulk, node);
		if (bulk_timed_out(b, now)) {
			bulk_give_up(ep, b);
			return; /* its handler may have changed the list */
		}
	}
}

static void overtaken_check(struct amudp_ep *ep, struct am_peer *peer)
{
	struct base_list *node = base_list_first(&peer->waiting);

	if (node && is_overtaken(peer, base_list_entry(node, struct am_tx_slot, node)))
		ep->next_deadline = 0;
}

/*
 * What the request has cost was needed, but for so many copies. Where something is lost more will
 * be: one is earned besides.
 */
static void spent_refund(struct amudp_ep *ep, struct am_tx_slot *slot, unsigned int needless)
{
	unsigned int n = slot->spent - base_min(slot->spent, needless);

	slot->spent -= n;
	am_retransmit_refund(&ep->retransmit, n + 1);
}

/* Copies that the peer seemed to want: they cost what others cost after all. */
static void drawn_spend(struct amudp_ep *ep, const struct am_tx_slot *slot, unsigned int needless)
{
	for (needless = base_min(needless, slot->drawn); needless; needless--)
		am_retransmit_spend(&ep->retransmit);
}

void am_timer_absent(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
		     uint8_t copy, uint64_t now)
{
	if (slot->message.fragment_size || slot->received || !slot->asked)
		return;
	/* of another copy, which has gone since, nothing is known */
	if (copy != slot->copy || copy == COPY_MAX)
		return;
	if (slot->spent) {
		slot->spent--;
		am_retransmit_refund(&ep->retransmit, 1);
	}
	slot->drawn++;
	copy_send(ep, peer, slot, now);
	am_timer_set(ep, peer, slot, now);
}

void am_timer_answered(struct amudp_ep *ep, struct am_peer *peer, struct am_tx_slot *slot,
		       uint8_t copy, uint64_t now)
{
	unsigned int needless;
	uint64_t sent_at;

	if (copy == AM_COPY_ASKED)
		peer->answer_at = 0;
	if (slot->message.fragment_size || slot->received)
		return;
	if (copy == AM_COPY_ASKED) {
		if (slot->asked)
			spent_refund(ep, slot, 0); /* it had been lost, and copies with it */
		return;
	}
	if (slot->copy == COPY_MAX || copy > slot->copy)
		return;
	/* what went before the copy that drew the answer was lost, or its answer was */
	needless = slot->copy - copy;
	if (copy)
		spent_refund(ep, slot, needless);
	if (!needless) {
		sent_at = slot->last_sent;
	} else {
		ep->xstats.NeedlessRetransmissions += needless;
		drawn_spend(ep, slot, needless);
		am_retransmit_penalty(&ep->retransmit);
		if (copy + 1 != slot->copy && copy)
			return;
		sent_at = copy ? slot->before_sent : slot->first_sent;
	}
	if (now > sent_at)
		am_rtt_sample(&peer->rtt, now - sent_at);
	peer->newest_answered = base_max(peer->newest_answered, sent_at);
	overtaken_check(ep, peer);
}
