/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fragments coming in: docs/amudp-wire.md, section 6.
 *
 * Data of a long message go straight to the segment at their offset, those of a medium one to a
 * buffer. A map holds which are there; duplicates change nothing. One SACK per message and poll
 * tells the sender, however many fragments that poll brought.
 */
#include "am/gather.h"

#include <errno.h>
#include <stdlib.h>

#include "am/queue.h"
#include "am/window.h"
#include "base/bits.h"
#include "base/clock.h"

#define MAP_BYTES_MAX 512	      /* of a SACK: 4096 fragments beyond the cumulative one */
#define HOLD_COST (512u << 10)	      /* window bytes of fragments that share a SACK ... */
#define HOLD_NS (20 * BASE_NS_PER_US) /* ... if they come within so long */

int am_gather_create(struct am_gather **out, struct am_peer *peer, const struct am_frame *f,
		     bool is_reply)
{
	struct am_gather *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->count = (f->nbytes - 1) / f->fragment_size + 1;
	g->map = calloc((g->count + 63) / 64, sizeof(uint64_t));
	if (am_frame_category(f) == amudp_Medium)
		g->buffer = malloc(f->nbytes);
	if (!g->map || (am_frame_category(f) == amudp_Medium && !g->buffer)) {
		free(g->map);
		free(g->buffer);
		free(g);
		return -ENOMEM;
	}
	base_list_init(&g->node);
	g->peer = peer;
	g->is_reply = is_reply;
	g->slot = f->slot;
	g->seq = f->seq;
	g->fragment_size = f->fragment_size;
	g->nbytes = f->nbytes;
	g->offset = f->offset;
	*out = g;
	return 0;
}

void am_gather_destroy(struct am_gather *g)
{
	if (!g)
		return;
	base_list_remove(&g->node);
	free(g->map);
	free(g->buffer);
	free(g);
}

static bool has(const struct am_gather *g, uint32_t i)
{
	return g->map[i / 64] >> (i % 64) & 1;
}

int am_gather_add(struct am_gather *g, const struct am_frame *f)
{
	struct amudp_ep *ep = g->peer->ep;
	uint32_t i = f->fragment_offset / g->fragment_size;
	uint8_t *base;

	if (f->fragment_size != g->fragment_size || f->nbytes != g->nbytes ||
	    f->offset != g->offset || (am_frame_category(f) == amudp_Medium) != !!g->buffer)
		return -EPROTO;
	base_list_remove(&g->node);
	base_list_push_back(&ep->gathers, &g->node);
	ep->gathered += am_window_cost(g->fragment_size);
	if (has(g, i) || i != g->cumulative)
		ep->gather_due = 0; /* something was lost */
	if (has(g, i))
		return 0;
	base = g->buffer ? g->buffer : am_segment_at(ep, g->offset);
	memcpy(base + f->fragment_offset, f->data, f->length);
	g->map[i / 64] |= 1ull << (i % 64);
	g->arrived++;
	g->highest = base_max(g->highest, i + 1);
	while (g->cumulative < g->count && has(g, g->cumulative))
		g->cumulative++;
	return g->arrived == g->count;
}

static void sack_queue(struct amudp_ep *ep, struct am_gather *g)
{
	uint8_t frame[32 + MAP_BYTES_MAX], map[MAP_BYTES_MAX] = { 0 };
	uint32_t i, bits = base_min(g->highest - g->cumulative, MAP_BYTES_MAX * 8u);
	struct am_frame f = { .type = AM_FRAME_SACK,
			      .flags = g->is_reply ? AM_FRAME_OF_REPLY : 0,
			      .slot = g->slot,
			      .seq = g->seq,
			      .cumulative = g->cumulative,
			      .total = g->count };

	if (g->highest <= g->cumulative)
		bits = 0;
	for (i = 0; i < bits; i++) {
		if (has(g, g->cumulative + i))
			map[i / 8] |= (uint8_t)(1u << (i % 8));
	}
	f.length = (bits + 7) / 8;
	am_queue_frame(ep, g->peer, frame, (uint32_t)am_frame_put_sack(frame, &f, map));
}

void am_gather_flush(struct amudp_ep *ep)
{
	struct base_list *node;

	while ((node = base_list_pop_front(&ep->gathers)))
		sack_queue(ep, base_list_entry(node, struct am_gather, node));
	ep->gathered = 0;
	ep->gather_due = BASE_NEVER;
}

void am_gather_run(struct amudp_ep *ep, uint64_t now)
{
	uint32_t window = ep->window_kib * 1024u;

	if (ep->gather_due == BASE_NEVER)
		ep->gather_due = now + HOLD_NS;
	if (now >= ep->gather_due || ep->gathered >= base_min(HOLD_COST, window / 4))
		am_gather_flush(ep);
}

void am_gather_sack_all(struct amudp_ep *ep, struct am_peer *peer, const struct am_frame *f,
			bool is_reply)
{
	uint8_t frame[16];
	struct am_frame sack = { .type = AM_FRAME_SACK,
				 .flags = is_reply ? AM_FRAME_OF_REPLY : 0,
				 .slot = f->slot,
				 .seq = f->seq };

	am_queue_frame(ep, peer, frame, (uint32_t)am_frame_put_sack(frame, &sack, NULL));
}
