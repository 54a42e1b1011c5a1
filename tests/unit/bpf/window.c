/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a wrong guess of the processor could reach. Windows are filled for regions of all sizes, and
 * must lie in the region's room; and machine code runs with its checks made to pass always, as a
 * processor does for a moment when it guesses so: the masks alone must keep it inside.
 */
#include <sys/mman.h>

#include "both.h"
#include "bpf/program.h"
#include "bpf/state.h"

enum { ADDR = 0x4000, ROOM = 1024 };

static uint8_t memory[ROOM + 64] __attribute__((aligned(64)));
static const uint8_t spans[EBPF_SPANS] = { 1, 2, 4, 8, 24, 64 };

static struct ebpf_run *run_with(const struct ebpf_object *obj, const struct ebpf_region *region,
				 uint64_t arg)
{
	const struct ebpf_params params = { .regions = region, .count = 1, .arg = { arg } };
	struct ebpf_run *run;

	cr_assert(!ebpf_run_create(&run) && !ebpf_run_start(run, obj, &params));
	return run;
}

static void window_judge(const struct ebpf_window *w, const struct ebpf_region *region, uint64_t at,
			 uint64_t len)
{
	uint64_t start = w->addr - region->addr, room = region->room ? region->room : region->size;

	cr_assert(base_is_pow2(w->mask + 1));
	cr_assert_leq(start + w->mask + 1, room, "size %lu room %lu: %lu + %lu", region->size, room,
		      start, w->mask);
	cr_assert_eq(w->host, (uint8_t *)region->host + start);
	cr_assert(start <= at && at + len <= start + w->mask + 1);
	for (int i = 0; i < EBPF_SPANS; i++) {
		if (!spans[i])
			continue;
		cr_assert_leq(w->limit[i], w->mask + 1);
		if (w->limit[i])
			cr_assert_leq(start + w->limit[i] - 1 + spans[i], region->size);
	}
}

Test(bpf_window, lies_in_the_room)
{
	const struct ebpf_insn insns[] = { MOV(0, 0), EXIT };
	struct ebpf_object *obj = both_load(insns, 2, NULL, 0);

	for (uint64_t size = 1; size <= 200; size++)
		for (uint64_t room = 0; room <= 300; room += room ? 37 : size) {
			const struct ebpf_region region = { memory, ADDR, size, room,
							    EBPF_MAY_READ };
			struct ebpf_run *run = run_with(obj, &region, 0);

			for (uint64_t at = 0; at < size; at += 1 + size / 16)
				for (int i = 0; i < 6; i++) {
					struct ebpf_window w = { 0 };
					bool filled = ebpf_window_fill(run, &w, ADDR + at, spans[i],
								       EBPF_MAY_READ, spans);

					if (filled)
						window_judge(&w, &region, at, spans[i]);
					cr_assert(filled || at + spans[i] > size ||
						  spans[i] * 2 > size);
				}
			ebpf_run_destroy(run);
		}
	ebpf_object_destroy(obj);
}

/* Regions of exactly a power of two, between pages that nobody may touch */
static uint8_t *guarded(size_t size)
{
	uint8_t *at = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(at, MAP_FAILED);
	cr_assert_not(mprotect(at + 4096, 4096, PROT_READ | PROT_WRITE));
	return at + 2 * 4096 - size;
}

static void checks_disable(struct ebpf_run *run)
{
	for (int i = 0; i < EBPF_WINDOWS; i++)
		memset(run->window[i].limit, 0xff, sizeof(run->window[i].limit));
}

static uint64_t unchecked(const struct ebpf_insn *insns, size_t count, uint8_t *host, size_t size,
			  uint64_t arg)
{
	const struct ebpf_region region = { host, ADDR, size, 0,
					    EBPF_MAY_READ | EBPF_MAY_WRITE | EBPF_MAY_ATOMIC };
	struct ebpf_object *obj = both_load(insns, count, NULL, 0);
	struct ebpf_run *run = run_with(obj, &region, arg);
	struct ebpf_result r;

	checks_disable(run);
	cr_assert_eq(ebpf_run_continue(run, 100, &r), EBPF_DONE);
	ebpf_run_destroy(run);
	ebpf_object_destroy(obj);
	return r.value;
}

/* Any address at all: a byte of the region is read, or written, and no other memory */
Test(bpf_window, masks_hold_when_checks_do_not)
{
	static const struct ebpf_insn load[] = { LDX(EBPF_B, 0, 1, 0), EXIT };
	static const struct ebpf_insn far[] = { LDX(EBPF_B, 0, 1, 32767), EXIT };
	static const struct ebpf_insn store[] = { ST(EBPF_B, 1, -32768, 7), MOV(0, 0), EXIT };
	static const struct ebpf_insn atomic[] = { MOV(2, 1), ATOMIC(EBPF_W, EBPF_ADD, 1, 2, 0),
						   MOV(0, 0), EXIT };
	uint64_t seed = 1;

#ifndef __x86_64__
	cr_skip_test("the machine has no JIT");
#endif
	for (size_t size = 8; size <= 1024; size *= 2) {
		uint8_t *host = guarded(size);

		for (size_t i = 0; i < size; i++)
			host[i] = (uint8_t)(i * 3);
		for (int i = 0; i < 200; i++) {
			uint64_t addr = seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint64_t at = (addr - ADDR) & (size - 1);

			cr_assert_eq(unchecked(load, 2, host, size, addr), (uint8_t)(at * 3));
			cr_assert_eq(unchecked(far, 2, host, size, addr - 32767),
				     (uint8_t)(at * 3));
		}
		for (int i = 0; i < 200; i++) {
			uint64_t addr = seed = seed * 6364136223846793005u + 1442695040888963407u;

			unchecked(store, 3, host, size, addr);
			unchecked(atomic, 4, host, size, addr & ~7ull);
		}
	}
}
