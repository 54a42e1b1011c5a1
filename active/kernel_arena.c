/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arenas. What lies in one another program of the same arena may read when a processor guesses
 * wrong, and could reach if a check of ours were missing. So a client's own regions are in an arena
 * of the client's own, and of those with a number a client uses only what it may read as a whole.
 *
 * The constants are not taken before a program is there, and then stay. A region has room without
 * memory up to the next power of two, as those have that are not in the kernel (active/region.c).
 * So all regions together take less than three times their size of the addresses, with a page
 * behind each.
 */
#include "active/kernel_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "active/kernel_code.h"
#include "base/bits.h"

enum { PAGE = 4096 };

static size_t constants_at(const struct active_arenas *all)
{
	return base_align_up(all->processors * sizeof(struct active_kernel_block), PAGE);
}

static size_t regions_at(const struct active_arenas *all)
{
	return constants_at(all) + (size_t)all->programs * ACTIVE_ARENA_CONSTANTS;
}

void active_arenas_init(struct active_arenas *all, size_t size, unsigned int programs)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);

	base_list_init(&all->list);
	all->size = base_align_up(size, PAGE);
	all->processors = processors < 1 ? 1 : (unsigned int)processors;
	all->programs = programs;
}

void active_arenas_uninit(struct active_arenas *all)
{
	struct base_list *node;

	while ((node = base_list_pop_front(&all->list)))
		active_arena_destroy(base_list_entry(node, struct active_arena, link));
}

struct active_arena *active_arena_find(const struct active_arenas *all,
				       const struct active_session *owner, unsigned int number)
{
	struct base_list *at, *next;

	base_list_foreach(at, next, &all->list) {
		struct active_arena *a = base_list_entry(at, struct active_arena, link);

		if (a->owner == owner && a->number == number)
			return a;
	}
	return NULL;
}

static int arena_create(struct active_arenas *all, struct active_arena **out)
{
	struct active_arena *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return -ENOMEM;
	base_list_init(&a->link);
	ret = bpfkernel_arena_create(regions_at(all) + 3 * all->size, &a->memory);
	if (ret) {
		free(a);
		return ret;
	}
	ret = bpfkernel_arena_fill(&a->memory, 0, constants_at(all));
	if (ret)
		active_arena_destroy(a);
	else
		*out = a;
	return ret;
}

int active_arena_get(struct active_arenas *all, const struct active_session *owner,
		     unsigned int number, struct active_arena **out)
{
	struct active_arena *a = active_arena_find(all, owner, number);
	int ret = a ? 0 : arena_create(all, &a);

	if (ret)
		return ret;
	if (base_list_empty(&a->link)) {
		a->owner = owner;
		a->number = number;
		base_list_push_back(&all->list, &a->link);
	}
	*out = a;
	return 0;
}

void active_arena_destroy(struct active_arena *arena)
{
	if (!arena)
		return;
	base_list_remove(&arena->link);
	bpfkernel_arena_destroy(&arena->memory);
	free(arena);
}

int active_arena_region(const struct active_arenas *all, struct active_arena *arena, size_t size,
			uint8_t **out, size_t *room)
{
	size_t at = regions_at(all) + arena->end, power = PAGE;
	int ret = size > all->size - arena->used ? -ENOMEM : 0;

	if (!ret)
		ret = bpfkernel_arena_fill(&arena->memory, at, size);
	if (ret)
		return ret;
	while (power < size)
		power *= 2;
	arena->used += base_align_up(size, PAGE);
	/* A wrong guess of the processor's may go past a region's room */
	arena->end += power + PAGE;
	*out = arena->memory.memory + at;
	*room = power;
	return 0;
}

int active_arena_constants(const struct active_arenas *all, const struct active_arena *arena,
			   unsigned int slot, uint32_t *out)
{
	size_t at = constants_at(all) + (size_t)slot * ACTIVE_ARENA_CONSTANTS;
	int ret = bpfkernel_arena_fill(&arena->memory, at, ACTIVE_ARENA_CONSTANTS);

	if (!ret)
		*out = (uint32_t)at;
	return ret;
}

/* The kernel counts on meanwhile, each word at once */
void active_arena_count(const struct active_arenas *all, const struct active_arena *arena,
			struct active_kernel_count *count)
{
	const struct active_kernel_block *blocks = active_arena_blocks(arena);

	for (unsigned int i = 0; i < all->processors; i++) {
		count->runs += base_once(blocks[i].block.own[ACTIVE_KERNEL_RUNS]);
		count->fuel += base_once(blocks[i].block.own[ACTIVE_KERNEL_FUEL]);
	}
}

struct active_kernel_block *active_arena_blocks(const struct active_arena *arena)
{
	return (void *)arena->memory.memory;
}
