/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file of a slab (stream/state/slab.c), as any process sees it: its layout, the processes that
 * have it, and its names. Nothing that stands in it is believed: the layout is judged when it is
 * mapped.
 */
#include "stream/state/slab.h"

#include <errno.h>

#include "base/bits.h"
#include "base/map.h"
#include "base/point.h"
#include "base/process.h"
#include "base/runfile.h"
#include "stream/state/holder.h"

#define PAGE 4096u

/* --- layout --- */

size_t stream_file_head(uint32_t cells)
{
	size_t size = sizeof(struct stream_slab_file) + cells * sizeof(struct stream_state);

	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

size_t stream_file_size(uint32_t cells, uint32_t chunk)
{
	return stream_file_head(cells) +
	       cells * (stream_file_block(chunk) + sizeof(struct stream_maps));
}

void stream_file_init(struct stream_slab_file *at, uint32_t cells, uint32_t chunk, uint64_t name)
{
	struct base_process self = base_process_self();

	at->version = STREAM_VERSION;
	at->cells = cells;
	at->cell_at = offsetof(struct stream_slab_file, cell);
	at->cell_size = sizeof(struct stream_state);
	at->holder_at = offsetof(struct stream_state, holder);
	at->overflow_at = offsetof(struct stream_state, overflow);
	at->chunk = chunk;
	at->octets = stream_file_size(cells, chunk);
	at->since = base_process_clock();
	at->pid = self.pid;
	at->space = self.space;
	at->name = name;
	at->rx_free = at->tx_free = stream_cells_mask(cells);
	/* Last: before, it is nothing to adopt */
	base_store(&at->magic, STREAM_MAGIC);
}

static int head_judge(struct stream_slab_cells *c)
{
	const struct stream_slab_file *at = c->at;

	c->cells = base_once(at->cells);
	c->chunk = base_once(at->chunk);
	if (base_load(&at->magic) != STREAM_MAGIC || base_once(at->version) != STREAM_VERSION)
		return -EPROTO;
	if (!c->cells || c->cells > STREAM_CELLS || !base_is_pow2(c->chunk) ||
	    c->chunk < STREAM_CHUNK_MIN || c->chunk > STREAM_RING_MAX)
		return -EPROTO;
	return base_once(at->octets) == c->size && stream_file_size(c->cells, c->chunk) == c->size
		       ? 0
		       : -EPROTO;
}

int stream_slab_map(const char *path, struct stream_slab_cells *out)
{
	int err = base_runfile_open(path, sizeof(struct stream_slab_file), (void **)&out->at,
				    &out->size);

	if (err)
		return err;
	err = head_judge(out);
	if (err)
		base_map_destroy(out->at, out->size);
	return err;
}

struct stream_state *stream_slab_find(const struct stream_slab_cells *c, uint64_t cookie,
				      struct stream_state *after)
{
	uint32_t i = after ? (uint32_t)(after - c->at->cell) + 1 : 0;
	uint64_t used = base_load(&c->at->used);

	/* To look at others would take memory for them */
	for (; i < c->cells; i++)
		if (used & 1ull << i && base_once(c->at->cell[i].cookie) == cookie)
			return &c->at->cell[i];
	return NULL;
}

bool stream_slab_has_maker(const struct stream_slab_cells *c)
{
	struct base_process maker = { base_once(c->at->pid), base_once(c->at->space) };

	return !__atomic_load_n(&c->at->left, __ATOMIC_SEQ_CST) &&
	       base_process_lives(maker, base_once(c->at->since));
}

/* Of another layout, nobody can say who has it */
bool stream_cell_is_held(struct stream_state *st)
{
	return base_load(&st->magic) &&
	       (base_once(st->version) != STREAM_VERSION || stream_holder_any(st));
}

bool stream_slab_is_held(const struct stream_slab_cells *c)
{
	uint64_t used = base_load(&c->at->used);

	for (uint32_t i = 0; i < c->cells; i++)
		if (used & 1ull << i && stream_cell_is_held(&c->at->cell[i]))
			return true;
	return false;
}

/* Several processes may be at it, so the mark is a number */
bool stream_slab_sweep(const struct stream_slab_cells *c)
{
	__atomic_add_fetch(&c->at->swept, 1, __ATOMIC_SEQ_CST);
	if (!stream_slab_is_held(c))
		return true;
	__atomic_sub_fetch(&c->at->swept, 1, __ATOMIC_SEQ_CST);
	return false;
}

/* --- of another version --- */

/* Is what the head says of the cells inside of the file, and of each? */
static bool strange_judge(const struct stream_slab_head *head, size_t size)
{
	uint64_t cell = head->cell_size, holders = STREAM_HOLDERS * sizeof(struct stream_holder);

	return head->cells && head->cells <= STREAM_CELLS && cell && !(cell % 8) &&
	       !(head->cell_at % 8) && head->cell_at + head->cells * cell <= size &&
	       head->holder_at && !(head->holder_at % 8) && head->holder_at + holders <= cell &&
	       !(head->overflow_at % 4) && head->overflow_at + sizeof(uint32_t) <= cell;
}

/* What has no memory is not looked at, for it would take some */
static bool strange_cell_is_held(const struct stream_slab_head *head, uint8_t *cell)
{
	if (base_runfile_reserve(cell, head->cell_size))
		return true;
	return base_load((uint32_t *)(void *)(cell + head->overflow_at)) ||
	       stream_holder_lives((struct stream_holder *)(void *)(cell + head->holder_at));
}

/* @head is a copy, for others may change what is in the file */
static bool strange_is_held(const struct stream_slab_head *head, uint8_t *file)
{
	const uint64_t *used = &((struct stream_slab_head *)(void *)file)->used;
	uint64_t left = base_load(used) & stream_cells_mask(head->cells);

	for (; left; left &= left - 1) {
		size_t cell = (size_t)__builtin_ctzll(left);

		if (strange_cell_is_held(head, file + head->cell_at + cell * head->cell_size))
			return true;
	}
	return false;
}

static bool strange_sweep(uint8_t *file, size_t size)
{
	struct stream_slab_head *at = (void *)file, head = *(volatile struct stream_slab_head *)at;

	/* Whose maker died over it is none yet */
	if (!head.magic)
		return true;
	if (head.magic != STREAM_MAGIC || head.version == STREAM_VERSION ||
	    !strange_judge(&head, size) || strange_is_held(&head, file))
		return false;
	__atomic_add_fetch(&at->swept, 1, __ATOMIC_SEQ_CST);
	if (!strange_is_held(&head, file))
		return true;
	__atomic_sub_fetch(&at->swept, 1, __ATOMIC_SEQ_CST);
	return false;
}

bool stream_slab_sweep_strange(const char *path)
{
	void *file;
	size_t size;
	int err = base_runfile_open(path, sizeof(struct stream_slab_head), &file, &size);
	bool swept;

	if (err)
		return err == -EPROTO;
	swept = strange_sweep(file, size);
	base_map_destroy(file, size);
	return swept;
}

/* --- names --- */

int stream_name_remove(const struct stream_slab *slab)
{
	char path[BASE_RUNFILE_PATH];
	int err = stream_place_slab(path, slab->place, slab->name);

	return err ? err : base_runfile_remove_of(path, slab->place.user);
}

void stream_cookie_remove(const struct stream_slab *slab, uint64_t cookie)
{
	char path[BASE_RUNFILE_PATH];

	if (!stream_place_path(path, slab->place, cookie))
		base_runfile_remove_of(path, slab->place.user);
}

void stream_name_replace(const char *path, uint64_t cookie)
{
	struct stream_state *old = NULL;
	struct stream_slab_cells c;

	if (!stream_slab_map(path, &c)) {
		/* Whoever still has it takes no more name away */
		while ((old = stream_slab_find(&c, cookie, old)))
			base_store(&old->closer, base_process_self().pid);
		base_map_destroy(c.at, c.size);
	}
	base_runfile_remove(path);
}

/* The file has its own name, or -ENOENT. Another process may have added this one just now */
static int name_link(const struct stream *s, const char *path)
{
	char own[BASE_RUNFILE_PATH];
	int err = stream_place_slab(own, s->slab->place, s->slab->name);

	if (!err)
		err = base_runfile_link(own, path);
	if (err != -EEXIST || base_runfile_same(own, path))
		return err;
	stream_name_replace(path, s->cookie);
	return base_runfile_link(own, path);
}

/*
 * A connection without a name of its own is still found, by a search. The bit is set before the
 * name is made: a process that is killed in between would leave a name that no process removes
 */
int stream_name_add(struct stream *s)
{
	uint64_t bit = 1ull << s->cell, *named = &s->slab->at->named;
	char path[BASE_RUNFILE_PATH];
	int err;

	if (__atomic_fetch_or(named, bit, __ATOMIC_ACQ_REL) & bit)
		return 0;
	err = stream_place_path(path, s->slab->place, s->cookie);
	if (!err)
		err = name_link(s, path);
	BASE_POINT(stream_slab_named);
	if (err && err != -EEXIST)
		__atomic_fetch_and(named, ~bit, __ATOMIC_ACQ_REL);
	return err == -ENOENT ? -EOPNOTSUPP : 0;
}

void stream_name_unlink(struct stream *s)
{
	uint64_t bit = 1ull << s->cell;

	if (__atomic_fetch_and(&s->slab->at->named, ~bit, __ATOMIC_ACQ_REL) & bit)
		stream_cookie_remove(s->slab, s->cookie);
}
