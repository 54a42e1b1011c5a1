/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slabs: files of the runtime folder, each with the states of up to STREAM_CELLS connections of the
 * process that made it. Each connection is a name of its file (a hard link), which is its socket's
 * cookie, so whoever finds a socket finds the file, and in it the cell with this cookie. The file
 * goes with the last of its names; nobody has to know that there are others.
 *
 * Only the process that made a slab takes cells of it, and it alone gives them out again. What it
 * gives out again no other process has ever come to: a cell that was shared, by fork() or by its
 * name, is spent for good, since nobody can know when the last who maps it has left the last call.
 * So cells are taken and given back under a lock of this process, and leaving takes no other.
 *
 * A new name is made from one that is there. That must be of a connection that no other process
 * has, for others may have given the name of a socket to another file. Where there is none, the
 * slab takes no more connections.
 *
 * Who adopts a connection maps its file for itself, also in the process that made it.
 *
 * To make a file, to map it and to touch its pages takes longer than the rest of a short
 * connection. So a slab that loses its last name gets one that is no connection's, which the next
 * connection renames; and the slab that lost its last connection last is kept.
 */
#include "stream/rsock.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/process.h"
#include "base/runfile.h"
#include "stream/place.h"

#define PAGE 4096u
#define CELLS_MIN 4u
/* Address space of one, unless a single connection needs more */
#define SIZE_MAX_WANTED (64ul << 20)
/* No process's: nobody takes cells of it */
#define AGE_NONE 0u

static struct base_lock lock; /* of all that follows, and of the slabs */
static struct base_list roomy = BASE_LIST_INIT(roomy);
static struct base_list files = BASE_LIST_INIT(files);
static size_t names;	     /* atomic: of connections, that this process made */
static unsigned int live;    /* streams of this process; atomic */
static unsigned int age = 1; /* grows in each child */
/* lock: nobody has a cell of it, and it is among the roomy all the same */
static struct rsock_slab *spare;
static bool no_spare; /* lock */

static void slabs_lock(void)
{
	base_lock_take(&lock, NULL, NULL);
}

static void slabs_unlock(void)
{
	base_lock_drop(&lock);
}

/* --- what a file looks like --- */

static uint64_t cells_mask(uint32_t cells)
{
	return ~0ull >> (64 - cells);
}

static size_t head_size(uint32_t cells)
{
	size_t size = sizeof(struct stream_slab) + cells * sizeof(struct stream_state);

	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t block_size(uint32_t chunk)
{
	return sizeof(struct stream_block) + STREAM_CHUNKS * (size_t)chunk;
}

static size_t slab_size(uint32_t cells, uint32_t chunk)
{
	return head_size(cells) + cells * (block_size(chunk) + sizeof(struct stream_maps));
}

size_t rsock_slab_room(uint32_t chunk)
{
	return (base_once(names) + 1) * slab_size(1, chunk);
}

static void head_init(struct stream_slab *at, uint32_t cells, uint32_t chunk)
{
	struct base_process self = base_process_self();

	at->version = STREAM_VERSION;
	at->cells = cells;
	at->chunk = chunk;
	at->octets = slab_size(cells, chunk);
	at->since = base_process_clock();
	at->pid = self.pid;
	at->space = self.space;
	at->rx_free = at->tx_free = cells_mask(cells);
	/* Last: before, it is nothing to adopt */
	rsock_store(&at->magic, STREAM_MAGIC);
}

static int head_judge(struct rsock_slab_cells *c)
{
	const struct stream_slab *at = c->at;

	c->cells = base_once(at->cells);
	c->chunk = base_once(at->chunk);
	if (rsock_load(&at->magic) != STREAM_MAGIC || base_once(at->version) != STREAM_VERSION)
		return -EPROTO;
	if (!c->cells || c->cells > STREAM_CELLS || !base_is_pow2(c->chunk) ||
	    c->chunk < STREAM_CHUNK_MIN || c->chunk > STREAM_RING_MAX)
		return -EPROTO;
	return base_once(at->octets) == c->size && slab_size(c->cells, c->chunk) == c->size
		       ? 0
		       : -EPROTO;
}

int rsock_slab_map(const char *path, struct rsock_slab_cells *out)
{
	int err =
		base_runfile_open(path, sizeof(struct stream_slab), (void **)&out->at, &out->size);

	if (err)
		return err;
	err = head_judge(out);
	if (err)
		base_map_destroy(out->at, out->size);
	return err;
}

struct stream_state *rsock_slab_find(const struct rsock_slab_cells *c, uint64_t cookie,
				     struct stream_state *after)
{
	uint32_t i = after ? (uint32_t)(after - c->at->cell) + 1 : 0;

	for (; i < c->cells; i++)
		if (base_once(c->at->cell[i].cookie) == cookie)
			return &c->at->cell[i];
	return NULL;
}

bool rsock_slab_has_maker(const struct rsock_slab_cells *c)
{
	struct base_process maker = { base_once(c->at->pid), base_once(c->at->space) };

	return base_process_lives(maker, base_once(c->at->since));
}

/* --- this process's view --- */

static int slab_alloc(const struct rsock_slab_cells *c, uint32_t rsocks, struct rsock_slab **out)
{
	size_t own = sizeof(struct rsock_slab) + rsocks * sizeof(struct rsock);
	struct rsock_slab *slab;
	int err = base_map_create(own, (void **)&slab);

	if (err)
		return err;
	slab->at = c->at;
	slab->size = c->size;
	slab->own = own;
	slab->cells = c->cells;
	slab->chunk = c->chunk;
	slab->blocks = (uint8_t *)c->at + head_size(c->cells);
	slab->maps = (struct stream_maps *)(void *)(slab->blocks + c->cells * block_size(c->chunk));
	slab->age = AGE_NONE;
	base_list_init(&slab->node);
	base_list_init(&slab->made);
	*out = slab;
	return 0;
}

static void slab_destroy(struct rsock_slab *slab)
{
	if (slab->spare_name && slab->age == age)
		stream_place_spare_remove(slab->place, slab->spare_name);
	rsock_blocks_forget(slab);
	base_map_destroy(slab->at, slab->size);
	base_map_destroy(slab, slab->own);
}

static struct rsock *cell_init(struct rsock_slab *slab, struct rsock *s, uint32_t cell)
{
	memset(s, 0, sizeof(*s));
	s->slab = slab;
	s->cell = cell;
	s->state = &slab->at->cell[cell];
	return s;
}

/* Lock. @slab has room */
static struct rsock *cell_take(struct rsock_slab *slab)
{
	uint32_t cell = (uint32_t)__builtin_ctzll(slab->free);

	slab->free &= slab->free - 1;
	slab->refs++;
	if (slab == spare)
		spare = NULL;
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	if (!slab->free)
		base_list_remove(&slab->node);
	return cell_init(slab, &slab->rsock[cell], cell);
}

static bool is_kind(const struct rsock_slab *slab, const struct rsock_slab_kind *kind)
{
	return slab->place.dir == kind->place.dir && slab->place.user == kind->place.user &&
	       slab->chunk == kind->chunk;
}

/* Lock. A name that is for certain one of this file; a spare one is the caller's then */
static bool source_find(struct rsock_slab *slab, struct rsock_slab_source *source)
{
	if (slab->spare_name) {
		*source = (struct rsock_slab_source){ slab->spare_name, true };
		slab->spare_name = 0;
		return true;
	}
	for (uint64_t left = slab->named; left; left &= left - 1) {
		const struct rsock *s = &slab->rsock[__builtin_ctzll(left)];

		if (rsock_load(&s->state->closer) || rsock_load(&s->state->common))
			continue;
		*source = (struct rsock_slab_source){ s->cookie, false };
		return true;
	}
	return false;
}

/* Lock */
static void retire(struct rsock_slab *slab)
{
	slab->retired = true;
	base_list_remove(&slab->node);
}

int rsock_slab_take(const struct rsock_slab_kind *kind, struct rsock **out,
		    struct rsock_slab_source *source)
{
	struct base_list *node, *next;
	int err = -ENOENT;

	slabs_lock();
	base_list_foreach(node, next, &roomy) {
		struct rsock_slab *slab = base_list_entry(node, struct rsock_slab, node);

		if (!is_kind(slab, kind))
			continue;
		if (kind->place.dir && !source_find(slab, source)) {
			retire(slab);
			continue;
		}
		*out = cell_take(slab);
		err = 0;
		break;
	}
	slabs_unlock();
	return err;
}

/* --- a new one --- */

/* A process with few connections has small ones */
static uint32_t cells_wanted(uint32_t chunk)
{
	unsigned int now = __atomic_load_n(&live, __ATOMIC_RELAXED);
	uint32_t cells = CELLS_MIN;

	while (cells < STREAM_CELLS && cells <= now)
		cells *= 2;
	while (cells > 1 && slab_size(cells, chunk) > SIZE_MAX_WANTED)
		cells /= 2;
	return cells;
}

/* A process that may make few system calls only makes no others */
static int nameless(size_t size, void **at)
{
	return base_process_confined() ? base_map_create_shared(size, at)
				       : base_map_create_sparse(size, at);
}

static int memory_create(struct rsock_slab_cells *c, const char *path, size_t room)
{
	void **at = (void **)&c->at;
	int err;

	/* Limits of the process may be narrow */
	for (c->cells = cells_wanted(c->chunk); c->cells; c->cells /= 2) {
		c->size = slab_size(c->cells, c->chunk);
		err = path ? base_runfile_create(path, c->size, room, at) : nameless(c->size, at);
		if (err != -EFBIG && err != -ENOMEM && err != -EAGAIN)
			break;
	}
	return err;
}

int rsock_slab_create(const struct rsock_slab_kind *kind, const char *path, size_t room,
		      struct rsock **out)
{
	struct rsock_slab_cells c = { .chunk = kind->chunk };
	struct rsock_slab *slab;
	int err = memory_create(&c, path, room);

	if (err)
		return err;
	err = slab_alloc(&c, c.cells, &slab);
	if (err) {
		base_map_destroy(c.at, c.size);
		if (path)
			base_runfile_remove(path);
		return err;
	}
	head_init(c.at, c.cells, c.chunk);
	slab->place = kind->place;
	slab->free = cells_mask(c.cells);
	slabs_lock();
	slab->age = age;
	base_list_push_front(&roomy, &slab->node);
	if (kind->place.dir)
		base_list_push_front(&files, &slab->made);
	*out = cell_take(slab);
	slabs_unlock();
	return 0;
}

/* Lock */
static void named_set(struct rsock_slab *slab, uint32_t cell, bool on)
{
	uint64_t bit = 1ull << cell;

	if (slab->age == age && on != !!(slab->named & bit))
		__atomic_add_fetch(&names, on ? 1 : -1ul, __ATOMIC_RELAXED);
	slab->named = on ? slab->named | bit : slab->named & ~bit;
}

void rsock_slab_name(struct rsock *s, bool on)
{
	if (s->slab->age == AGE_NONE)
		return;
	slabs_lock();
	named_set(s->slab, s->cell, on);
	slabs_unlock();
}

bool rsock_slab_name_last(struct rsock *s)
{
	struct rsock_slab *slab = s->slab;
	uint64_t bit = 1ull << s->cell;
	bool last;

	if (slab->age == AGE_NONE)
		return false;
	slabs_lock();
	last = slab->age == age && !no_spare && !slab->retired && slab->named == bit &&
	       !base_once(slab->at->common);
	if (last)
		named_set(slab, s->cell, false);
	slabs_unlock();
	return last;
}

void rsock_slab_name_spare(struct rsock *s, uint64_t cookie)
{
	slabs_lock();
	s->slab->spare_name = cookie;
	slabs_unlock();
}

void rsock_slab_retire(struct rsock *s)
{
	slabs_lock();
	retire(s->slab);
	slabs_unlock();
}

/* --- one that others have made --- */

int rsock_slab_open(const char *path, uint64_t cookie, struct rsock **out)
{
	struct rsock_slab_cells c;
	struct stream_state *st;
	struct rsock_slab *slab;
	int err = rsock_slab_map(path, &c);

	if (err)
		return err;
	st = rsock_slab_find(&c, cookie, NULL);
	/* One that connected before over the same socket is none any more */
	while (st && rsock_load(&st->closer))
		st = rsock_slab_find(&c, cookie, st);
	err = st ? slab_alloc(&c, 1, &slab) : -EPROTO;
	if (err) {
		base_map_destroy(c.at, c.size);
		return err;
	}
	slab->refs = 1;
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	*out = cell_init(slab, slab->rsock, (uint32_t)(st - c.at->cell));
	return 0;
}

void rsock_slab_share(struct rsock *s)
{
	s->spent = true;
	__atomic_store_n(&s->slab->at->common, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->state->common, 1, __ATOMIC_SEQ_CST);
}

bool rsock_slab_share_name(struct rsock *s)
{
	bool named;

	slabs_lock();
	named = !s->slab->closed;
	if (named)
		rsock_slab_share(s);
	slabs_unlock();
	return named;
}

/* Lock */
static void names_remove(struct rsock_slab *slab)
{
	char path[BASE_RUNFILE_PATH];

	for (uint64_t left = slab->named; left; left &= left - 1) {
		uint32_t cell = (uint32_t)__builtin_ctzll(left);
		const struct rsock *s = &slab->rsock[cell];

		named_set(slab, cell, false);
		if (!stream_place_path(path, s->place, s->cookie))
			base_runfile_remove(path);
	}
}

/* Lock. Whoever comes by a name shares first, and then looks whether it is closed */
static bool close_to_others(struct rsock_slab *slab)
{
	__atomic_store_n(&slab->at->closed, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&slab->at->common, __ATOMIC_SEQ_CST)) {
		rsock_store(&slab->at->closed, 0);
		return false;
	}
	if (!slab->closed) {
		slab->closed = true;
		names_remove(slab);
		retire(slab);
	}
	return true;
}

struct rsock_slab *rsock_slab_close(const void *p)
{
	struct rsock_slab *found = NULL;
	struct base_list *node, *next;

	slabs_lock();
	base_list_foreach(node, next, &files) {
		struct rsock_slab *slab = base_list_entry(node, struct rsock_slab, made);

		if (slab->age == age && (const uint8_t *)p >= slab->blocks &&
		    (const uint8_t *)p < (const uint8_t *)slab->maps)
			found = close_to_others(slab) ? slab : NULL;
	}
	slabs_unlock();
	return found;
}

/* --- its end --- */

/* It is all zeroes again, and of this process alone */
static bool cell_clear(struct rsock *s)
{
	if (s->slab->age != age || s->spent || __atomic_load_n(&s->state->common, __ATOMIC_SEQ_CST))
		return false;
	memset(s->state, 0, sizeof(*s->state));
	return true;
}

/* Lock */
static void cell_give(struct rsock_slab *slab, uint32_t cell)
{
	slab->free |= 1ull << cell;
	if (!slab->retired && base_list_empty(&slab->node))
		base_list_push_front(&roomy, &slab->node);
}

/* Lock. Is it worth keeping, and is there a way to a name? */
static bool is_kept(const struct rsock_slab *slab)
{
	return slab->age == age && slab->free && !slab->retired && !no_spare &&
	       !base_once(slab->at->common) && (slab->spare_name || !slab->place.dir);
}

/* Lock */
static void lists_leave(struct rsock_slab *slab)
{
	base_list_remove(&slab->node);
	base_list_remove(&slab->made);
}

/* Lock. Nobody has a cell of @slab: the slab that is to be destroyed, or NULL */
static struct rsock_slab *last_put(struct rsock_slab *slab)
{
	struct rsock_slab *old = slab;

	if (is_kept(slab)) {
		memset(slab->at->rx_block, 0, sizeof(slab->at->rx_block));
		memset(slab->at->tx_block, 0, sizeof(slab->at->tx_block));
		head_init(slab->at, slab->cells, slab->chunk);
		rsock_blocks_trim(slab);
		old = spare;
		spare = slab;
	}
	if (old)
		lists_leave(old);
	return old;
}

void rsock_slab_put(struct rsock *s)
{
	struct rsock_slab *slab = s->slab, *old = NULL;
	bool clear = cell_clear(s);
	uint32_t cell = s->cell;

	slabs_lock();
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	slab->refs--;
	named_set(slab, cell, false);
	if (clear)
		cell_give(slab, cell);
	if (!slab->refs)
		old = last_put(slab);
	slabs_unlock();
	if (old)
		slab_destroy(old);
}

/* Lock */
static void spare_names_remove(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &files) {
		struct rsock_slab *slab = base_list_entry(node, struct rsock_slab, made);

		if (!slab->spare_name || slab->age != age)
			continue;
		stream_place_spare_remove(slab->place, slab->spare_name);
		slab->spare_name = 0;
		retire(slab);
	}
}

void stream_spare_allow(bool on)
{
	struct rsock_slab *old;

	slabs_lock();
	no_spare = !on;
	if (!on)
		spare_names_remove();
	old = on ? NULL : spare;
	if (old) {
		spare = NULL;
		lists_leave(old);
	}
	slabs_unlock();
	if (old)
		slab_destroy(old);
}

/* --- fork() --- */

void stream_before_fork(void)
{
	slabs_lock();
}

/* The child has its parent's streams, and takes no cells where its parent does */
void stream_after_fork(bool child)
{
	if (!child) {
		slabs_unlock();
		return;
	}
	while (base_list_pop_front(&roomy))
		;
	while (base_list_pop_front(&files))
		;
	names = 0;
	age++;
	base_lock_init(&lock);
	no_spare = false;
	/* Its name is the parent's */
	if (spare)
		slab_destroy(spare);
	spare = NULL;
}
