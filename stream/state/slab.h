/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that hold the states of some connections each, as this process has them mapped. Part of
 * stream/state/memory.h.
 */
#ifndef STREAM_STATE_SLAB_H
#define STREAM_STATE_SLAB_H

#include "base/list.h"
#include "stream/local.h"
#include "stream/place.h"
#include "stream/state/slab_file.h"

/* --- this process's view --- */

/* A file, or a mapping without one, as this process has it */
struct stream_slab {
	struct base_list node; /* lock: among those that have room for more */
	struct base_list file; /* lock: among the files that this process has */
	struct stream_slab_file *at;
	size_t size, own; /* bytes of it, and of this struct with what follows */
	uint32_t cells, chunk;
	uint8_t *blocks;
	struct stream_maps *maps;
	struct stream_place place; /* dir is NULL: it has no name */
	unsigned int age;	   /* of the process that takes cells of it */
	uint64_t name;		   /* as the file had it */
	uint64_t *promises;	   /* of its folder; NULL: nobody counts */
	uint64_t free, live;	   /* lock: cells that nobody has; that this process has not left */
	unsigned int refs;	   /* lock */
	bool retired;		   /* lock: no more cells are taken */
	bool closed;		   /* lock: as the file has it */
	bool nameless;		   /* lock: this process has given up its name */
	bool stuck;		   /* lock: nobody has it, and its name could not be removed */
	uint64_t touched;	   /* atomic: blocks that may have memory */
	size_t kept;		   /* atomic: bytes of chunks that have memory for certain */
	uint64_t moved[STREAM_CELLS]; /* atomic: parts of each block that lie elsewhere (move.c) */
	/* Who has the block: bytes of each chunk that have memory for certain; when it lost some */
	uint64_t trimmed[STREAM_CELLS];
	uint32_t lost[STREAM_CELLS]; /* as the file had it when this process looked last */
	uint32_t reserved[STREAM_CELLS][STREAM_CHUNKS];
	uint32_t many[STREAM_CELLS]; /* of these, bytes beyond the chunks that stay (block.c) */
	struct stream rsock[];	     /* of each cell */
};

/* Which files are alike */
struct stream_slab_kind {
	struct stream_place place; /* dir is NULL: without a name */
	uint32_t chunk;
};

/*
 * A cell, all zeroes, and the stream over it. *@alone: nobody had a cell of this file. -ENOENT:
 * there is none to be had
 */
int stream_slab_take(const struct stream_slab_kind *kind, struct stream **out, bool *alone);
/* The same of a new file, or of new memory without a name: 0, -errno */
int stream_slab_create(const struct stream_slab_kind *kind, struct stream **out);
/* The same, and nobody takes a cell of it yet, unless one can be had already: 0, -errno */
int stream_slab_ready(const struct stream_slab_kind *kind);
/* It is a connection: @s->cookie says whose */
void stream_slab_live(struct stream *s);
/* Its memory is there, and others may look at it */
bool stream_slab_is_used(const struct stream *s);
void stream_slab_use(struct stream *s);
/* Behind stream_holder_enter(): has the file no name any more? Then it takes no more connections */
bool stream_slab_is_swept(struct stream *s);
/* This process has left it, and given back its place among the holders; @last: of all */
void stream_slab_leave(struct stream *s, bool last);
/*
 * The cell of @cookie in the file at @path, which others have made: 0, -EPROTO (there is none),
 * -errno
 */
int stream_slab_open(const char *path, struct stream_place place, uint64_t cookie,
		     struct stream **out);
/* The cell is free, unless another process may have come to it; @s is no more */
void stream_slab_put(struct stream *s);

/* Another process may come to the cell: it is never used again */
void stream_slab_share(struct stream *s);
/*
 * The same, and its cookie is a name of the file: 0. Where no name can be added, others find it by
 * a search. -EOPNOTSUPP: the file has no name
 */
int stream_slab_publish(struct stream *s);
/* It has no name any more, nor has its file, if nobody has a connection of it */
void stream_slab_unpublish(struct stream *s);
/*
 * The slab of this process with @p in it, which no other process has or comes to any more: its
 * names are gone. NULL: there is none, or others have it
 */
struct stream_slab *stream_slab_close(const void *p);

struct stream_slab_cells {
	struct stream_slab_file *at;
	size_t size;
	uint32_t cells, chunk;
};

/* For who only looks: the file at @path, judged, and mapped: 0, -EPROTO, -errno */
int stream_slab_map(const char *path, struct stream_slab_cells *out);
/* The state of @cookie after @after (NULL: the first one), or NULL */
struct stream_state *stream_slab_find(const struct stream_slab_cells *c, uint64_t cookie,
				      struct stream_state *after);
/* Does the process that made it live, and has use for it? */
bool stream_slab_has_maker(const struct stream_slab_cells *c);
/* Has a process that lives this connection; or one of the file? */
bool stream_cell_is_held(struct stream_state *st);
bool stream_slab_is_held(const struct stream_slab_cells *c);
/* Takes its name from it, unless somebody comes to it meanwhile: then false */
bool stream_slab_sweep(const struct stream_slab_cells *c);
/*
 * The same of a file that is none of this version's, or not yet, whatever it has. False, too, where
 * that cannot be known
 */
bool stream_slab_sweep_strange(const char *path);

/* --- promise.c --- */

/* The number of bytes that is promised in a folder: 0, -errno */
int stream_promises(struct stream_place place, uint64_t **out);
/* That was of a folder which is gone */
void stream_promises_forget(struct stream_place place);
/* May a connection of @chunk have a name, besides all that have one? 0, -ENOSPC, -errno */
int stream_promise_room(struct stream_place place, uint32_t chunk);
/* The same of one that has its file already: the folder itself is not asked */
int stream_promise_fits(struct stream_place place, uint32_t chunk);
/* The number is made anew of what connections there are. False: that was done just now */
bool stream_promises_count(struct stream_place place);
/* A cell is a connection; it is none any more, whoever says so */
void stream_promise_set(struct stream_slab *slab, uint32_t cell, bool on);
/* Under the lock: all names of the file go, whoever has it, and none of it is counted any more */
void stream_slab_names_drop(const struct stream_slab *slab);

/* --- file.c --- */

static inline uint64_t stream_cells_mask(uint32_t cells)
{
	return ~0ull >> (64 - cells);
}

/* Bytes of a block, before the blocks, of all */
static inline size_t stream_file_block(uint32_t chunk)
{
	return sizeof(struct stream_block) + STREAM_CHUNKS * (size_t)chunk;
}

size_t stream_file_head(uint32_t cells);
size_t stream_file_size(uint32_t cells, uint32_t chunk);
void stream_file_init(struct stream_slab_file *at, uint32_t cells, uint32_t chunk, uint64_t name);

/* Under the lock of slabs, or where nobody else has @slab: its own name goes; 0, -errno */
int stream_name_remove(const struct stream_slab *slab);
/* The cookie is no name of the file any more */
void stream_cookie_remove(const struct stream_slab *slab, uint64_t cookie);
/*
 * The cookie of @s becomes a name of its file: 0. Where none can be added it is still found, by a
 * search. -EOPNOTSUPP: the file has no name of its own
 */
int stream_name_add(struct stream *s);
/* It is none any more */
void stream_name_unlink(struct stream *s);
/* What is at @path, and in it all states of @cookie, is history: the socket has connected again */
void stream_name_replace(const char *path, uint64_t cookie);

#endif
