/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lies in the file of a slab. Part of stream/state/memory.h.
 */
#ifndef STREAM_STATE_SLAB_FILE_H
#define STREAM_STATE_SLAB_FILE_H

#include <stddef.h>

#include "stream/state/state.h"

/* Connections of one file, at most; as many as bits of a word of struct stream_slab_file */
#define STREAM_CELLS 64u

/*
 * Memory for bytes: in and chunk are of one connection, rest and hold of one, which may be another.
 * A connection has it while there are such bytes.
 */
struct stream_block {
	uint8_t in[RNIC_STREAM_IN] __attribute__((aligned(4096)));
	uint8_t rest[RNIC_STREAM_REST] __attribute__((aligned(4096)));
	uint8_t hold[STREAM_HOLD] __attribute__((aligned(4096)));
	uint8_t chunk[] __attribute__((aligned(4096))); /* STREAM_CHUNKS of them */
};

/* What the peer has mapped: rx */
struct stream_maps {
	struct stream_mapping slot[STREAM_SLOTS];
} __attribute__((aligned(4096)));

/*
 * What the files of all versions begin with, whatever else they change: so each version can tell
 * whether anybody has a connection of another one's file, and the files of an older version do not
 * stay for ever. A version with another struct stream_holder says 0 for holder_at: nobody can tell.
 */
struct stream_slab_head {
	uint32_t magic, version;
	uint32_t cells;
	uint32_t left;	     /* atomic: who made it has no more use for its name */
	uint64_t since;	     /* base_process_clock(), when it was made */
	uint32_t pid, space; /* the process that made it, as base_process has them */
	uint64_t used;	     /* atomic: cells that have memory */
	uint32_t swept;	     /* atomic: how many take its name away, if nobody has a connection */
	uint32_t cell_at;    /* bytes before the first cell, and of each */
	uint32_t cell_size;
	uint32_t holder_at;   /* in a cell: STREAM_HOLDERS of struct stream_holder */
	uint32_t overflow_at; /* in a cell: a number of those beyond */
	uint32_t pad;
};

/*
 * The file of some connections: this head, their states, as many blocks, as many tables of
 * mappings. What nobody touches takes no memory.
 */
struct stream_slab_file {
	/* As in the head of all versions */
	uint32_t magic, version;
	uint32_t cells;
	uint32_t left;
	uint64_t since;
	uint32_t pid, space;
	uint64_t used;
	uint32_t swept;
	uint32_t cell_at, cell_size, holder_at, overflow_at, pad;
	/* This version's */
	uint32_t chunk;		   /* bytes of one, of each connection */
	uint32_t common;	   /* atomic: another process may have come to one, ever */
	uint64_t octets;	   /* of the file */
	uint64_t rx_free, tx_free; /* atomic: blocks; a bit for each that nobody has */
	uint64_t sent_from;	   /* atomic: blocks that may have memory for what goes */
	uint64_t name;		   /* of the file: a number */
	uint64_t named;		   /* atomic: cells whose cookie is a name of the file */
	uint64_t promised;	   /* atomic: cells whose memory is counted (promise.c) */
	uint32_t closed; /* atomic: it has no names any more, and parts of it lie elsewhere */
	uint32_t mapped; /* atomic: processes that have it; also those that were killed */
	uint32_t lost[STREAM_CELLS]; /* atomic: of each block, how often its chunks lost memory */
	/* rx; tx of each connection: the block that it has, plus one; 0: none */
	uint8_t rx_block[STREAM_CELLS], tx_block[STREAM_CELLS];
	struct stream_state cell[] __attribute__((aligned(64)));
};

#define STREAM_SAME(field)                                               \
	_Static_assert(offsetof(struct stream_slab_file, field) ==       \
			       offsetof(struct stream_slab_head, field), \
		       "in all versions")
STREAM_SAME(magic);
STREAM_SAME(version);
STREAM_SAME(cells);
STREAM_SAME(left);
STREAM_SAME(since);
STREAM_SAME(pid);
STREAM_SAME(space);
STREAM_SAME(used);
STREAM_SAME(swept);
STREAM_SAME(cell_at);
STREAM_SAME(cell_size);
STREAM_SAME(holder_at);
STREAM_SAME(overflow_at);
_Static_assert(sizeof(struct stream_slab_head) == 64, "in all versions");
_Static_assert(sizeof(struct stream_holder) == 32, "in all versions");

#endif
