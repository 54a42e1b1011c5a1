/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The page of leases.
 *
 * A slot has a line of the cache to itself. All its memory is taken when the page is made, for to
 * touch it on a full tmpfs would be SIGBUS. A file that is of another size, another user's or not
 * closed to others is not used; what stands in it is judged each time it is read.
 */
#include "preload/guard/lease.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/runfile.h"

/*
 * After the first time that others were found to want a processor, then four times that, and so
 * on: to find out costs them a tick of the kernel's clock, up to 4 ms
 */
#define BUSY_FIRST (10 * BASE_NS_PER_MS)
#define BUSY_STEPS 4
/* Found so often in a row, it is a program that runs on, and no moment's work */
#define BUSY_LASTS 1
/* So long after its end it is remembered how long that was, and no shorter than it was */
#define BUSY_MEMORY (20 * BASE_NS_PER_MS)

struct slot {
	uint64_t lease; /* atomic: until when; pairs with the other spinners' */
	uint64_t busy;	/* atomic: until when others want the processor */
	uint32_t steps; /* atomic: how long that was, the last time */
	uint32_t pad[11];
};
_Static_assert(sizeof(struct slot) == 64, "a slot is a line of the cache");

#define PAGE_SIZE (LEASE_SLOTS * sizeof(struct slot))

/* No processor's: until when others want any of them */
#define ANY (LEASE_SLOTS - 1)

static struct slot *slots;
static unsigned int online;

void lease_init(const char *path, unsigned int processors)
{
	void *page = NULL;

	online = base_min(processors, (unsigned int)ANY);
	base_map_destroy(slots, PAGE_SIZE);
	slots = NULL;
	if ((path && !base_runfile_page(path, PAGE_SIZE, &page)) ||
	    !base_map_create_shared(PAGE_SIZE, &page))
		slots = page;
}

static struct slot *slot_of(unsigned int cpu)
{
	return slots && cpu < ANY ? &slots[cpu] : NULL;
}

static bool is_ahead(uint64_t time, uint64_t now)
{
	return time > now && time - now <= LEASE_MAX;
}

bool lease_take(unsigned int cpu, uint64_t now, uint64_t end)
{
	struct slot *s = slot_of(cpu);
	uint64_t old = s ? __atomic_load_n(&s->lease, __ATOMIC_RELAXED) : 0;

	if (!s || is_ahead(old, now))
		return false;
	return __atomic_compare_exchange_n(&s->lease, &old, end, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

void lease_give(unsigned int cpu, uint64_t end)
{
	struct slot *s = slot_of(cpu);

	if (s)
		__atomic_compare_exchange_n(&s->lease, &end, 0, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

bool lease_is_busy(unsigned int cpu, uint64_t now)
{
	struct slot *s = slot_of(cpu);

	return s && is_ahead(__atomic_load_n(&s->busy, __ATOMIC_RELAXED), now);
}

static uint64_t busy_length(uint32_t steps)
{
	return BUSY_FIRST << 2 * steps;
}

/* Whether others still want it can only be found out by a spin, so the time of rest grows */
void lease_busy(unsigned int cpu, uint64_t now)
{
	struct slot *s = slot_of(cpu);
	uint64_t before = s ? __atomic_load_n(&s->busy, __ATOMIC_RELAXED) : 0;
	uint32_t steps = s ? __atomic_load_n(&s->steps, __ATOMIC_RELAXED) % BUSY_STEPS : 0;

	if (!s)
		return;
	if (before && before <= now && now - before <= base_max(BUSY_MEMORY, busy_length(steps)))
		steps = base_min(steps + 1, (uint32_t)BUSY_STEPS - 1);
	else
		steps = 0;
	__atomic_store_n(&s->steps, steps, __ATOMIC_RELAXED);
	__atomic_store_n(&s->busy, now + busy_length(steps), __ATOMIC_RELAXED);
	if (steps >= BUSY_LASTS)
		__atomic_store_n(&slots[ANY].busy, now + busy_length(steps), __ATOMIC_RELAXED);
}

void lease_busy_briefly(unsigned int cpu, uint64_t now)
{
	struct slot *s = slot_of(cpu);

	if (s && !lease_is_busy(cpu, now))
		__atomic_store_n(&s->busy, now + BUSY_FIRST, __ATOMIC_RELAXED);
}

bool lease_takes_last(unsigned int cpu, uint64_t now)
{
	if (!slots || !is_ahead(__atomic_load_n(&slots[ANY].busy, __ATOMIC_RELAXED), now))
		return false;
	for (unsigned int i = 0; i < online; i++) {
		uint64_t lease = __atomic_load_n(&slots[i].lease, __ATOMIC_RELAXED);

		if (i != cpu && !is_ahead(lease, now) && !lease_is_busy(i, now))
			return false;
	}
	return true;
}
