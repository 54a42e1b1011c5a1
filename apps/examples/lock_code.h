/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_LOCK_CODE_H
#define APPS_EXAMPLES_LOCK_CODE_H

/*
 * A queue lock in a region, in the manner of Mellor-Crummey and Scott, for clients and for the
 * programs that they send (place.h).
 *
 * The lock is the address of the last node of a queue, or 0. A client takes a node, puts it at the
 * end by a compare-and-swap, and tells the node before it. Then it looks at its own node only,
 * until the owner before it passes the lock on. One that does not want to wait any longer marks its
 * node, and owners take that out of the queue. A client that dies in the queue keeps those behind
 * it waiting.
 */

#include "place.h"

enum {
	LOCK_TAIL_AT = 0,
	LOCK_NUMBER_AT = 8, /* what the lock protects */
	LOCK_TICKET_AT = 16,
	LOCK_NODES_AT = 64,
};

enum lock_state { LOCK_UNUSED, LOCK_WAITS, LOCK_OWNS, LOCK_GONE };

struct lock_node {
	unsigned long next; /* behind it, or 0 */
	unsigned long state;
	unsigned long pad[6];
};

/* Arguments of the programs */
struct lock_args {
	unsigned long lock; /* the region's address */
	unsigned long size;
	unsigned long node;  /* the caller's, from lock_enter() */
	unsigned long turns; /* how often a call looks for what another client does */
};

enum { LOCK_STATE_AT = 8 };

static inline int lock_is_node(const struct lock_args *args, unsigned long addr)
{
	unsigned long offset = addr - args->lock;

	return offset >= LOCK_NODES_AT && offset < args->size && offset % 64 == 0 &&
	       args->size - offset >= sizeof(struct lock_node);
}

/* A node that nobody uses */
static inline int lock_node_take(struct place *place, const struct lock_args *args,
				 unsigned long *node)
{
	unsigned long count = (args->size - LOCK_NODES_AT) / sizeof(struct lock_node);
	unsigned long ticket, none = 0;
	int ret = place_add(place, args->lock + LOCK_TICKET_AT, 1, &ticket);

	for (unsigned long i = 0; i < count && !ret; i++) {
		unsigned long seen = LOCK_UNUSED;

		*node = args->lock + LOCK_NODES_AT +
			(ticket + i) % count * sizeof(struct lock_node);
		ret = place_swap(place, *node + LOCK_STATE_AT, &seen, LOCK_WAITS);
		if (!ret && seen == LOCK_UNUSED)
			return place_store(place, *node, &none, sizeof(none));
	}
	return ret ? ret : PLACE_FULL;
}

/* Enters the queue: 1: the lock is the caller's, 0: it has to wait; or an error */
static inline int lock_enter(struct place *place, const struct lock_args *args, unsigned long *node)
{
	unsigned long before = 0, seen;
	int ret = lock_node_take(place, args, node);

	do {
		seen = before;
		if (!ret)
			ret = place_swap(place, args->lock + LOCK_TAIL_AT, &before, *node);
	} while (!ret && before != seen);
	if (ret || !before)
		return ret ? ret : 1;
	if (!lock_is_node(args, before))
		return PLACE_DAMAGED;
	return place_store(place, before, node, sizeof(*node));
}

/* Looks args->turns times whether the lock has become the caller's: 1 or 0, or an error */
static inline int lock_look(struct place *place, const struct lock_args *args)
{
	unsigned long state = LOCK_WAITS;
	int ret = 0;

	for (unsigned long i = 0; i < args->turns && state == LOCK_WAITS && !ret; i++)
		ret = place_load(place, args->node + LOCK_STATE_AT, &state);
	if (ret)
		return ret;
	return state == LOCK_OWNS ? 1 : state == LOCK_WAITS ? 0 : PLACE_DAMAGED;
}

/* Does not wait any longer: 0, or 1: the lock has become the caller's just before */
static inline int lock_give_up(struct place *place, const struct lock_args *args)
{
	unsigned long seen = LOCK_WAITS;
	int ret = place_swap(place, args->node + LOCK_STATE_AT, &seen, LOCK_GONE);

	return ret ? ret : seen != LOCK_WAITS;
}

/* What stands behind @node, which has said so or is about to; PLACE_LATE: it takes its time */
static inline int lock_next(struct place *place, const struct lock_args *args, unsigned long node,
			    unsigned long *next)
{
	int ret = 0;

	*next = 0;
	for (unsigned long i = 0; i <= args->turns && !ret && !*next; i++)
		ret = place_load(place, node, next);
	if (ret)
		return ret;
	if (!*next)
		return PLACE_LATE;
	return lock_is_node(args, *next) ? 0 : PLACE_DAMAGED;
}

static inline int lock_node_free(struct place *place, unsigned long node)
{
	unsigned long unused = LOCK_UNUSED;

	return place_store(place, node + LOCK_STATE_AT, &unused, sizeof(unused));
}

/* Takes the node @gone, which is behind the caller's and waits no longer, out of the queue */
static inline int lock_skip(struct place *place, const struct lock_args *args, unsigned long gone)
{
	unsigned long seen = gone, next = 0;
	int ret = place_load(place, gone, &next);

	/* the last one: the caller's becomes the last, and says so before others can come behind */
	if (!ret && !next) {
		ret = place_store(place, args->node, &next, sizeof(next));
		if (!ret)
			ret = place_swap(place, args->lock + LOCK_TAIL_AT, &seen, args->node);
		if (ret || seen == gone)
			return ret ? ret : lock_node_free(place, gone);
		ret = place_store(place, args->node, &gone, sizeof(gone));
		if (!ret)
			ret = lock_next(place, args, gone, &next);
	}
	if (!ret)
		ret = place_store(place, args->node, &next, sizeof(next));
	return ret ? ret : lock_node_free(place, gone);
}

/*
 * Passes the lock on to the first that waits, or frees it. PLACE_LATE: somebody is about to enter
 * the queue; the caller tries again.
 */
static inline int lock_leave(struct place *place, const struct lock_args *args)
{
	unsigned long most = args->size / sizeof(struct lock_node), next;

	for (unsigned long i = 0; i < most; i++) {
		unsigned long seen = args->node, state = LOCK_WAITS;
		int ret = place_load(place, args->node, &next);

		if (!ret && !next) {
			ret = place_swap(place, args->lock + LOCK_TAIL_AT, &seen, 0);
			if (ret || seen == args->node)
				return ret ? ret : lock_node_free(place, args->node);
			ret = lock_next(place, args, args->node, &next);
		}
		if (!ret && !lock_is_node(args, next))
			return PLACE_DAMAGED;
		if (!ret)
			ret = place_swap(place, next + LOCK_STATE_AT, &state, LOCK_OWNS);
		if (ret || state == LOCK_WAITS)
			return ret ? ret : lock_node_free(place, args->node);
		if (state != LOCK_GONE)
			return PLACE_DAMAGED;
		ret = lock_skip(place, args, next);
		if (ret)
			return ret;
	}
	return PLACE_DAMAGED;
}

#endif
