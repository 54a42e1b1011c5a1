/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slabs: files of the runtime folder, each with the states of up to STREAM_CELLS connections of the
 * process that made it. A file has a name of its own from its beginning to its end: "s" and a
 * number. When other processes are to come to a connection, its socket's cookie becomes a name of
 * the file, too (a hard link): whoever finds the socket finds the file, and in it the cell with
 * this cookie. Most connections never have one. Who was not announced, as a program that was
 * executed by a system call of another's making, looks for the cell in all files.
 *
 * Only the process that made a slab takes cells of it, and it alone gives them out again. What it
 * gives out again no other process has ever come to: a cell that was shared, by fork() or by its
 * name, is spent for good, since nobody can know when the last who maps it has left the last call.
 * So cells are taken and given back under a lock of this process, and leaving takes no other.
 *
 * The file's own name goes when its maker has left the last connection and makes no more, if no
 * other process has one; else that is marked (left), and the last of the others removes it, as it
 * does when the maker is dead. Each writes before it looks: the maker its mark, the others their
 * places among the holders. What the killed leave, others sweep: they mark it as swept first, and
 * then look for holders again, and a maker looks for the mark when it has entered.
 *
 * Who adopts a connection maps its file for itself, also in the process that made it.
 *
 * To make a file, to map it and to touch its pages takes longer than the rest of a short
 * connection. So the slab that lost its last connection last is kept.
 */
#include "stream/state/memory.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/point.h"
#include "base/process.h"
#include "base/runfile.h"
#include "stream/place.h"

#define CELLS_MIN 4u
/* Address space of one, unless a single connection needs more */
#define SIZE_MAX_WANTED (64ul << 20)
/* Of what the process may still have: malloc() asks for a MiB or two at once */
#define LEFT_TO_PROGRAM (8ul << 20)
/* No process's: nobody takes cells of it */
#define AGE_NONE 0u

static struct base_lock lock; /* of all that follows, and of the slabs */
static struct base_list roomy = BASE_LIST_INIT(roomy);
static struct base_list files = BASE_LIST_INIT(files);
static unsigned int live;    /* streams of this process; atomic */
static unsigned int age = 1; /* grows in each child */
/* lock: nobody has a cell of it, and it is among the roomy all the same */
static struct stream_slab *spare;
static bool no_spare; /* lock */

static void slabs_lock(void)
{
	base_lock_take(&lock, NULL, NULL);
}

static void slabs_unlock(void)
{
	base_lock_drop(&lock);
}

/* --- this process's view --- */

/* Where there is none, somebody counts anew some time */
static void promises_find(struct stream_slab *slab)
{
	if (slab->place.dir && stream_promises(slab->place, &slab->promises))
		slab->promises = NULL;
}

static void mapped_note(struct stream_slab *slab)
{
	__atomic_add_fetch(&slab->at->mapped, 1, __ATOMIC_ACQ_REL);
}

static int slab_alloc(const struct stream_slab_cells *c, uint32_t rsocks, struct stream_slab **out)
{
	size_t own = sizeof(struct stream_slab) + rsocks * sizeof(struct stream);
	struct stream_slab *slab;
	int err = base_map_create(own, (void **)&slab);

	if (err)
		return err;
	slab->at = c->at;
	slab->size = c->size;
	slab->own = own;
	slab->cells = c->cells;
	slab->chunk = c->chunk;
	slab->blocks = (uint8_t *)c->at + stream_file_head(c->cells);
	slab->maps = (struct stream_maps *)(void *)(slab->blocks +
						    c->cells * stream_file_block(c->chunk));
	slab->age = AGE_NONE;
	base_list_init(&slab->node);
	base_list_init(&slab->file);
	*out = slab;
	return 0;
}

/*
 * Nobody has a connection of it. A name that stays is one of no memory: somebody will sweep it. One
 * that is gone was swept beside a connection that lingers, maybe another process's by now
 */
static void name_remove(struct stream_slab *slab)
{
	int err = stream_name_remove(slab);

	slab->stuck = err && err != -ENOENT && !base_process_confined();
}

/* Nobody of this process has a connection of it, nor makes one */
static void name_give_up(struct stream_slab *slab)
{
	struct stream_slab_cells c = { slab->at, slab->size, slab->cells, slab->chunk };

	if (slab->nameless || slab->closed || !slab->place.dir)
		return;
	slab->nameless = true;
	__atomic_store_n(&slab->at->left, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&slab->at->common, __ATOMIC_SEQ_CST) || !stream_slab_is_held(&c))
		name_remove(slab);
}

static void slab_destroy(struct stream_slab *slab)
{
	if (slab->age == age)
		name_give_up(slab);
	stream_blocks_forget(slab);
	/* What lingers in another process needs its memory still */
	if (slab->place.dir && !__atomic_sub_fetch(&slab->at->mapped, 1, __ATOMIC_ACQ_REL) &&
	    slab->stuck)
		base_runfile_release(slab->at, slab->size);
	base_map_destroy(slab->at, slab->size);
	base_map_destroy(slab, slab->own);
}

static struct stream *cell_init(struct stream_slab *slab, struct stream *s, uint32_t cell)
{
	memset(s, 0, sizeof(*s));
	s->slab = slab;
	s->cell = cell;
	s->state = &slab->at->cell[cell];
	return s;
}

/* Lock. @slab has room */
static struct stream *cell_take(struct stream_slab *slab)
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

static bool is_kind(const struct stream_slab *slab, const struct stream_slab_kind *kind)
{
	return slab->place.dir == kind->place.dir && slab->place.user == kind->place.user &&
	       slab->chunk == kind->chunk;
}

/* Lock */
static void retire(struct stream_slab *slab)
{
	slab->retired = true;
	base_list_remove(&slab->node);
}

/* Nobody finds what is in a file whose name was taken away */
static bool is_swept(const struct stream_slab *slab)
{
	return slab->place.dir && __atomic_load_n(&slab->at->swept, __ATOMIC_SEQ_CST);
}

/*
 * What others have cannot leave its file when the folder is full (move.c), nor can what lies beside
 * it
 */
static bool takes_no_more(const struct stream_slab *slab)
{
	return slab->place.dir && (is_swept(slab) || base_once(slab->at->common));
}

int stream_slab_take(const struct stream_slab_kind *kind, struct stream **out, bool *alone)
{
	struct base_list *node, *next;
	int err = -ENOENT;

	slabs_lock();
	base_list_foreach(node, next, &roomy) {
		struct stream_slab *slab = base_list_entry(node, struct stream_slab, node);

		if (!is_kind(slab, kind))
			continue;
		if (takes_no_more(slab)) {
			retire(slab);
			continue;
		}
		*alone = !slab->refs;
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
	while (cells > 1 && stream_file_size(cells, chunk) > SIZE_MAX_WANTED)
		cells /= 2;
	return cells;
}

/* A process that may make few system calls only makes no others */
static int nameless(size_t size, void **at)
{
	return base_process_confined() ? base_map_create_shared(size, at)
				       : base_map_create_sparse(size, at);
}

static int memory_try(struct stream_slab_cells *c, const char *path)
{
	void **at = (void **)&c->at;

	if (!base_map_allows(c->size + LEFT_TO_PROGRAM))
		return -ENOMEM;
	return path ? base_runfile_create(path, c->size, stream_file_size(1, c->chunk), at)
		    : nameless(c->size, at);
}

static int memory_create(struct stream_slab_cells *c, const char *path)
{
	int err;

	/* Limits of the process may be narrow, and are its program's in the first place */
	for (c->cells = cells_wanted(c->chunk); c->cells; c->cells /= 2) {
		c->size = stream_file_size(c->cells, c->chunk);
		err = memory_try(c, path);
		if (err != -EFBIG && err != -ENOMEM && err != -EAGAIN)
			break;
	}
	return err;
}

/* No two files have the same name, for who makes one looks */
static int file_create(struct stream_slab_cells *c, const struct stream_slab_kind *kind,
		       uint64_t *name)
{
	char path[BASE_RUNFILE_PATH];
	int err;

	*name = base_process_clock();
	do {
		err = stream_place_slab(path, kind->place, ++*name);
		if (!err)
			err = memory_create(c, path);
	} while (err == -EEXIST);
	return err;
}

static void slab_begin(struct stream_slab *slab, const struct stream_slab_kind *kind, uint64_t name)
{
	stream_file_init(slab->at, slab->cells, slab->chunk, name);
	slab->place = kind->place;
	slab->name = name;
	slab->free = stream_cells_mask(slab->cells);
	promises_find(slab);
	mapped_note(slab);
}

static int slab_create(const struct stream_slab_kind *kind, struct stream_slab **out)
{
	struct stream_slab_cells c = { .chunk = kind->chunk };
	uint64_t name = 0;
	int err = kind->place.dir ? file_create(&c, kind, &name) : memory_create(&c, NULL);

	if (err)
		return err;
	err = slab_alloc(&c, c.cells, out);
	if (err) {
		base_map_destroy(c.at, c.size);
		return err; /* what is no slab yet is swept */
	}
	slab_begin(*out, kind, name);
	return 0;
}

/* Lock */
static void slab_enter(struct stream_slab *slab)
{
	slab->age = age;
	base_list_push_front(&roomy, &slab->node);
	if (slab->place.dir)
		base_list_push_front(&files, &slab->file);
}

int stream_slab_create(const struct stream_slab_kind *kind, struct stream **out)
{
	struct stream_slab *slab;
	int err = slab_create(kind, &slab);

	if (err)
		return err;
	slabs_lock();
	slab_enter(slab);
	*out = cell_take(slab);
	slabs_unlock();
	return 0;
}

static bool is_ready(const struct stream_slab_kind *kind)
{
	struct base_list *node, *next;
	bool ready = false;

	slabs_lock();
	base_list_foreach(node, next, &roomy) {
		ready |= is_kind(base_list_entry(node, struct stream_slab, node), kind);
	}
	slabs_unlock();
	return ready;
}

int stream_slab_ready(const struct stream_slab_kind *kind)
{
	struct stream_slab *slab;
	int err = is_ready(kind) ? -EEXIST : slab_create(kind, &slab);

	if (err)
		return err == -EEXIST ? 0 : err;
	slabs_lock();
	slab_enter(slab);
	slabs_unlock();
	return 0;
}

/* Lock */
static void live_set(struct stream_slab *slab, uint32_t cell, bool on)
{
	uint64_t bit = 1ull << cell;

	slab->live = on ? slab->live | bit : slab->live & ~bit;
}

void stream_slab_live(struct stream *s)
{
	slabs_lock();
	live_set(s->slab, s->cell, true);
	stream_promise_set(s->slab, s->cell, true);
	slabs_unlock();
}

bool stream_slab_is_used(const struct stream *s)
{
	return base_once(s->slab->at->used) & 1ull << s->cell;
}

void stream_slab_use(struct stream *s)
{
	__atomic_fetch_or(&s->slab->at->used, 1ull << s->cell, __ATOMIC_RELEASE);
}

bool stream_slab_is_swept(struct stream *s)
{
	bool swept = is_swept(s->slab);

	if (swept) {
		slabs_lock();
		stream_promise_set(s->slab, s->cell, false);
		retire(s->slab);
		slabs_unlock();
	}
	return swept;
}

/*
 * Lock. The maker has no more use for it; has anybody else? A maker of this process's number was
 * another program, or will find it swept
 */
static void others_left(struct stream_slab *slab)
{
	struct stream_slab_cells c = { slab->at, slab->size, slab->cells, slab->chunk };
	bool here = base_once(slab->at->pid) == base_process_self().pid;

	if (slab->nameless)
		return;
	if ((here || !stream_slab_has_maker(&c)) && !stream_slab_is_held(&c) &&
	    stream_slab_sweep(&c))
		name_remove(slab);
}

void stream_slab_leave(struct stream *s, bool last)
{
	struct stream_slab *slab = s->slab;

	slabs_lock();
	live_set(slab, s->cell, false);
	if (last)
		stream_promise_set(slab, s->cell, false);
	if (slab->age != age && s->is_file && last)
		others_left(slab);
	else if (slab->age == age && no_spare && !slab->live)
		name_give_up(slab);
	slabs_unlock();
}

/* --- one that others have made --- */

int stream_slab_open(const char *path, struct stream_place place, uint64_t cookie,
		     struct stream **out)
{
	struct stream_slab_cells c;
	struct stream_state *st;
	struct stream_slab *slab;
	int err = stream_slab_map(path, &c);

	if (err)
		return err;
	st = stream_slab_find(&c, cookie, NULL);
	/* One that connected before over the same socket is none any more */
	while (st && base_load(&st->closer))
		st = stream_slab_find(&c, cookie, st);
	err = st ? slab_alloc(&c, 1, &slab) : -EPROTO;
	if (err) {
		base_map_destroy(c.at, c.size);
		return err;
	}
	slab->refs = 1;
	slab->place = place;
	slab->name = base_once(c.at->name);
	promises_find(slab);
	mapped_note(slab);
	slabs_lock();
	base_list_push_front(&files, &slab->file);
	slabs_unlock();
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	*out = cell_init(slab, slab->rsock, (uint32_t)(st - c.at->cell));
	return 0;
}

void stream_slab_share(struct stream *s)
{
	s->spent = true;
	__atomic_store_n(&s->slab->at->common, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->state->common, 1, __ATOMIC_SEQ_CST);
}

int stream_slab_publish(struct stream *s)
{
	int err = -EOPNOTSUPP;

	slabs_lock();
	if (!s->slab->closed && !s->slab->nameless && !is_swept(s->slab)) {
		stream_slab_share(s);
		err = stream_name_add(s);
	}
	slabs_unlock();
	return err;
}

void stream_slab_unpublish(struct stream *s)
{
	slabs_lock();
	stream_name_unlink(s);
	if (base_once(s->slab->at->left))
		others_left(s->slab);
	slabs_unlock();
}

/* Lock */
static void names_remove(struct stream_slab *slab)
{
	for (uint64_t left = slab->live; left; left &= left - 1) {
		uint32_t cell = (uint32_t)__builtin_ctzll(left);

		live_set(slab, cell, false);
		stream_promise_set(slab, cell, false);
		stream_name_unlink(&slab->rsock[cell]);
	}
	stream_name_remove(slab);
}

/* Lock. Whoever comes by a name shares first, and then looks whether it is closed */
static bool close_to_others(struct stream_slab *slab)
{
	__atomic_store_n(&slab->at->closed, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&slab->at->common, __ATOMIC_SEQ_CST)) {
		base_store(&slab->at->closed, 0);
		return false;
	}
	if (!slab->closed) {
		slab->closed = true;
		names_remove(slab);
		retire(slab);
	}
	return true;
}

struct stream_slab *stream_slab_close(const void *p)
{
	struct stream_slab *found = NULL;
	struct base_list *node, *next;

	slabs_lock();
	base_list_foreach(node, next, &files) {
		struct stream_slab *slab = base_list_entry(node, struct stream_slab, file);

		if (slab->age == age && (const uint8_t *)p >= slab->blocks &&
		    (const uint8_t *)p < (const uint8_t *)slab->maps)
			found = close_to_others(slab) ? slab : NULL;
	}
	slabs_unlock();
	return found;
}

/* --- its end --- */

/* It is all zeroes again, and of this process alone */
static bool cell_clear(struct stream *s)
{
	/* Of a file, it may have no memory yet */
	bool there = !s->slab->place.dir || stream_slab_is_used(s);
	bool shared = s->spent || (there && __atomic_load_n(&s->state->common, __ATOMIC_SEQ_CST));

	if (s->slab->age != age || shared)
		return false;
	if (there)
		memset(s->state, 0, sizeof(*s->state));
	return true;
}

/* Lock */
static void cell_give(struct stream_slab *slab, uint32_t cell)
{
	slab->free |= 1ull << cell;
	if (!slab->retired && base_list_empty(&slab->node))
		base_list_push_front(&roomy, &slab->node);
}

/* Lock. Is it worth keeping? */
static bool is_kept(const struct stream_slab *slab)
{
	return slab->age == age && slab->free && !slab->retired && !no_spare &&
	       !base_once(slab->at->common) && !is_swept(slab);
}

/* Lock */
static void lists_leave(struct stream_slab *slab)
{
	base_list_remove(&slab->node);
	base_list_remove(&slab->file);
}

/* Lock. Nobody has a cell of @slab: the slab that is to be destroyed, or NULL */
static struct stream_slab *last_put(struct stream_slab *slab)
{
	struct stream_slab *old = slab;

	if (is_kept(slab)) {
		memset(slab->at->rx_block, 0, sizeof(slab->at->rx_block));
		memset(slab->at->tx_block, 0, sizeof(slab->at->tx_block));
		stream_file_init(slab->at, slab->cells, slab->chunk, slab->name);
		stream_blocks_trim(slab);
		old = spare;
		spare = slab;
	}
	if (old)
		lists_leave(old);
	return old;
}

void stream_slab_put(struct stream *s)
{
	struct stream_slab *slab = s->slab, *old = NULL;
	bool clear = cell_clear(s);
	uint32_t cell = s->cell;

	slabs_lock();
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	slab->refs--;
	live_set(slab, cell, false);
	if (clear) {
		stream_promise_set(slab, cell, false);
		cell_give(slab, cell);
	}
	if (!slab->refs)
		old = last_put(slab);
	slabs_unlock();
	if (old)
		slab_destroy(old);
}

/* Lock. Of what lingers nobody comes to any more */
static void names_allow(bool on)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &files) {
		struct stream_slab *slab = base_list_entry(node, struct stream_slab, file);

		if (slab->age != age || slab->nameless)
			continue;
		__atomic_store_n(&slab->at->left, !on, __ATOMIC_SEQ_CST);
		if (on || slab->live)
			continue;
		name_give_up(slab);
		retire(slab);
	}
}

void stream_spare_allow(bool on)
{
	struct stream_slab *old;

	slabs_lock();
	no_spare = !on;
	names_allow(on);
	old = on ? NULL : spare;
	if (old) {
		spare = NULL;
		lists_leave(old);
	}
	slabs_unlock();
	if (old)
		slab_destroy(old);
}

void stream_names_drop(bool (*stays)(struct stream_place place, const void *ctx), const void *ctx)
{
	struct base_list *node, *next;

	slabs_lock();
	base_list_foreach(node, next, &files) {
		struct stream_slab *slab = base_list_entry(node, struct stream_slab, file);

		if (slab->nameless || slab->closed || stays(slab->place, ctx))
			continue;
		slab->nameless = true;
		stream_slab_names_drop(slab);
		retire(slab);
	}
	slabs_unlock();
}

/* --- fork() --- */

void stream_before_fork(void)
{
	slabs_lock();
}

/* Memory that was made ready, and which no connection has */
static void unused_destroy(struct stream_slab *slab)
{
	if (!slab->refs && !slab->place.dir && slab != spare)
		slab_destroy(slab);
}

/* The child has its parent's streams, and takes no cells where its parent does */
void stream_after_fork(bool child)
{
	struct base_list *node, *next;

	if (!child) {
		slabs_unlock();
		return;
	}
	base_list_foreach(node, next, &files) {
		mapped_note(base_list_entry(node, struct stream_slab, file));
	}
	while ((node = base_list_pop_front(&roomy)))
		unused_destroy(base_list_entry(node, struct stream_slab, node));
	age++;
	base_lock_init(&lock);
	no_spare = false;
	/* Its name is the parent's */
	if (spare) {
		lists_leave(spare);
		slab_destroy(spare);
	}
	spare = NULL;
}
