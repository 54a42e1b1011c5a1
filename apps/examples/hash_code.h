/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_HASH_CODE_H
#define APPS_EXAMPLES_HASH_CODE_H

/*
 * A hash table in a region, for its client and for the program that the client sends: one source
 * (place.h).
 *
 * The region begins with the offset of its free memory, which only grows, and at HASH_BINS_AT the
 * bins: addresses of the first entry of each, or 0. Entries are put in front of their bin by a
 * compare-and-swap, when they are complete, and never go; so readers need no lock.
 */

#include "place.h"

enum { HASH_BINS = 1024, HASH_BINS_AT = 64, HASH_ENTRIES_AT = HASH_BINS_AT + HASH_BINS * 8 };

struct hash_entry {
	unsigned long next;
	unsigned long value;
	char key[48]; /* with zeros behind it */
};

/* Arguments of the programs */
struct hash_args {
	struct hash_entry entry;
	unsigned long table; /* the region's address */
	unsigned long size;
};

static inline unsigned long hash_bin(const struct hash_args *args)
{
	unsigned long h = 5381;

	for (int i = 0; i < (int)sizeof(args->entry.key) && args->entry.key[i]; i++)
		h = h * 33 + (unsigned char)args->entry.key[i];
	return args->table + HASH_BINS_AT + h % HASH_BINS * 8;
}

static inline int hash_same(const char *a, const char *b)
{
	const unsigned long *x = (const unsigned long *)(const void *)a;
	const unsigned long *y = (const unsigned long *)(const void *)b;

	for (int i = 0; i < 6; i++)
		if (x[i] != y[i])
			return 0;
	return 1;
}

/*
 * The entry with this key, its address into *at; or 0 there, and the bin's first one in *first. A
 * bin with more entries than there can be has been damaged.
 */
static inline int hash_find(struct place *place, const struct hash_args *args, unsigned long *at,
			    unsigned long *value, unsigned long *first)
{
	unsigned long most = args->size / sizeof(struct hash_entry);
	int ret = place_load(place, hash_bin(args), first);

	for (*at = *first; !ret && *at; most--) {
		struct hash_entry buffer;
		const struct hash_entry *e = place_see(place, *at, &buffer, sizeof(buffer));

		if (!e)
			return place_error(place);
		*value = e->value;
		if (hash_same(e->key, args->entry.key))
			return 0;
		if (!most)
			return PLACE_DAMAGED;
		*at = e->next;
	}
	return ret;
}

/* 1: it is there, its value in *value; 0: it is not; or an error */
static inline int hash_get(struct place *place, const struct hash_args *args, unsigned long *value)
{
	unsigned long at, first;
	int ret = hash_find(place, args, &at, value, &first);

	return ret ? ret : !!at;
}

/* A new entry in front of its bin; those that others put there meanwhile come behind it */
static inline int hash_add(struct place *place, const struct hash_args *args, unsigned long first)
{
	struct hash_entry entry = args->entry;
	unsigned long offset = 0, seen = first;
	int ret = place_add(place, args->table, sizeof(entry), &offset);

	if (!ret && (offset > args->size || args->size - offset < sizeof(entry)))
		return PLACE_FULL;
	do {
		entry.next = first = seen;
		if (!ret)
			ret = place_store(place, args->table + offset, &entry, sizeof(entry));
		if (!ret)
			ret = place_swap(place, hash_bin(args), &seen, args->table + offset);
	} while (!ret && seen != first);
	return ret;
}

/* 0, or an error. Two that put a new key at the same time may both add it: the later one counts */
static inline int hash_put(struct place *place, const struct hash_args *args)
{
	unsigned long at, value, first;
	int ret = hash_find(place, args, &at, &value, &first);

	if (ret)
		return ret;
	if (!at)
		return hash_add(place, args, first);
	return place_store(place, at + 8, &args->entry.value, sizeof(args->entry.value));
}

#endif
