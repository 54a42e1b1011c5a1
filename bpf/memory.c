/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program's memory: the regions of its caller and its own stack, constants and data, in the
 * order of the addresses at which it sees them.
 *
 * Invariant: what leaves this file as a host address is inside of one region, with every byte of
 * the access, and so it is while the processor speculates past a check: the offset goes through a
 * mask that is 0 when the check would fail (nospec).
 */
#include "base/bits.h"
#include "bpf/state.h"

/* @at, or 0 if it is not below @size; without a branch, and out of the compiler's sight */
static uint64_t nospec(uint64_t at, uint64_t size)
{
	uint64_t below = (uint64_t)(~(int64_t)(at | (size - 1 - at)) >> 63);

	__asm__ volatile("" : "+r"(below));
	return at & below;
}

/* The last region that begins at @addr or before; the first if none does */
static struct ebpf_region *region_before(struct ebpf_run *run, uint64_t addr)
{
	struct ebpf_region *r = &run->region[run->region_last];
	size_t low = 0, high = run->region_count;

	if (addr - r->addr < r->size)
		return r;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (run->region[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	low -= low != 0;
	run->region_last = low;
	return &run->region[low];
}

static enum ebpf_status region_find(struct ebpf_run *run, uint64_t addr, uint64_t len,
				    unsigned int rights, struct ebpf_region **out)
{
	struct ebpf_region *r = region_before(run, addr);
	uint64_t at = addr - r->addr;

	if (at >= r->size || len > r->size - at)
		return EBPF_ADDRESS;
	if (rights & ~r->rights)
		return EBPF_RIGHTS;
	*out = r;
	return EBPF_DONE;
}

enum ebpf_status ebpf_memory_find(struct ebpf_run *run, uint64_t addr, uint64_t len,
				  unsigned int rights, void **out)
{
	struct ebpf_region *r = NULL;
	enum ebpf_status status = region_find(run, addr, len, rights, &r);

	if (status == EBPF_DONE)
		*out = (uint8_t *)r->host + nospec(addr - r->addr, r->size);
	return status;
}

static uint64_t pow2_below(uint64_t n)
{
	return 1ull << (63 - __builtin_clzll(n));
}

/*
 * Where the window of @width bytes begins that holds the access: at the region's beginning or end
 * if it can, so that the same window serves as much as possible
 */
static uint64_t window_start(uint64_t at, uint64_t len, uint64_t size, uint64_t width)
{
	if (at + len <= width)
		return 0;
	return at >= size - width ? size - width : at;
}

void ebpf_window_settle(void)
{
#ifdef __x86_64__
	__asm__ volatile("lfence" : : : "memory");
#endif
}

/* Lengths that no code checks have no limit; they are the last ones */
static void window_set(struct ebpf_window *window, const struct ebpf_region *r, uint64_t start,
		       uint64_t width, const uint8_t spans[EBPF_SPANS])
{
	uint64_t size = base_min(width, r->size - start);

	window->addr = r->addr + start;
	window->host = (uint8_t *)r->host + start;
	window->mask = width - 1;
	for (int i = 0; i < EBPF_SPANS && spans[i]; i++)
		window->limit[i] = size >= spans[i] ? size - spans[i] + 1 : 0;
}

bool ebpf_window_fill(struct ebpf_run *run, struct ebpf_window *window, uint64_t addr, uint64_t len,
		      unsigned int rights, const uint8_t spans[EBPF_SPANS])
{
	struct ebpf_region *r = NULL;
	uint64_t width;

	if (region_find(run, addr, len, rights, &r) != EBPF_DONE)
		return false;
	width = pow2_below(r->room);
	if (width < len)
		return false;
	window_set(window, r,
		   width >= r->size ? 0 : window_start(addr - r->addr, len, r->size, width), width,
		   spans);
	ebpf_window_settle();
	return true;
}

static size_t region_guess(const struct ebpf_run *run, size_t last, unsigned int rights)
{
	size_t n = 0;

	if (last < run->region_count && (run->region[last].rights & rights) == rights)
		return last;
	while ((run->region[n].rights & rights) != rights)
		n++;
	return n;
}

static bool region_stayed(const struct ebpf_run *run, size_t n, const struct ebpf_before *before)
{
	const struct ebpf_region *a = &run->region[n], *b = &before->regions[n];

	return n < run->region_count && n < before->count && a->host == b->host &&
	       a->addr == b->addr && a->size == b->size && a->room == b->room &&
	       a->rights == b->rights;
}

bool ebpf_windows_guess(struct ebpf_run *run, const uint8_t *rights, size_t count,
			const uint8_t spans[EBPF_SPANS], const struct ebpf_before *before)
{
	bool changed = false;

	for (size_t i = 0; i < count; i++) {
		size_t n = region_guess(run, run->window_region[i], rights[i]), same = 0;
		const struct ebpf_region *r = &run->region[n];

		if (region_stayed(run, run->window_region[i], before))
			continue;
		changed = true;
		run->window_region[i] = n;
		while (run->window_region[same] != n)
			same++;
		if (same < i)
			run->window[i] = run->window[same];
		else
			window_set(&run->window[i], r, 0, pow2_below(r->room), spans);
	}
	return changed;
}
