/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fragments going out: docs/amudp-wire.md, section 6.
 *
 * Each send of a fragment has an order of its own. A SACK tells which fragments are there; one
 * that was sent clearly before another that has arrived is lost and goes again at once. When no
 * SACK comes at all, the time-out resends a single fragment to draw one. That SACK may be for the
 * fragment's earlier copy, when the peer was only late: others count as lost by it if they have not
 * come until the next time-out. The peer's window bounds what is under way.
 *
 * A time-out counts only when nothing is left to be read behind it: a process that had lost the
 * processor finds all deadlines over, and the SACKs too. And what makes one message late makes all
 * late: the peer's others wait for the first one's probe.
 */
#include "am/bulk.h"

#include <errno.h>
#include <stdlib.h>

#include "am/move.h"
#include "am/queue.h"
#include "am/window.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"

#define REORDER_DEPTH 8 /* later sends that arrive before an earlier one counts as lost */
#define READ_ENOUGH 256 /* polls after which what had come has been read */
#define PUMP_MAX 64	/* fragments in one go, so that arrivals are looked at in between */

static uint32_t fragment_length(const struct am_message *m, uint32_t i)
{
	return base_min(m->fragment_size, m->length - i * m->fragment_size);
}

static uint32_t fragment_cost(const struct am_bulk *b)
{
	return am_window_cost(b->message->fragment_size);
}

int am_bulk_create(struct am_bulk **out, struct am_peer *peer, struct am_message *message,
		   bool is_reply, uint16_t slot, uint16_t seq)
{
	uint32_t count = (message->length - 1) / message->fragment_size + 1;
	struct am_bulk *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->orders = calloc(count, sizeof(*b->orders));
	b->state = calloc(count, sizeof(*b->state));
	if (!b->orders || !b->state) {
		free(b->orders);
		free(b->state);
		free(b);
		return -ENOMEM;
	}
	b->peer = peer;
	b->message = message;
	b->is_reply = is_reply;
	b->slot = slot;
	b->seq = seq;
	b->count = count;
	b->started = base_now();
	b->deadline = BASE_NEVER;
	base_list_push_back(&peer->ep->bulks, &b->node);
	*out = b;
	return 0;
}

void am_bulk_destroy(struct am_bulk *b)
{
	if (!b)
		return;
	b->peer->inflight -= b->outstanding;
	base_list_remove(&b->node);
	free(b->orders);
	free(b->state);
	free(b);
}

static void fragment_queue(struct amudp_ep *ep, struct am_peer *peer, struct am_message *m,
			   uint32_t i)
{
	uint32_t length = fragment_length(m, i);
	uint32_t offset = i * m->fragment_size;

	am_frame_patch_fragment(m->head, m->head_len, offset, length);
	am_queue_fragment(ep, peer, m->head, m->head_len, m->data + offset, length);
	ep->xstats.FragmentsSent++;
}

static void outstanding_sub(struct am_bulk *b)
{
	b->outstanding -= fragment_cost(b);
	b->peer->inflight -= fragment_cost(b);
}

static uint64_t first_time_out(const struct am_peer *peer)
{
	uint64_t ns = am_rtt_timeout(&peer->rtt, peer->sleeps, peer->ep->options.timeout_initial);

	/* a batch of fragments takes its time to be taken in */
	return base_max(ns, BASE_NS_PER_MS);
}

static uint64_t time_out(const struct am_bulk *b)
{
	return first_time_out(b->peer) << base_min(b->backoff, 6u);
}

static void fragment_send(struct am_bulk *b, uint32_t i, uint64_t now)
{
	struct amudp_ep *ep = b->peer->ep;

	if (b->state[i] == BULK_LOST) {
		b->lost--;
		ep->xstats.FragmentsRetransmitted++;
	}
	if (!b->sample_at && b->order + 1 != b->probe) {
		b->sample_at = now;
		b->sample_order = b->order;
	}
	b->state[i] = BULK_SENT;
	b->orders[i] = b->order++;
	b->outstanding += fragment_cost(b);
	b->peer->inflight += fragment_cost(b);
	b->deadline = now + time_out(b);
	fragment_queue(ep, b->peer, b->message, i);
}

static bool window_open(const struct am_bulk *b)
{
	return !b->peer->inflight || b->peer->inflight + fragment_cost(b) <= b->peer->window;
}

/* The next fragment to send, or count. *scan is where to look for lost ones. */
static uint32_t fragment_next(struct am_bulk *b, uint32_t *scan)
{
	if (b->lost) {
		while (*scan < b->next && b->state[*scan] != BULK_LOST)
			++*scan;
		if (*scan < b->next)
			return *scan;
	}
	return b->next < b->count ? b->next++ : b->count;
}

static void fragment_lose(struct am_bulk *b, uint32_t i)
{
	b->state[i] = BULK_LOST;
	b->lost++;
	outstanding_sub(b);
	if (b->sample_at && b->orders[i] == b->sample_order)
		b->sample_at = 0;
}

static void losses_find(struct am_bulk *b)
{
	uint32_t i;

	while (b->cumulative < b->next && b->state[b->cumulative] == BULK_ARRIVED)
		b->cumulative++;
	for (i = b->cumulative; i < b->next; i++) {
		if (b->state[i] == BULK_SENT && b->orders[i] + REORDER_DEPTH < b->newest)
			fragment_lose(b, i);
	}
}

/* The oldest fragment under way goes again, and its SACK tells the rest. */
static void probe_send(struct am_bulk *b, uint64_t now)
{
	uint32_t i = b->cumulative;

	while (i < b->next && b->state[i] != BULK_SENT)
		i++;
	if (i == b->next)
		return;
	fragment_lose(b, i);
	am_move_repeat(b->peer->ep, b->peer);
	b->probe = b->order + 1;
	fragment_send(b, i, now);
}

uint64_t am_bulk_deadline(const struct am_bulk *b)
{
	return b->backoff ? b->deadline : base_max(b->deadline, b->peer->bulk_probe_at);
}

/* The deadline is over, and whatever had come by it has been read. */
static bool is_over(struct am_bulk *b, uint64_t now)
{
	const struct amudp_ep *ep = b->peer->ep;

	if (!b->outstanding)
		b->deadline = BASE_NEVER; /* until one is sent */
	if (now < am_bulk_deadline(b))
		return false;
	if (b->over != b->deadline) {
		b->over = b->deadline;
		b->over_epoch = ep->epoch;
	}
	return ep->drained >= b->deadline || ep->epoch - b->over_epoch > READ_ENOUGH;
}

/* No SACK came, or none since the probe. */
static void bulk_expire(struct am_bulk *b, uint64_t now)
{
	b->peer->bulk_probe_at = now + first_time_out(b->peer);
	b->backoff++;
	b->newest = base_max(b->newest, b->probe_sacked);
	b->probe_sacked = 0;
	losses_find(b);
	probe_send(b, now);
	b->deadline = now + time_out(b);
}

static void bulk_send(struct am_bulk *b, uint64_t now)
{
	uint32_t i, scan = b->cumulative;
	int sent;

	if (is_over(b, now))
		bulk_expire(b, now);
	for (sent = 0; sent < PUMP_MAX && window_open(b); sent++) {
		i = fragment_next(b, &scan);
		if (i == b->count)
			break;
		fragment_send(b, i, now);
	}
}

void am_bulk_pump(struct amudp_ep *ep, uint64_t now)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &ep->bulks)
		bulk_send(base_list_entry(node, struct am_bulk, node), now);
}

/* An arrival tells of the losses before it, unless it may be of an earlier copy. */
static void arrival_note(struct am_bulk *b, uint32_t order)
{
	if (order == b->probe) {
		b->probe_sacked = order;
		return;
	}
	b->probe_sacked = 0;
	b->newest = base_max(b->newest, order);
}

static bool fragment_arrive(struct am_bulk *b, uint32_t i, uint64_t now)
{
	if (b->state[i] == BULK_ARRIVED || b->state[i] == BULK_UNSENT)
		return false;
	if (b->state[i] == BULK_SENT)
		outstanding_sub(b);
	else
		b->lost--;
	b->state[i] = BULK_ARRIVED;
	b->arrived++;
	arrival_note(b, b->orders[i] + 1);
	if (b->sample_at && b->orders[i] == b->sample_order) {
		am_rtt_sample(&b->peer->rtt, now - b->sample_at);
		b->sample_at = 0;
	}
	return true;
}

static bool sack_apply(struct am_bulk *b, const struct am_frame *f, uint64_t now)
{
	uint32_t i, bits, upto = base_min(f->total ? f->cumulative : b->count, b->next);
	bool news = false;

	for (i = b->cumulative; i < upto; i++)
		news |= fragment_arrive(b, i, now);
	bits = base_min(f->length * 8, b->next - base_min(f->cumulative, b->next));
	for (i = 0; i < bits; i++) {
		if (f->data[i / 8] >> (i % 8) & 1)
			news |= fragment_arrive(b, f->cumulative + i, now);
	}
	return news;
}

bool am_bulk_sack(struct am_bulk *b, const struct am_frame *f, uint64_t now)
{
	if (f->total && f->total != b->count)
		return false;
	if (sack_apply(b, f, now)) {
		b->backoff = 0;
		b->peer->bulk_probe_at = 0;
		b->started = now;
		b->deadline = now + time_out(b);
	}
	losses_find(b);
	return b->arrived == b->count;
}
