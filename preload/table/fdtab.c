/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of descriptors: two levels, read without a lock.
 *
 * Getting an entry is optimistic: load the pointer, count up unless the count is nought, and
 * look again whether the pointer still stands there. That the memory of a dead entry is still
 * that of an entry, by the pools, makes it sound.
 */
#include "preload/table/fdtab.h"

#include <errno.h>

#include "base/map.h"

uint32_t fdtab_streams, fdtab_entries;
struct fdent **fdtab_pages[FDTAB_MAX / FDTAB_PAGE];
uint64_t fdtab_had[FDTAB_MAX / 64];
void (*fdtab_standard)(int fd);

/* Unless it is nought */
static bool count_up(uint32_t *count)
{
	uint32_t n = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (n)
		if (__atomic_compare_exchange_n(count, &n, n + 1, true, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

struct fdent *fdtab_ref(int fd)
{
	struct fdent *ent;

	while ((ent = fdtab_peek(fd))) {
		if (!count_up(&ent->refs))
			continue;
		if (fdtab_peek(fd) == ent)
			return ent;
		fdtab_put(ent);
	}
	return NULL;
}

struct fdent *fdtab_get(int fd, enum fd_kind kind)
{
	struct fdent *ent = fdtab_ref(fd);

	if (!ent || ent->kind == kind)
		return ent;
	fdtab_put(ent);
	return NULL;
}

void fdtab_hold(struct fdent *ent)
{
	__atomic_add_fetch(&ent->refs, 1, __ATOMIC_ACQ_REL);
}

bool fdtab_hold_living(struct fdent *ent)
{
	return count_up(&ent->refs);
}

bool fdtab_number_get(struct fdent *ent)
{
	if (!count_up(&ent->numbers))
		return false;
	fdtab_hold(ent);
	return true;
}

static bool number_drop(struct fdent *ent)
{
	return __atomic_sub_fetch(&ent->numbers, 1, __ATOMIC_ACQ_REL) == 0;
}

/* @ent may be NULL */
static void number_gone(struct fdent *ent)
{
	if (ent && number_drop(ent))
		ent->ops->end(ent);
	fdtab_put(ent);
}

void fdtab_number_put(struct fdent *ent)
{
	number_gone(ent);
}

static struct fdent **slot_of(int fd)
{
	unsigned int page = (unsigned int)fd / FDTAB_PAGE;
	struct fdent **have;
	void *fresh;

	if ((unsigned int)fd >= FDTAB_MAX)
		return NULL;
	have = __atomic_load_n(&fdtab_pages[page], __ATOMIC_ACQUIRE);
	if (!have) {
		if (base_map_create(FDTAB_PAGE * sizeof(*have), &fresh))
			return NULL;
		if (__atomic_compare_exchange_n(&fdtab_pages[page], &have, fresh, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			have = fresh;
		else
			base_map_destroy(fresh, FDTAB_PAGE * sizeof(*have));
	}
	/* Before there is an entry: whoever sees that sees the bit */
	__atomic_fetch_or(&fdtab_had[(unsigned int)fd / 64], 1ull << (unsigned int)fd % 64,
			  __ATOMIC_RELAXED);
	return &have[(unsigned int)fd % FDTAB_PAGE];
}

/* NULL @ent: none. What stood there, or NULL */
static struct fdent *slot_put(struct fdent **slot, struct fdent *ent)
{
	struct fdent *old;

	__atomic_add_fetch(&fdtab_entries, ent != NULL, __ATOMIC_ACQ_REL);
	old = __atomic_exchange_n(slot, ent, __ATOMIC_ACQ_REL);
	__atomic_sub_fetch(&fdtab_entries, old != NULL, __ATOMIC_ACQ_REL);
	return old;
}

static void number_told(int fd)
{
	if (fd <= 2 && fdtab_standard)
		fdtab_standard(fd);
}

int fdtab_set(int fd, struct fdent *ent)
{
	struct fdent **slot = slot_of(fd), *old;

	if (!slot)
		return -ENOMEM;
	old = slot_put(slot, ent);
	if (old)
		number_drop(old);
	fdtab_put(old);
	number_told(fd);
	return 0;
}

int fdtab_replace(int fd, struct fdent *ent)
{
	struct fdent **slot = ent || fdtab_peek(fd) ? slot_of(fd) : NULL;

	if (!slot)
		return ent ? -ENOMEM : 0;
	number_gone(slot_put(slot, ent));
	number_told(fd);
	return 0;
}

struct fdent *fdtab_take(int fd, struct fdent *ent, bool *last)
{
	struct fdent *have = ent ? ent : fdtab_peek(fd);
	bool none;

	if (!have || !fdtab_peek(fd))
		return NULL;
	if (!__atomic_compare_exchange_n(slot_of(fd), &have, NULL, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return NULL;
	__atomic_sub_fetch(&fdtab_entries, 1, __ATOMIC_ACQ_REL);
	number_told(fd);
	none = number_drop(have);
	if (last)
		*last = none;
	return have;
}

void fdtab_each(void (*fn)(int fd, struct fdent *ent, void *ctx), void *ctx)
{
	for (unsigned int page = 0; page < FDTAB_MAX / FDTAB_PAGE; page++) {
		if (!__atomic_load_n(&fdtab_pages[page], __ATOMIC_ACQUIRE))
			continue;
		for (unsigned int i = 0; i < FDTAB_PAGE; i++) {
			int fd = (int)(page * FDTAB_PAGE + i);
			struct fdent *ent = fdtab_ref(fd);

			if (!ent)
				continue;
			fn(fd, ent, ctx);
			fdtab_put(ent);
		}
	}
}
