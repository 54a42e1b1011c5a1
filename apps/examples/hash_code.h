/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_HASH_CODE_H
#define APPS_EXAMPLES_HASH_CODE_H

/*
 * A hash table in a region, for its client and for the program that the client sends: one source.
 * Who includes it says how memory is reached: hash_load(), hash_store(), hash_swap() and
 * hash_take(), each with the place that all pass on. The client does it by RDMA, one round trip for
 * each; the program by pointers.
 *
 * The region begins with the offset of its free memory, which only grows, and at HASH_BINS_AT the
 * bins: addresses of the first entry of each, or 0. Entries are put in front of their bin by a
 * compare-and-swap, when they are complete, and never go; so readers need no lock.
 */

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

struct hash_place;

static inline int hash_load(struct hash_place *place, unsigned long addr, void *to,
			    unsigned long len);
static inline int hash_store(struct hash_place *place, unsigned long addr, const void *from,
			     unsigned long len);
/* What was there is left in *old */
static inline int hash_swap(struct hash_place *place, unsigned long addr, unsigned long *old,
			    unsigned long value);
/* Adds to a number; what was there before into *old */
static inline int hash_take(struct hash_place *place, unsigned long addr, unsigned long add,
			    unsigned long *old);

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

/* The entry with this key, its address into *at; or 0 there, and the bin's first one in *first */
static inline int hash_find(struct hash_place *place, const struct hash_args *args,
			    struct hash_entry *found, unsigned long *at, unsigned long *first)
{
	int ret = hash_load(place, hash_bin(args), first, sizeof(*first));

	for (*at = *first; !ret && *at; *at = found->next) {
		ret = hash_load(place, *at, found, sizeof(*found));
		if (!ret && hash_same(found->key, args->entry.key))
			return 0;
	}
	return ret;
}

/* 1: it is there, its value in *value; 0: it is not; or an error */
static inline int hash_get(struct hash_place *place, const struct hash_args *args,
			   unsigned long *value)
{
	struct hash_entry found;
	unsigned long at, first;
	int ret = hash_find(place, args, &found, &at, &first);

	if (ret || !at)
		return ret;
	*value = found.value;
	return 1;
}

/* A new entry in front of its bin; those that others put there meanwhile come behind it */
static inline int hash_add(struct hash_place *place, const struct hash_args *args,
			   unsigned long first)
{
	struct hash_entry entry = args->entry;
	unsigned long offset, seen = first;
	int ret = hash_take(place, args->table, sizeof(entry), &offset);

	if (!ret && offset + sizeof(entry) > args->size)
		return -28; /* ENOSPC */
	do {
		entry.next = first = seen;
		if (!ret)
			ret = hash_store(place, args->table + offset, &entry, sizeof(entry));
		if (!ret)
			ret = hash_swap(place, hash_bin(args), &seen, args->table + offset);
	} while (!ret && seen != first);
	return ret;
}

/* 0, or an error. Two that put a new key at the same time may both add it: the later one counts */
static inline int hash_put(struct hash_place *place, const struct hash_args *args)
{
	struct hash_entry found;
	unsigned long at, first;
	int ret = hash_find(place, args, &found, &at, &first);

	if (ret)
		return ret;
	if (!at)
		return hash_add(place, args, first);
	return hash_store(place, at + 8, &args->entry.value, sizeof(args->entry.value));
}

#endif
