/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of one-sided operations, of the process alone whose they are.
 */
#ifndef STREAM_PROTOCOL_ONESIDED_H
#define STREAM_PROTOCOL_ONESIDED_H

#include "stream/job.h"
#include "stream/state/facts.h"

struct stream_job_slot {
	struct stream_job job;
	uint32_t sent; /* tx: bytes of a Write */
	uint32_t over; /* atomic: written by tx (Writes) or rx (answers), read by who collects */
};

struct stream_jobs {
	uint32_t head;		  /* tx; * read without it */
	uint32_t next;		  /* tx; * */
	uint32_t tail;		  /* tx; * */
	uint32_t asked, answered; /* tx, rx; * both: Reads and Atomics, ever */
	uint16_t depth;
	bool closed; /* both */
	struct stream_job_slot slot[STREAM_JOBS];
};
_Static_assert((STREAM_JOBS & (STREAM_JOBS - 1)) == 0, "indices wrap");

struct stream_own_map {
	void *addr;
	size_t len; /* 0: the slot is free */
	uint32_t stag;
};

/* Both locks */
struct stream_own_maps {
	uint32_t told; /* messages, ever */
	struct stream_own_map map[STREAM_SLOTS];
};

/* --- jobs.c --- */

/* Is it one that can be? 0, -EINVAL */
int stream_job_check(const struct stream_job *job);
/* tx lock. It is the last one of the queue: 0, -EXDEV, -EOPNOTSUPP, -ENOBUFS */
int stream_job_enter(struct stream *s, const struct stream_job *job);
/* tx lock, the oldest one is over: it is taken out */
void stream_job_take(struct stream *s, struct stream_completion *out);
/* Both locks. The program goes, and its memory: nothing reaches that any more */
void stream_jobs_close(struct stream *s);

/* --- mapping.c --- */

/* Both locks: a region more, and one less */
int stream_region_enter(struct stream *s, void *addr, size_t len, unsigned int access,
			uint32_t *stag);
int stream_region_strike(struct stream *s, uint32_t stag);
/* rx lock. Makes of a mapped Write one that names STag and offset: 0, -ENXIO */
int stream_mapping_find(struct stream *s, struct stream_job *job);
/* Both locks. The slot of @addr, @len; NULL and 0: a free one. NULL: there is none */
struct stream_own_map *stream_map_find(struct stream *s, const void *addr, size_t len);
/* Has the peer credits for one mapping more? */
bool stream_map_allowed(const struct stream *s);
/* Both locks. The slot is free, and is the memory's when the peer was told: 0, -EAGAIN, -errno */
int stream_map_fill(struct stream *s, struct stream_own_map *m, void *addr, size_t len,
		    uint64_t offset);

#endif
