/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream as one process has it: what it was made by, where its memory is, and what this process
 * has seen and done. All else is in its state (stream/state/state.h), which processes share.
 */
#ifndef STREAM_LOCAL_H
#define STREAM_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "rnic/rnic_stream.h"

struct stream_slab;
struct stream_state;
struct stream_jobs;
struct stream_own_maps;

/* The transport of a connection was empty, when this process had sent so often (state/spare.c) */
struct stream_spare {
	bool is_set;
	uint32_t pair;
	uint64_t sends;
};

struct stream {
	/* For its user */
	int fd;		      /* atomic: set_fd may come at any time */
	int carrier;	      /* of a device that carries it; -1: the descriptor does */
	struct stream *older; /* its user's: one that it has replaced */
	int linger;	      /* SO_LINGER's seconds, as close() found it; -1: it is off */
	uint64_t cookie;      /* of the socket; 0: it was not asked for */

	const struct rnic_stream_ops *rnic;
	const char *provider;
	struct stream_slab *slab;
	uint32_t cell; /* which of its states it is */
	struct stream_state *state;
	struct rnic_stream_mem mem;
	uint8_t *chunks; /* rx: of the block in use */
	uint32_t rx;	 /* rx: which that is */
	bool starved;	 /* rx: bytes are lost, for there was no memory for them */
	uint8_t *hold;	 /* tx */
	bool is_file;	 /* other processes can find it */
	bool spent;	 /* the state is for no other connection */
	/* As it was made */
	bool initiator, only, probe, detour, no_crc, markers;
	unsigned int start_rtts, decide_rtts;
	uint16_t credits;
	uint32_t ring, chunk; /* bytes; powers of two */
	uint32_t offered;     /* features */
	uint32_t slots;	      /* for mappings of the peer's */
	uint64_t start_limit, apart_limit;
	uint64_t decide_limit, decide_max;
	/* What this process saw, and did */
	bool disowned, left;	    /* atomic: left */
	bool failed, last, counted; /* atomic: never came up; ends it; is among those that start */
	uint64_t looked;	    /* atomic: when a writer looked for input, and */
	bool drained;		    /* atomic: whether a reader has since */
	int probe_error;	    /* atomic */
	uint32_t start_error;	    /* atomic */
	int slot;		    /* atomic: its own place among the holders; -1: none */
	struct stream_jobs *jobs;   /* NULL: there have never been any */
	struct stream_own_maps *maps; /* the same */
	unsigned int regions;	      /* atomic */
	bool resting, shut;	   /* atomic: no thread of this process goes on; works any more */
	bool looked_behind;	   /* atomic: what opened it has found that nothing else is there */
	struct stream_spare spare; /* rx */
	uint32_t pair;		   /* atomic: of ports; 0: unknown */
	unsigned int sends;	   /* tx: while it is unknown */
	void (*changed)(void *ctx), (*probed)(void *ctx), (*urgent)(void *ctx), *ctx;
	int (*may_probe)(void *ctx, uint64_t limit, uint64_t *when);
};

static inline int stream_fd(const struct stream *s)
{
	return __atomic_load_n(&s->fd, __ATOMIC_ACQUIRE);
}

#endif
