/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults on purpose, done to datagrams as they come in.
 *
 * One draw per kind and datagram, always in the same order, so that a seed and the same arrivals
 * give the same faults. What is held back is a copy, passed on when its time has come; a
 * reordered datagram waits a little, a delayed one as long as told.
 */
#include "am/fault.h"

#include <stdlib.h>

#include "am/env.h"
#include "am/rx.h"
#include "base/bits.h"
#include "base/clock.h"

#define REORDER_NS (30 * BASE_NS_PER_US)
#define HELD_MAX 4096

struct held {
	struct base_list node;
	uint64_t due;
	struct sockaddr_in from;
	uint32_t length;
	uint8_t data[];
};

static uint32_t rate(const char *name)
{
	double d = am_env_double(name, 0.0);

	if (d <= 0)
		return 0;
	return d >= 1 ? UINT32_MAX : (uint32_t)(d * 4294967296.0);
}

void am_fault_init(struct am_fault *f, uint32_t number)
{
	base_list_init(&f->held);
	f->drop = rate("FAULT_RATE");
	f->duplicate = rate("FAULT_DUPLICATE");
	f->reorder = rate("FAULT_REORDER");
	f->delay = rate("FAULT_DELAY");
	f->corrupt = rate("FAULT_CORRUPT");
	f->delay_ns = (uint64_t)am_env_int("FAULT_DELAY_US", 1000) * BASE_NS_PER_US;
	/* two endpoints with the same faults would lose the same packets again and again */
	f->state = ((uint64_t)am_env_int("FAULT_SEED", 1) << 32 | number) * 0x9E3779B97F4A7C15ull;
	f->on = f->drop || f->duplicate || f->reorder || f->delay || f->corrupt;
}

void am_fault_uninit(struct am_fault *f)
{
	struct base_list *node;

	while ((node = base_list_pop_front(&f->held)))
		free(base_list_entry(node, struct held, node));
	f->held_count = 0;
}

/* splitmix64 */
static uint32_t draw(struct am_fault *f)
{
	uint64_t z = f->state += 0x9E3779B97F4A7C15ull;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return (uint32_t)(z >> 32);
}

static void hold(struct am_fault *f, const uint8_t *p, uint32_t n, const struct sockaddr_in *from,
		 uint64_t due)
{
	struct held *h = f->held_count < HELD_MAX ? malloc(sizeof(*h) + n) : NULL;
	struct base_list *at = f->held.prev;

	if (!h)
		return; /* as if it had been lost */
	h->due = due;
	h->from = *from;
	h->length = n;
	memcpy(h->data, p, n);
	while (at != &f->held && base_list_entry(at, struct held, node)->due > due)
		at = at->prev;
	base_list_add_after(&h->node, at);
	f->held_count++;
}

void am_fault_receive(struct amudp_ep *ep, uint8_t *p, uint32_t n, const struct sockaddr_in *from,
		      uint64_t now)
{
	struct am_fault *f = &ep->fault;
	bool drop = draw(f) < f->drop, duplicate = draw(f) < f->duplicate;
	bool reorder = draw(f) < f->reorder, delay = draw(f) < f->delay;
	bool corrupt = draw(f) < f->corrupt;
	uint32_t where = draw(f);

	if (drop) {
		ep->xstats.FaultsDropped++;
		return;
	}
	if (duplicate) {
		ep->xstats.FaultsDuplicated++;
		hold(f, p, n, from, now + (where & 0xFFFF));
	}
	if (corrupt && n) {
		ep->xstats.FaultsCorrupted++;
		p[where % n] ^= (uint8_t)(1u << (where >> 29));
	}
	if (delay || reorder) {
		ep->xstats.FaultsDelayed += delay;
		ep->xstats.FaultsReordered += reorder && !delay;
		hold(f, p, n, from, now + (delay ? f->delay_ns : REORDER_NS));
		return;
	}
	am_rx_datagram(ep, p, n, from);
}

void am_fault_release(struct amudp_ep *ep, uint64_t now)
{
	struct base_list *node;
	struct held *h;

	while ((node = base_list_first(&ep->fault.held))) {
		h = base_list_entry(node, struct held, node);
		if (h->due > now)
			return;
		base_list_remove(node);
		ep->fault.held_count--;
		am_rx_datagram(ep, h->data, h->length, &h->from);
		free(h);
	}
}

uint64_t am_fault_deadline(const struct am_fault *f)
{
	const struct base_list *node = base_list_first(&f->held);

	return node ? base_list_entry(node, struct held, node)->due : BASE_NEVER;
}
