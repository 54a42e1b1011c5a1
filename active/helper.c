/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the server does for programs (warp/active_bpf.h). Each helper looks at the program's memory
 * through the engine only, and takes fuel for what it does there.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "active/helper_list.h"
#include "active/inside.h"
#include "base/bits.h"

/* A call cannot be interrupted, so it is short */
enum {
	BYTES_PER_FUEL = 32,
	ALLOC_FUEL = 64,
	CALL_MAX = 1 << 20,
	LOCK_FUEL = 8,
	BUSY_FUEL = 4000, /* so that a run which waits for the lock has few tries in a turn */
	TURN_FUEL = 1 << 20,
};

/* Memory of the program's and the fuel for going through it; *out is not changed for no bytes */
static int memory_of(struct ebpf_run *run, uint64_t addr, uint64_t len, unsigned int rights,
		     void **out)
{
	if (len > CALL_MAX)
		return -E2BIG;
	ebpf_run_charge(run, len / BYTES_PER_FUEL);
	return len ? ebpf_run_memory(run, addr, len, rights, out) : 0;
}

static int copy(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	void *to = NULL, *from = NULL;
	uint64_t len = arg[2];
	int ret = memory_of(run, arg[0], len, EBPF_MAY_WRITE, &to);

	if (!ret)
		ret = memory_of(run, arg[1], len, EBPF_MAY_READ, &from);
	if (!ret && len)
		memmove(to, from, len);
	*result = 0;
	return ret;
}

static int fill(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	void *to = NULL;
	int ret = memory_of(run, arg[0], arg[2], EBPF_MAY_WRITE, &to);

	if (!ret && arg[2])
		memset(to, (uint8_t)arg[1], arg[2]);
	*result = 0;
	return ret;
}

static int compare(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	void *a = NULL, *b = NULL;
	uint64_t len = arg[2];
	int ret = memory_of(run, arg[0], len, EBPF_MAY_READ, &a);

	if (!ret)
		ret = memory_of(run, arg[1], len, EBPF_MAY_READ, &b);
	*result = !ret && len ? (uint64_t)(int64_t)memcmp(a, b, len) : 0;
	return ret;
}

static int find(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	void *from = NULL;
	uint64_t len = arg[2];
	int ret = memory_of(run, arg[0], len, EBPF_MAY_READ, &from);
	const uint8_t *at = !ret && len ? memchr(from, (uint8_t)arg[1], len) : NULL;

	*result = at ? (uint64_t)(at - (const uint8_t *)from) : len;
	return ret;
}

static const struct active_view *view_of(struct ebpf_run *run, uint64_t number)
{
	const struct active_call *call = ebpf_run_cookie(run);

	return number < call->count ? call->views[number] : NULL;
}

static int region(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	const struct active_view *view = view_of(run, arg[0]);

	*result = view ? (uintptr_t)view->region->memory : 0;
	return 0;
}

static int region_size(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	const struct active_view *view = view_of(run, arg[0]);

	*result = view ? view->region->size : 0;
	return 0;
}

/* What the client has allocated, in 64-bit numbers; a block that another gives back counts for 0 */
static void heap_used_sub(uint64_t *used, uint64_t bytes)
{
	uint64_t old = __atomic_load_n(used, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(used, &old, old > bytes ? old - bytes : 0, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Counted before it is taken, so that several at once do not get past the limit */
static bool block_take(const struct active_call *call, struct active_heap *heap, uint64_t size,
		       uint64_t *at)
{
	uint64_t got = active_heap_block(size);

	if (__atomic_add_fetch(call->heap_used, got, __ATOMIC_RELAXED) <= call->heap_max &&
	    !active_heap_alloc(heap, size, at, &got))
		return true;
	heap_used_sub(call->heap_used, got);
	return false;
}

static int alloc(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	const struct active_call *call = ebpf_run_cookie(run);
	const struct active_view *view = view_of(run, arg[0]);
	const struct warp_active_region *r;
	uint64_t at;

	*result = 0;
	if (!view || !view->region->heap)
		return -ENOSYS;
	if (!(call->rights[arg[0]] & WARP_ACTIVE_WRITE))
		return -EACCES;
	r = view->region;
	if (arg[1] <= r->size && block_take(call, r->heap, arg[1], &at))
		*result = (uintptr_t)r->memory + r->heap_offset + at;
	ebpf_run_charge(run, ALLOC_FUEL);
	return 0;
}

static int release(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	const struct active_call *call = ebpf_run_cookie(run);
	uint64_t got;

	*result = (uint64_t)-EINVAL;
	for (size_t i = 0; i < call->count; i++) {
		const struct warp_active_region *r = call->views[i]->region;
		uint64_t start = (uintptr_t)r->memory + r->heap_offset;

		if (!r->heap || arg[0] < start || arg[0] - start >= r->size ||
		    !(call->rights[i] & WARP_ACTIVE_WRITE))
			continue;
		if (!active_heap_free(r->heap, arg[0] - start, &got)) {
			heap_used_sub(call->heap_used, got);
			*result = 0;
		}
	}
	ebpf_run_charge(run, ALLOC_FUEL);
	return 0;
}

/* --- the lock of a region ------------------------------------------------------------------- */

/* A run that may change it, or NULL */
static struct warp_active_region *writable(struct ebpf_run *run, uint64_t number)
{
	const struct active_call *call = ebpf_run_cookie(run);
	const struct active_view *view = view_of(run, number);

	return view && (call->rights[number] & WARP_ACTIVE_WRITE) ? view->region : NULL;
}

/* Does not wait, for this thread may be the one that the owner needs */
static int lock(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	struct warp_active_region *r = writable(run, arg[0]);
	struct active_call *none = NULL;

	if (!r)
		return -EACCES;
	ebpf_run_charge(run, LOCK_FUEL);
	*result = (uint64_t)-EBUSY;
	/* Behind unlock() or active_locks_break() of the last owner */
	if (__atomic_compare_exchange_n(&r->owner, &none, ebpf_run_cookie(run), false,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		*result = __atomic_exchange_n(&r->broken, false, __ATOMIC_RELAXED);
	else
		ebpf_run_charge(run, BUSY_FUEL);
	return 0;
}

static int unlock(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	struct warp_active_region *r = writable(run, arg[0]);
	struct active_call *call = ebpf_run_cookie(run);

	if (!r)
		return -EACCES;
	/* With RELEASE: what this run wrote is there for the next owner, in lock() */
	*result = __atomic_compare_exchange_n(&r->owner, &call, NULL, false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED)
			  ? 0
			  : (uint64_t)-EPERM;
	return 0;
}

void active_locks_break(struct active_call *call)
{
	for (size_t i = 0; i < call->count; i++) {
		struct warp_active_region *r = call->views[i]->region;

		if (__atomic_load_n(&r->owner, __ATOMIC_RELAXED) != call)
			continue;
		__atomic_store_n(&r->broken, true, __ATOMIC_RELAXED);
		__atomic_store_n(&r->owner, NULL, __ATOMIC_RELEASE); /* lock() acquires */
	}
}

/* The disk takes its time, so the thread must be one that nobody waits for */
static int sync_back(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	struct warp_active_region *r = writable(run, arg[0]);
	const struct active_call *call = ebpf_run_cookie(run);

	if (!r)
		return -EACCES;
	*result = 1;
	if (call->brief)
		ebpf_run_charge(run, TURN_FUEL);
	else
		*result = msync(r->memory, r->size, MS_SYNC) ? (uint64_t) - (int64_t)errno : 0;
	return 0;
}

#define ROW(name, number, args, call) { name, number, args, call },
static const struct ebpf_helper list[] = { ACTIVE_HELPER_LIST(ROW) };

const struct ebpf_helpers active_helpers = { list, base_array_size(list) };
