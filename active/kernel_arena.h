/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_KERNEL_ARENA_H
#define ACTIVE_KERNEL_ARENA_H

/*
 * Arenas of a server's door in the kernel: memory that its programs reach. Each has blocks of runs,
 * constants of programs, then regions. The caller has a lock, but for active_arena_constants(): the
 * slot is the caller's, and so is the program that keeps the arena there.
 */

#include "active/inside.h"
#include "bpfkernel/system.h"

enum { ACTIVE_ARENA_CONSTANTS = 16384 }; /* of one program */

struct active_arena {
	struct base_list link;
	const struct active_session *owner; /* whose own it is; NULL: it has a number */
	unsigned int number;
	struct bpfkernel_arena memory;
	size_t used;	       /* by regions, */
	size_t end;	       /* and where the next one can be; there is room between them */
	unsigned int programs; /* that are there; active/kernel.c */
};

struct active_arenas {
	struct base_list list;
	size_t size; /* of all regions in one arena, at most */
	unsigned int processors, programs;
};

void active_arenas_init(struct active_arenas *all, size_t size, unsigned int programs);
void active_arenas_uninit(struct active_arenas *all);
struct active_arena *active_arena_find(const struct active_arenas *all,
				       const struct active_session *owner, unsigned int number);
/* The same, and makes one where there is none */
int active_arena_get(struct active_arenas *all, const struct active_session *owner,
		     unsigned int number, struct active_arena **out);
void active_arena_destroy(struct active_arena *arena);
/*
 * Memory for a region, which is zero, and *room bytes from there on of which nothing else is
 * anything; it stays as long as the arena. -ENOMEM
 */
int active_arena_region(const struct active_arenas *all, struct active_arena *arena, size_t size,
			uint8_t **out, size_t *room);
/* Memory for the constants of program @slot, and where in the arena it is */
int active_arena_constants(const struct active_arenas *all, const struct active_arena *arena,
			   unsigned int slot, uint32_t *out);
/* What programs of all time have done there, added to *count */
struct active_kernel_count {
	uint64_t runs, fuel;
};

void active_arena_count(const struct active_arenas *all, const struct active_arena *arena,
			struct active_kernel_count *count);
/* The blocks, which are at its beginning: one for each processor */
struct active_kernel_block *active_arena_blocks(const struct active_arena *arena);

#endif
