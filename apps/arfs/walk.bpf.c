/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk of warp-grep, warp-find, warp-sum and warp-top, beside the store. judge(), lines() and
 * value() are made at run time by the client (walk_code.c). Returns 1 when there is more, and where
 * to go on is in the output; 0 at the end; -EAGAIN if something was changed meanwhile.
 */
#include "walk.h"
#include "place_program.h"

#define FAR static __attribute__((noinline))

enum { RUN_MAX = 256 }; /* blocks of one piece: helpers take 1 MiB */

/* Is the record wanted? */
long judge(const void *record);
/* What of it is added up or compared */
unsigned long value(const void *record);
/* The address of the first line with a match in @len bytes at @from, or -1 */
long lines(const char *from, unsigned long len);

/* 0, or 1: no room, for there must be some for the state as well */
FAR long hit_give(struct walk_args *a, uint64_t kind_len, uint64_t offset, const char *bytes)
{
	struct walk_hit hit = { (uint32_t)(kind_len >> 32), (uint32_t)kind_len, offset };
	unsigned long zero = 0, pad = -hit.len & 7u;
	uint64_t need = sizeof(hit) + hit.len + pad;

	if (hit.kind != WALK_STATE &&
	    a->used + need + sizeof(struct walk_hit) + sizeof(a->state) > a->room)
		return 1;
	a->used += need;
	return warp_output(&hit, sizeof(hit)) < 0 || warp_output(bytes, hit.len) < 0 ||
	       warp_output(&zero, pad) < 0;
}

static inline uint64_t kind_len(enum walk_kind kind, uint64_t len)
{
	return (uint64_t)kind << 32 | len;
}

static inline long path_give(struct walk_args *a, uint64_t path_len)
{
	return hit_give(a, kind_len(WALK_PATH_HIT, path_len), 0, a->state.path);
}

/* --- lines of files --- */

/* Lines of @len bytes at @at, which stand at @offset of the file. 1: no room for one */
FAR long piece_search(struct walk_args *a, const char *at, uint64_t len, uint64_t offset)
{
	const char *end = at + len;

	while (at < end) {
		long found = lines(at, (uint64_t)(end - at));
		uint64_t here, n;

		if (found == -1)
			break;
		if (!a->told && path_give(a, a->path_len)) {
			a->state.file_offset = offset;
			return 1;
		}
		a->told = 1;
		here = offset + (uint64_t)(found - (long)at);
		n = warp_find((const char *)found, '\n', (uint64_t)(end - (const char *)found));
		if (hit_give(a, kind_len(WALK_LINE_HIT, n < WALK_LINE ? n : WALK_LINE), here,
			     (const char *)found)) {
			a->state.file_offset = here;
			return 1;
		}
		offset = here + n + 1;
		at = (const char *)found + n + 1;
	}
	return 0;
}

/* The bytes from @pos on that stand together: their address in *at (0: a hole), how many */
FAR long piece_find(struct arfs_place *p, const struct arfs_inode *i, uint64_t pos, const char **at)
{
	uint32_t first = 0, next = 0, n = 1;
	uint64_t len;

	if (arfs_map(p, i, pos / ARFS_BLOCK, &first))
		return 0;
	*at = first ? (const char *)p->base + (uint64_t)first * ARFS_BLOCK + pos % ARFS_BLOCK : 0;
	for (; n < RUN_MAX && pos / ARFS_BLOCK + n < (i->size + ARFS_BLOCK - 1) / ARFS_BLOCK; n++)
		if (arfs_map(p, i, pos / ARFS_BLOCK + n, &next) || next != (first ? first + n : 0))
			break;
	len = (uint64_t)n * ARFS_BLOCK - pos % ARFS_BLOCK;
	return (long)(len < i->size - pos ? len : i->size - pos);
}

/* Bytes behind the last newline */
static inline uint64_t tail_of(const char *at, uint64_t len)
{
	uint64_t n = 0;

	while (n < len && n < WALK_SCRATCH && at[len - 1 - n] != '\n')
		n++;
	return n;
}

/*
 * A line that began in pieces before goes on in this one: it is put together in the scratch, and
 * searched when it is whole. How many bytes of this piece it has, or -1: no room for output
 */
FAR long seam_search(struct walk_args *a, const char *at, uint64_t len, uint64_t pos)
{
	uint64_t n = warp_find(at, '\n', len), room = WALK_SCRATCH - a->held, all;
	int whole = n < len || pos + len >= a->size;

	n += n < len;
	all = a->held + (n < room ? n : room);
	warp_copy(a->scratch + a->held, at, all - a->held);
	if (!whole) {
		a->held = all;
		return (long)n;
	}
	if (piece_search(a, a->scratch, all, a->held_at))
		return -1;
	a->held = 0;
	return (long)n;
}

/* The line at the end of a piece, if it goes on in the next one: how many bytes of it are here */
static inline uint64_t tail_hold(struct walk_args *a, const char *at, uint64_t len, uint64_t pos)
{
	uint64_t tail = pos + len < a->size ? tail_of(at, len) : 0;

	if (tail >= WALK_SCRATCH) /* searched where it is, in parts */
		tail = 0;
	warp_copy(a->scratch, at + len - tail, tail);
	a->held = tail;
	a->held_at = pos + len - tail;
	return tail;
}

/* One piece of a file: 1 no room for output */
FAR long piece_visit(struct walk_args *a, const char *at, uint64_t len, uint64_t pos)
{
	long skip = a->held ? seam_search(a, at, len, pos) : 0;
	uint64_t rest = len - (uint64_t)skip, tail;

	if (skip < 0)
		return 1;
	if (a->held || !rest)
		return 0;
	at += skip;
	pos += (uint64_t)skip;
	tail = tail_hold(a, at, rest, pos);
	return piece_search(a, at, rest - tail, pos);
}

FAR long file_search(struct arfs_place *p, struct walk_args *a, const struct arfs_inode *i)
{
	uint64_t pos = a->state.file_offset;

	a->size = i->size;
	a->held = 0;
	while (pos < a->size) {
		const char *at = 0;
		uint64_t len = (uint64_t)piece_find(p, i, pos, &at);

		if (!len)
			break;
		a->bytes += len;
		if (!at)
			a->held = 0; /* a hole has no text */
		else if (piece_visit(a, at, len, pos))
			return 1;
		pos += len;
	}
	return 0;
}

/* --- values of records --- */

/* 0, or 1: no room for output */
FAR long row_give(struct walk_args *a, const char *record, uint64_t found, uint64_t offset)
{
	struct walk_row row = { found, a->path_len, a->record_size };
	uint32_t len = sizeof(row) + row.path_len + row.record_len;
	struct walk_hit hit = { WALK_ROW_HIT, len, offset };
	unsigned long zero = 0, pad = -len & 7u;
	uint64_t need = sizeof(hit) + len + pad;

	if (a->used + need + sizeof(struct walk_hit) + sizeof(a->state) > a->room)
		return 1;
	a->used += need;
	return warp_output(&hit, sizeof(hit)) < 0 || warp_output(&row, sizeof(row)) < 0 ||
	       warp_output(a->state.path, row.path_len) < 0 ||
	       warp_output(record, row.record_len) < 0 || warp_output(&zero, pad) < 0;
}

/* The table stays in order; its first value goes when it is full */
static inline void table_enter(struct walk_fold *f, uint64_t key)
{
	uint32_t i = 0;

	if (f->used == f->top) {
		for (; i + 1 < f->used && i + 1 < WALK_TOP_MAX && f->table[i + 1] < key; i++)
			f->table[i] = f->table[i + 1];
	} else {
		for (i = f->used++; i > 0 && i < WALK_TOP_MAX && f->table[i - 1] > key; i--)
			f->table[i] = f->table[i - 1];
	}
	if (i < WALK_TOP_MAX)
		f->table[i] = key;
}

/* One record; of equal values the first ones stay. 1: no room for output, and it is not done */
FAR long fold(struct walk_args *a, const char *record, uint64_t offset)
{
	struct walk_fold *f = &a->state.fold;
	uint64_t found, key;

	if (!judge(record))
		return 0;
	found = value(record);
	key = found ^ f->bias;
	if (f->top) {
		if (f->used == f->top && key <= f->table[0])
			return 0;
		if (row_give(a, record, found, offset))
			return 1;
		table_enter(f, key);
		return 0;
	}
	f->count++;
	f->sum += found;
	f->least = key < f->least ? key : f->least;
	f->greatest = key > f->greatest ? key : f->greatest;
	return 0;
}

/* A record that lies in several places, or partly in a hole, is put together in the scratch */
FAR void record_gather(struct arfs_place *p, struct walk_args *a, const struct arfs_inode *i,
		       uint64_t pos)
{
	uint64_t got = 0;

	while (got < a->record_size) {
		const char *at = 0;
		uint64_t len = (uint64_t)piece_find(p, i, pos + got, &at);

		if (len > a->record_size - got)
			len = a->record_size - got;
		if (!len)
			return;
		if (at)
			warp_copy(a->scratch + got, at, len);
		else
			warp_fill(a->scratch + got, 0, len);
		got += len;
	}
}

/* Records that stand one behind the other, @step bytes apart; 1: no room for output */
FAR long records_fold(struct walk_args *a, const char *at, uint64_t count, uint64_t step)
{
	for (uint64_t i = 0; i < count; i++) {
		if (fold(a, at, a->state.file_offset))
			return 1;
		at += step;
		a->state.file_offset += a->record_size;
	}
	return 0;
}

/* All whole records of a file. A hole is records of zeros. */
FAR long file_fold(struct arfs_place *p, struct walk_args *a, const struct arfs_inode *i)
{
	while (a->state.file_offset + a->record_size <= i->size) {
		uint64_t pos = a->state.file_offset, len, count;
		const char *at = 0;
		long full;

		len = (uint64_t)piece_find(p, i, pos, &at);
		count = len / a->record_size;
		if (!count || !at)
			record_gather(p, a, i, pos);
		if (count && at)
			full = records_fold(a, at, count, a->record_size);
		else
			full = records_fold(a, a->scratch, count ? count : 1, 0);
		if (full)
			return 1;
		a->bytes += a->state.file_offset - pos;
	}
	return 0;
}

/* --- the tree --- */

FAR void record_fill(struct walk_args *a, const struct arfs_inode *i, const struct arfs_entry *e)
{
	struct walk_record *r = &a->record;

	r->mode = i->mode;
	r->nlink = i->nlink;
	r->uid = i->uid;
	r->gid = i->gid;
	r->size = i->size;
	r->atime = i->atime;
	r->mtime = i->mtime;
	r->ctime = i->ctime;
	warp_fill(r->name, 0, sizeof(r->name));
	warp_copy(r->name, e->name, e->name_len);
}

/* One file, whose path ends at @len and stands before its first line */
static inline long file_visit(struct arfs_place *p, struct walk_args *a, const struct arfs_inode *i,
			      const struct arfs_entry *e, uint32_t len)
{
	a->path_len = len;
	if (a->mode == WALK_FILES || a->mode == WALK_FOLD_FILES) {
		record_fill(a, i, e);
		if (a->mode == WALK_FOLD_FILES)
			return fold(a, (const char *)&a->record, 0);
		return judge(&a->record) ? path_give(a, len) : 0;
	}
	if ((i->mode & ARFS_TYPE) != ARFS_FILE || !i->size)
		return 0;
	if (a->mode == WALK_FOLD_RECORDS)
		return file_fold(p, a, i);
	a->told = 0;
	return file_search(p, a, i);
}

/* The next entry of the directory @l, or 0; *next is the offset behind it */
FAR const struct arfs_entry *entry_next(struct arfs_place *p, const struct walk_level *l,
					uint64_t *next)
{
	const struct arfs_inode *dir =
		arfs_see(p, ARFS_SLOT_INODE, arfs_inode_offset(p, l->inode), sizeof(*dir));
	uint64_t at = l->offset;

	while (at < dir->size) {
		const struct arfs_entry *e;
		uint32_t block = 0;

		if (arfs_map(p, dir, at / ARFS_BLOCK, &block) || !block)
			return 0;
		e = (const struct arfs_entry *)(p->base + (uint64_t)block * ARFS_BLOCK +
						at % ARFS_BLOCK);
		if (!arfs_entry_good(e, at % ARFS_BLOCK))
			return 0;
		at += e->length;
		*next = at;
		if (e->inode && e->inode < arfs_inodes(p))
			return e;
	}
	return 0;
}

/* A level deeper, where the path has room for it */
static inline void level_enter(struct walk_args *a, uint32_t inode, uint32_t len)
{
	struct walk_state *s = &a->state;

	if (s->depth >= WALK_DEPTH || len > WALK_PATH - 260)
		return;
	s->path[len] = '/';
	s->level[s->depth].inode = inode;
	s->level[s->depth].path_len = len + 1;
	s->level[s->depth].offset = 0;
	s->depth++;
}

/* One entry of the deepest directory: 1 no more room */
FAR long step(struct arfs_place *p, struct walk_args *a)
{
	struct walk_state *s = &a->state;
	struct walk_level *l = &s->level[(s->depth - 1) % WALK_DEPTH];
	uint64_t next = 0;
	const struct arfs_entry *e = entry_next(p, l, &next);
	const struct arfs_inode *i;
	uint32_t len;

	if (!e || l->path_len > WALK_PATH - 260) {
		s->depth--;
		return 0;
	}
	if (a->only && e->inode != a->only) {
		l->offset = next;
		return 0;
	}
	i = arfs_see(p, ARFS_SLOT_INODE, arfs_inode_offset(p, e->inode), sizeof(*i));
	len = l->path_len + e->name_len;
	warp_copy(s->path + l->path_len, e->name, e->name_len);
	if (file_visit(p, a, i, e, len))
		return 1;
	s->file_offset = 0;
	l->offset = next;
	if ((i->mode & ARFS_TYPE) == ARFS_DIR)
		level_enter(a, e->inode, len);
	return 0;
}

static inline uint64_t seq_of(const struct arfs_place *p)
{
	return ((volatile struct arfs_super *)arfs_super(p))->seq;
}

long walk(struct walk_args *a, unsigned long len)
{
	struct arfs_place p = { (unsigned long)warp_region(0) };
	uint64_t seq = seq_of(&p);
	long full = 0;

	if (a->locked) {
		long ret;

		while ((ret = warp_lock(0)) < 0)
			;
		if (ret) /* a change is to be undone, by who takes the lock behind this run */
			return -EAGAIN;
	}
	while (!full && a->state.depth && a->bytes < WALK_BYTES)
		full = step(&p, a);
	full = full || a->state.depth;
	if (full || a->mode >= WALK_FOLD_FILES)
		hit_give(a, kind_len(WALK_STATE, sizeof(a->state)), 0, (const char *)&a->state);
	if (a->locked) {
		warp_unlock(0);
		return full;
	}
	return seq % 2 || seq_of(&p) != seq ? -EAGAIN : full;
}
