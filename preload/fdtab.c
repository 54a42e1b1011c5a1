/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of descriptors: two levels, read without a lock.
 *
 * Getting an entry is optimistic: load the pointer, count up unless the count is nought, and
 * look again whether the pointer still stands there. That the memory of a dead entry is still
 * that of an entry, by the pools, makes it sound.
 */
#include "preload/fdtab.h"

#include <errno.h>

#include "base/map.h"

struct fdent **fdtab_pages[FDTAB_MAX / FDTAB_PAGE];

static bool refs_up(struct fdent *ent)
{
	uint32_t refs = __atomic_load_n(&ent->refs, __ATOMIC_RELAXED);

	while (refs)
		if (__atomic_compare_exchange_n(&ent->refs, &refs, refs + 1, true, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

struct fdent *fdtab_get(int fd, enum fd_kind kind)
{
	struct fdent *ent;

	while ((ent = fdtab_peek(fd))) {
		if (!refs_up(ent))
			continue;
		if (fdtab_peek(fd) == ent && ent->kind == kind)
			return ent;
		fdtab_put(ent);
		if (fdtab_peek(fd) == ent)
			return NULL;
	}
	return NULL;
}

void fdtab_hold(struct fdent *ent)
{
	__atomic_add_fetch(&ent->refs, 1, __ATOMIC_ACQ_REL);
}

void fdtab_put(struct fdent *ent)
{
	if (ent && __atomic_sub_fetch(&ent->refs, 1, __ATOMIC_ACQ_REL) == 0)
		ent->release(ent);
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
	return &have[(unsigned int)fd % FDTAB_PAGE];
}

int fdtab_set(int fd, struct fdent *ent)
{
	struct fdent **slot = slot_of(fd);

	if (!slot)
		return -ENOMEM;
	fdtab_put(__atomic_exchange_n(slot, ent, __ATOMIC_ACQ_REL));
	return 0;
}

struct fdent *fdtab_take(int fd, struct fdent *ent)
{
	struct fdent *have = ent ? ent : fdtab_peek(fd);

	if (!have || !fdtab_peek(fd))
		return NULL;
	return __atomic_compare_exchange_n(slot_of(fd), &have, NULL, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE)
		       ? have
		       : NULL;
}

void fdtab_each(void (*fn)(int fd, struct fdent *ent, void *ctx), void *ctx)
{
	for (unsigned int page = 0; page < FDTAB_MAX / FDTAB_PAGE; page++) {
		if (!__atomic_load_n(&fdtab_pages[page], __ATOMIC_ACQUIRE))
			continue;
		for (unsigned int i = 0; i < FDTAB_PAGE; i++) {
			int fd = (int)(page * FDTAB_PAGE + i);
			struct fdent *ent = fdtab_peek(fd);

			if (ent)
				fn(fd, ent, ctx);
		}
	}
}
