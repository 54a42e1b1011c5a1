/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The STag table (RFC 5041 section 7.1, RFC 5040 section 8.1.1, RFC 5042).
 *
 * Open addressing with linear probing. The index is random, so it is its own hash. Two
 * invariants: at most half of the slots are taken, so that a probe for any STag the
 * peer may invent is short and meets an empty slot; and between a region's home slot
 * and the slot it stands in none is empty, which remove() keeps by moving later ones
 * back instead of leaving tombstones.
 *
 * At most half of the 2^24 indices are given out, so that a free one is found in two
 * tries on average. Index 0 is never given: an STag below 256 is what peers put into
 * messages that name no memory.
 */
#include "ddp/stag.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/heap.h"
#include "base/rand.h"

#define STAG_INDEX(stag) ((stag) >> 8)
#define STAG_USED_MAX (1u << 23)
#define STAG_SLOTS_MIN 16u

int ddp_stag_table_init(struct ddp_stag_table *t, __u32 capacity)
{
	__u32 size = STAG_SLOTS_MIN;

	if (capacity > STAG_USED_MAX)
		return -EINVAL;
	while (size < 2 * capacity)
		size *= 2;
	t->slots = base_heap_array(size, sizeof(*t->slots));
	if (!t->slots)
		return -ENOMEM;
	t->size = size;
	t->used = 0;
	return 0;
}

void ddp_stag_table_uninit(struct ddp_stag_table *t)
{
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

static __u32 next_slot(const struct ddp_stag_table *t, __u32 slot)
{
	return (slot + 1) & (t->size - 1);
}

static __u32 home_slot(const struct ddp_stag_table *t, __u32 stag)
{
	return STAG_INDEX(stag) & (t->size - 1);
}

/* The slot that holds the index of @stag, or the empty one where it would go */
static __u32 find_slot(const struct ddp_stag_table *t, __u32 stag)
{
	__u32 slot = home_slot(t, stag);

	while (t->slots[slot] && STAG_INDEX(t->slots[slot]->stag) != STAG_INDEX(stag))
		slot = next_slot(t, slot);
	return slot;
}

static int table_grow(struct ddp_stag_table *t)
{
	struct ddp_stag_table bigger = { .size = 2 * t->size, .used = t->used };

	bigger.slots = base_heap_array(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (__u32 i = 0; i < t->size; i++) {
		if (t->slots[i])
			bigger.slots[find_slot(&bigger, t->slots[i]->stag)] = t->slots[i];
	}
	free(t->slots);
	*t = bigger;
	return 0;
}

/* A random STag whose index is free, and the slot for it */
static int pick_stag(const struct ddp_stag_table *t, __u32 *stag, __u32 *slot)
{
	do {
		int rc = base_rand_u32(stag);

		if (rc)
			return rc;
		*slot = find_slot(t, *stag);
	} while (!STAG_INDEX(*stag) || t->slots[*slot]);
	return 0;
}

int ddp_stag_insert(struct ddp_stag_table *t, struct ddp_region *r)
{
	__u32 stag, slot;
	int rc;

	if (t->used >= STAG_USED_MAX)
		return -ENOSPC;
	if (t->used + 1 > t->size / 2) {
		rc = table_grow(t);
		if (rc)
			return rc;
	}
	rc = pick_stag(t, &stag, &slot);
	if (rc)
		return rc;
	r->stag = stag;
	r->valid = true;
	t->slots[slot] = r;
	t->used++;
	return 0;
}

/* How far the region in @slot is from its home */
static __u32 displacement(const struct ddp_stag_table *t, __u32 slot)
{
	return (slot - home_slot(t, t->slots[slot]->stag)) & (t->size - 1);
}

void ddp_stag_remove(struct ddp_stag_table *t, struct ddp_region *r)
{
	__u32 hole = find_slot(t, r->stag);

	if (t->slots[hole] != r)
		return;
	/* A later one of the same run moves into the hole if that is not before its home */
	for (__u32 i = next_slot(t, hole); t->slots[i]; i = next_slot(t, i)) {
		if (displacement(t, i) >= ((i - hole) & (t->size - 1))) {
			t->slots[hole] = t->slots[i];
			hole = i;
		}
	}
	t->slots[hole] = NULL;
	t->used--;
	r->valid = false;
}

struct ddp_region *ddp_stag_lookup(const struct ddp_stag_table *t, __u32 stag)
{
	struct ddp_region *r = t->slots[find_slot(t, stag)];

	return r && r->stag == stag && r->valid ? r : NULL;
}

/* Octets @to..@to+@len against the region; an end at 2^64 is no wrap */
static enum ddp_stag_error check_range(const struct ddp_region *r, __u64 to, __u64 len)
{
	if (len && to > UINT64_MAX - (len - 1))
		return DDP_STAG_WRAP;
	if (to < r->to || len > r->len || to - r->to > r->len - len)
		return DDP_STAG_BOUNDS;
	return DDP_STAG_OK;
}

enum ddp_stag_error ddp_stag_check(const struct ddp_stag_table *t, __u32 stag, __u32 pd, __u64 to,
				   __u64 len, unsigned int access, __u8 **addr)
{
	struct ddp_region *r = ddp_stag_lookup(t, stag);
	enum ddp_stag_error e;

	if (!r)
		return DDP_STAG_INVALID;
	if (r->pd != pd)
		return DDP_STAG_STREAM;
	if ((r->access & access) != access)
		return DDP_STAG_ACCESS;
	e = check_range(r, to, len);
	if (!e)
		*addr = (__u8 *)((uintptr_t)r->addr + (to - r->to));
	return e;
}

enum ddp_stag_error ddp_stag_invalidate(struct ddp_stag_table *t, __u32 stag, __u32 pd)
{
	struct ddp_region *r = ddp_stag_lookup(t, stag);

	if (!r)
		return DDP_STAG_INVALID;
	if (r->pd != pd || r->shared)
		return DDP_STAG_STREAM;
	r->valid = false;
	return DDP_STAG_OK;
}

/*
 * DDP has no code for a missing right (RFC 5041 section 8.2): to the peer an STag that
 * does not allow the access is not valid for it, as other implementations say too.
 */
enum iwarp_fault ddp_stag_fault_tagged(enum ddp_stag_error e)
{
	static const enum iwarp_fault faults[] = {
		[DDP_STAG_OK] = IWARP_OK,	    [DDP_STAG_INVALID] = DDP_E_T_STAG,
		[DDP_STAG_STREAM] = DDP_E_T_STREAM, [DDP_STAG_ACCESS] = DDP_E_T_STAG,
		[DDP_STAG_WRAP] = DDP_E_T_WRAP,	    [DDP_STAG_BOUNDS] = DDP_E_T_BOUNDS,
	};

	return faults[e];
}

enum iwarp_fault ddp_stag_fault_rdmap(enum ddp_stag_error e)
{
	static const enum iwarp_fault faults[] = {
		[DDP_STAG_OK] = IWARP_OK,	    [DDP_STAG_INVALID] = RDMAP_E_STAG,
		[DDP_STAG_STREAM] = RDMAP_E_STREAM, [DDP_STAG_ACCESS] = RDMAP_E_ACCESS,
		[DDP_STAG_WRAP] = RDMAP_E_WRAP,	    [DDP_STAG_BOUNDS] = RDMAP_E_BOUNDS,
	};

	return faults[e];
}
