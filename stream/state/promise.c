/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What connections with a name may come to need: memory of the folder that is promised to them, by
 * all processes of the user together. It is one number, in a page that they share.
 *
 * Each file says which of its cells are counted. So who ends a connection, in whatever process,
 * takes away what the connection's maker has added, and nobody does so twice. What the killed have
 * left there is counted until the folder seems to have no room: then the number is made anew, of
 * the files that have a name. It may be wrong by what comes and goes meanwhile, or what a hostile
 * process writes: then connections have no name, or the folder has to take more than half.
 */
#include "stream/state/slab.h"

#include <errno.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/runfile.h"
#include "stream/place.h"

#define NAME "promised-1"
#define PAGE 4096u
/* Folders of a process, which may be one user after another */
#define FOLDERS 64
/* Between two counts: at least so long, and so many times as long as the last one took */
#define COUNT_PAUSE BASE_NS_PER_S
#define COUNT_PART 100

struct folder {
	struct stream_place place;
	uint64_t *octets; /* atomic: of the page, which is never taken away */
	bool taken;	  /* atomic */
};

/* Of a process that is many users, as a file server may be, there are more of these */
static struct part {
	struct part *next; /* atomic */
	struct folder folder[FOLDERS];
} first;

static struct part *part_next(const struct part *part)
{
	return __atomic_load_n(&part->next, __ATOMIC_ACQUIRE);
}

/* And its page, which another thread may forget meanwhile */
static struct folder *folder_find(struct stream_place place, uint64_t **octets)
{
	for (struct part *p = &first; p; p = part_next(p)) {
		for (struct folder *f = p->folder; f < p->folder + FOLDERS; f++) {
			*octets = __atomic_load_n(&f->octets, __ATOMIC_ACQUIRE);
			if (*octets && f->place.dir == place.dir && f->place.user == place.user)
				return f;
		}
	}
	return NULL;
}

static struct folder *folder_take(struct part *p)
{
	for (struct folder *f = p->folder; f < p->folder + FOLDERS; f++)
		if (!__atomic_exchange_n(&f->taken, true, __ATOMIC_ACQUIRE))
			return f;
	return NULL;
}

/* Behind @last, where another thread may have added one by now */
static int part_add(struct part *last)
{
	struct part *more, *none = NULL;
	int err = base_map_create(sizeof(*more), (void **)&more);

	if (err)
		return err;
	if (!__atomic_compare_exchange_n(&last->next, &none, more, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		base_map_destroy(more, sizeof(*more));
	return 0;
}

/* Two threads may do so at once: then it is there twice */
static int folder_add(struct stream_place place, uint64_t *octets)
{
	struct part *p = &first;
	struct folder *f;
	int err = 0;

	while (!(f = folder_take(p)) && !err) {
		err = part_next(p) ? 0 : part_add(p);
		p = err ? p : part_next(p);
	}
	if (!f)
		return err;
	f->place = place;
	__atomic_store_n(&f->octets, octets, __ATOMIC_RELEASE);
	return 0;
}

int stream_promises(struct stream_place place, uint64_t **out)
{
	char path[BASE_RUNFILE_PATH];
	int err;

	if (folder_find(place, out))
		return 0;
	err = stream_place_file(path, place, NAME);
	if (!err)
		err = base_runfile_page(path, PAGE, (void **)out);
	if (err)
		return err;
	err = folder_add(place, *out);
	if (err)
		base_map_destroy(*out, PAGE);
	return err;
}

void stream_promises_forget(struct stream_place place)
{
	struct folder *f;
	uint64_t *octets;

	while ((f = folder_find(place, &octets))) {
		__atomic_store_n(&f->octets, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&f->taken, false, __ATOMIC_RELEASE);
	}
}

/* --- counting --- */

static bool size_add(uint64_t *octets, uint32_t chunk)
{
	return __builtin_add_overflow(base_once(*octets), stream_file_size(1, chunk), octets);
}

static int with_one_more(struct stream_place place, uint32_t chunk, uint64_t *out)
{
	uint64_t *octets;
	int err = stream_promises(place, &octets);

	if (err)
		return err;
	*out = base_once(*octets);
	return size_add(out, chunk) ? -ENOSPC : 0;
}

int stream_promise_room(struct stream_place place, uint32_t chunk)
{
	uint64_t octets;
	int err = with_one_more(place, chunk, &octets);

	return err ? err : stream_place_room(place, octets);
}

int stream_promise_fits(struct stream_place place, uint32_t chunk)
{
	uint64_t octets;
	int err = with_one_more(place, chunk, &octets);

	return err ? err : stream_place_share(place, octets);
}

/* Never below nothing, whatever others have counted */
static void take_away(uint64_t *octets, uint64_t size)
{
	uint64_t was = base_once(*octets);

	while (!__atomic_compare_exchange_n(octets, &was, was > size ? was - size : 0, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void stream_promise_set(struct stream_slab *slab, uint32_t cell, bool on)
{
	uint64_t bit = 1ull << cell, *at = &slab->at->promised, was;
	uint64_t size = stream_file_size(1, slab->chunk);

	if (!slab->promises)
		return;
	was = on ? __atomic_fetch_or(at, bit, __ATOMIC_ACQ_REL)
		 : __atomic_fetch_and(at, ~bit, __ATOMIC_ACQ_REL);
	if (on && !(was & bit))
		__atomic_add_fetch(slab->promises, size, __ATOMIC_RELAXED);
	else if (!on && was & bit)
		take_away(slab->promises, size);
}

static void promises_drop(const struct stream_slab *slab)
{
	uint64_t were = __atomic_exchange_n(&slab->at->promised, 0, __ATOMIC_ACQ_REL);
	uint64_t cells = (uint64_t)__builtin_popcountll(were & stream_cells_mask(slab->cells));

	if (slab->promises)
		take_away(slab->promises, cells * stream_file_size(1, slab->chunk));
}

/* Who makes one more meanwhile finds the mark when it has it */
void stream_slab_names_drop(const struct stream_slab *slab)
{
	uint64_t named;

	__atomic_add_fetch(&slab->at->swept, 1, __ATOMIC_SEQ_CST);
	named = __atomic_exchange_n(&slab->at->named, 0, __ATOMIC_ACQ_REL);
	for (named &= stream_cells_mask(slab->cells); named; named &= named - 1)
		stream_cookie_remove(slab,
				     base_once(slab->at->cell[__builtin_ctzll(named)].cookie));
	promises_drop(slab);
	stream_name_remove(slab);
}

/* --- anew --- */

/* One that is not used may have no memory yet: it is about to be made */
static bool is_counted(const struct stream_slab_cells *c, uint32_t cell)
{
	struct stream_state *st = &c->at->cell[cell];

	if (!(base_once(c->at->used) & 1ull << cell) || !base_load(&st->magic))
		return stream_slab_has_maker(c);
	return stream_cell_is_held(st);
}

static bool count_file(const char *path, void *ctx)
{
	uint64_t *sum = ctx, left;
	struct stream_slab_cells c;

	if (stream_slab_map(path, &c))
		return false;
	left = __atomic_load_n(&c.at->promised, __ATOMIC_ACQUIRE) & stream_cells_mask(c.cells);
	for (; left; left &= left - 1) {
		uint32_t cell = (uint32_t)__builtin_ctzll(left);

		if (is_counted(&c, cell))
			size_add(sum, c.chunk);
		else
			__atomic_fetch_and(&c.at->promised, ~(1ull << cell), __ATOMIC_ACQ_REL);
	}
	base_map_destroy(c.at, c.size);
	return false;
}

static uint64_t next; /* atomic: not to be counted before */

static bool is_time(uint64_t now)
{
	uint64_t was = base_once(next);

	return now >= was && __atomic_compare_exchange_n(&next, &was, now + COUNT_PAUSE, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void pause_set(uint64_t begin)
{
	uint64_t now = base_now(), took = base_max(COUNT_PAUSE, COUNT_PART * (now - begin));

	__atomic_store_n(&next, now + took, __ATOMIC_RELAXED);
}

bool stream_promises_count(struct stream_place place)
{
	uint64_t *octets, was, sum = 0, begin = base_now();

	if (stream_promises(place, &octets) || !is_time(begin))
		return false;
	was = base_once(*octets);
	stream_place_slabs(place, count_file, &sum);
	/* Not if others have changed it: what they counted may be in the sum, or not */
	__atomic_compare_exchange_n(octets, &was, sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	pause_set(begin);
	return true;
}
