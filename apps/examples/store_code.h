/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_STORE_CODE_H
#define APPS_EXAMPLES_STORE_CODE_H

/*
 * A key-value store in a region, with values of several sizes, for its client and for the programs
 * that the client sends (place.h).
 *
 * A key belongs to a bucket of eight slots, and to the one behind it. A slot is a number: the block
 * that has the record, its size, a part of the key's hash, and a count of the slot's changes. A
 * record is complete before a compare-and-swap puts it into a slot, and never changes there. What
 * was read of a record is good if the slot is the same behind that: blocks are used again. Two
 * clients that put a new key at once may both enter it; the first slot counts, and a delete takes
 * all.
 */

#include "pool_code.h"

enum {
	STORE_POOL_AT = 0,
	STORE_BUCKETS_AT = 128,
	STORE_SLOTS = 8,   /* of a bucket */
	STORE_BUCKETS = 2, /* that a key may be in */
	STORE_TRIES = 100,
	STORE_KEY = 56,
	STORE_VALUE_MAX = POOL_BLOCK_MAX - 64,
};

struct store_record {
	unsigned long length; /* of the value, which stands behind */
	char key[STORE_KEY];  /* with zeros behind it */
};

/* Arguments of the programs; a value to put stands behind them, with zeros to a multiple of 8 */
struct store_args {
	unsigned long store; /* the region's address */
	unsigned long size;
	struct store_record record;
};

/* A slot as it was seen */
struct store_slot {
	unsigned long addr, was;
};

/* What is found goes here: 0, or a negative number when there is no room for it */
static inline long store_give(struct place *place, const void *from, unsigned long len);

/* A bucket for each KiB of the region */
static inline unsigned long store_buckets(unsigned long size)
{
	return size / 1024;
}

/* --- slots -------------------------------------------------------------------------------- */

static inline unsigned long store_hash(const char *key)
{
	unsigned long h = 14695981039346656037ul;

	for (int i = 0; i < STORE_KEY && key[i]; i++)
		h = (h ^ (unsigned char)key[i]) * 1099511628211ul;
	return h ^ h >> 29;
}

static inline unsigned long store_mark(unsigned long hash)
{
	return hash >> 56;
}

/* Block, class plus one, mark of the key, changes */
static inline unsigned long store_slot_make(unsigned long block, unsigned int class,
					    unsigned long mark, unsigned long was)
{
	return block | (class + 1ul) << 32 | mark << 40 | ((was >> 48) + 1) << 48;
}

static inline int store_is_empty(unsigned long slot)
{
	return !(slot >> 32 & 255);
}

static inline unsigned int store_class(unsigned long slot)
{
	return (unsigned int)(slot >> 32 & 255) - 1;
}

static inline int store_same(const char *a, const char *b)
{
	const unsigned long *x = (const unsigned long *)(const void *)a;
	const unsigned long *y = (const unsigned long *)(const void *)b;

	for (int i = 0; i < STORE_KEY / 8; i++)
		if (x[i] != y[i])
			return 0;
	return 1;
}

/* The record of a slot that is not empty; at a client a copy in @buffer */
static inline int store_see(struct place *place, const struct store_args *args, unsigned long slot,
			    void *buffer, const struct store_record **out)
{
	unsigned long at = pool_block_addr(slot);
	unsigned int class = store_class(slot);

	if (class >= POOL_CLASSES || at > args->size || args->size - at < pool_size(class))
		return PLACE_DAMAGED;
	*out = (const struct store_record *)place_see(place, args->store + at, buffer,
						      pool_size(class));
	return *out ? 0 : place_error(place);
}

/* 1: the slot is still what it was, 0: it is not; or an error */
static inline int store_is_still(struct place *place, const struct store_slot *slot)
{
	unsigned long now;
	int ret = place_load(place, slot->addr, &now);

	return ret ? ret : now == slot->was;
}

/* 1: the slot was changed, 0: another client was quicker; or an error */
static inline int store_replace(struct place *place, const struct store_slot *slot,
				unsigned long value)
{
	unsigned long seen = slot->was;
	int ret = place_swap(place, slot->addr, &seen, value);

	return ret ? ret : seen == slot->was;
}

/* In one bucket: 1: *found has the key, its record is in *out; 0: it is not there; or an error */
static inline int store_look(struct place *place, const struct store_args *args,
			     unsigned long bucket, unsigned long mark, void *buffer,
			     struct store_slot *found, struct store_slot *empty,
			     const struct store_record **out)
{
	unsigned long copy[STORE_SLOTS];
	const volatile unsigned long *slots =
		(const volatile unsigned long *)place_see(place, bucket, copy, sizeof(copy));

	if (!slots)
		return place_error(place);
	for (unsigned int i = 0; i < STORE_SLOTS; i++) {
		const struct store_slot slot = { bucket + i * 8, slots[i] };
		int ret;

		if (store_is_empty(slot.was)) {
			if (!empty->addr)
				*empty = slot;
			continue;
		}
		if ((slot.was >> 40 & 255) != mark)
			continue;
		ret = store_see(place, args, slot.was, buffer, out);
		if (ret)
			return ret;
		if (!store_same((*out)->key, args->record.key))
			continue;
		*found = slot;
		return 1;
	}
	return 0;
}

/* The same of all buckets that the key may be in */
static inline int store_find(struct place *place, const struct store_args *args, void *buffer,
			     struct store_slot *found, struct store_slot *empty,
			     const struct store_record **out)
{
	unsigned long hash = store_hash(args->record.key);
	int ret = 0;

	empty->addr = 0;
	for (unsigned long i = 0; i < STORE_BUCKETS && !ret; i++) {
		unsigned long bucket = (hash + i) % store_buckets(args->size);

		ret = store_look(place, args,
				 args->store + STORE_BUCKETS_AT + bucket * STORE_SLOTS * 8,
				 store_mark(hash), buffer, found, empty, out);
	}
	return ret;
}

/* --- what clients do ---------------------------------------------------------------------- */

/*
 * 1: the value was given, 0: there is none, or an error. PLACE_AGAIN: it changed meanwhile, and
 * what was given is not good.
 */
static inline int store_get(struct place *place, const struct store_args *args, void *buffer)
{
	const struct store_record *record;
	struct store_slot found, empty;
	int ret = store_find(place, args, buffer, &found, &empty, &record), still;
	unsigned long length;

	if (ret != 1)
		return ret;
	length = record->length;
	if (length > pool_size(store_class(found.was)) - sizeof(*record))
		ret = PLACE_DAMAGED;
	else if (length && store_give(place, record + 1, length) < 0)
		ret = PLACE_FULL;
	still = store_is_still(place, &found);
	return still < 0 ? still : still ? ret : PLACE_AGAIN;
}

/* The record of the arguments as a block: its slot value, but for the changes */
static inline int store_write(struct place *place, const struct store_args *args,
			      unsigned int *class, unsigned long *block)
{
	unsigned long size = sizeof(struct store_record) + args->record.length;
	int ret;

	*class = pool_class(size);
	if (*class == POOL_CLASSES)
		return PLACE_FULL;
	ret = pool_take(place, args->store, args->size, *class, block);
	if (ret)
		return ret;
	return place_store(place, args->store + pool_block_addr(*block), &args->record,
			   (size + 7) / 8 * 8);
}

/* 0, or an error */
static inline int store_put(struct place *place, const struct store_args *args, void *buffer)
{
	unsigned long block, mark = store_mark(store_hash(args->record.key));
	const struct store_record *record;
	struct store_slot found, empty;
	unsigned int class;
	int ret = store_write(place, args, &class, &block);

	if (ret)
		return ret;
	for (int i = 0; i < STORE_TRIES; i++) {
		const struct store_slot *slot = &found;
		int is_there = store_find(place, args, buffer, &found, &empty, &record);

		if (!is_there)
			slot = &empty;
		ret = is_there < 0 ? is_there : slot->addr ? 0 : PLACE_FULL;
		if (ret)
			break;
		ret = store_replace(place, slot, store_slot_make(block, class, mark, slot->was));
		if (ret == 1 && is_there)
			return pool_give(place, args->store, store_class(slot->was), slot->was);
		if (ret)
			return ret < 0 ? ret : 0;
		ret = PLACE_AGAIN;
	}
	pool_give(place, args->store, class, block);
	return ret;
}

/* 1: the key was there, 0: it was not; or an error */
static inline int store_delete(struct place *place, const struct store_args *args, void *buffer)
{
	const struct store_record *record;
	struct store_slot found, empty;
	int was_there = 0;

	for (int i = 0; i < STORE_TRIES; i++) {
		int ret = store_find(place, args, buffer, &found, &empty, &record);

		if (!ret)
			return was_there;
		if (ret > 0)
			ret = store_replace(place, &found, ((found.was >> 48) + 1) << 48);
		if (ret > 0) {
			was_there = 1;
			ret = pool_give(place, args->store, store_class(found.was), found.was);
		}
		if (ret < 0)
			return ret;
	}
	return PLACE_AGAIN;
}

#endif
