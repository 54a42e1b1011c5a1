/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations: memory for the peer's, and a queue of ours (protocol/jobs.c).
 *
 * Both belong to the process that used them first, which the state names; in any other the
 * connection may only be closed (-EXDEV).
 */
#include "stream/life/life.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"
#include "stream/protocol/onesided.h"

/* Both locks */
static int jobs_create(struct stream *s)
{
	uint16_t ird = base_min(s->state->peer.ord, STREAM_ONESIDED_DEPTH),
		 ord = base_min(s->state->peer.ird, STREAM_ONESIDED_DEPTH);
	struct stream_jobs *jobs;
	int err = s->rnic->onesided ? base_map_create(sizeof(*jobs), (void **)&jobs) : -EOPNOTSUPP;

	if (err)
		return err;
	err = s->rnic->onesided->create(&s->mem, ird, ord, &s->mem.regions);
	if (err) {
		base_map_destroy(jobs, sizeof(*jobs));
		return err;
	}
	jobs->depth = ord;
	__atomic_store_n(&s->jobs, jobs, __ATOMIC_RELEASE);
	return 0;
}

void stream_onesided_uninit(struct stream *s)
{
	if (s->mem.regions)
		s->rnic->onesided->destroy(s->mem.regions);
	base_map_destroy(s->jobs, sizeof(*s->jobs));
}

/* No lock. To the first process that uses them they belong, and there they are made */
static int own(struct stream *s)
{
	int err = 0;

	if (base_load(&s->jobs))
		return stream_is_foreign(s) ? -EXDEV : 0;
	stream_rx_lock(s);
	stream_tx_lock(s);
	if (stream_is_foreign(s))
		err = -EXDEV;
	else if (!s->jobs)
		err = jobs_create(s);
	if (!err)
		base_store(&s->state->owner, (uint32_t)syscall(SYS_getpid));
	stream_tx_unlock(s);
	stream_rx_unlock(s);
	return err;
}

int stream_onesided_ready(struct stream *s, bool can)
{
	int err = stream_is_open(s) ? 0 : stream_progress(s);

	if (err)
		return err;
	return can || stream_has(s, STREAM_FEATURE_ONESIDED) ? own(s) : -EOPNOTSUPP;
}

int stream_region_add(struct stream *s, void *addr, size_t len, unsigned int access, uint32_t *stag)
{
	int err = stream_onesided_ready(s, false);

	if (err)
		return err;
	stream_rx_lock(s);
	stream_tx_lock(s);
	err = stream_region_enter(s, addr, len, access, stag);
	stream_tx_unlock(s);
	stream_rx_unlock(s);
	return err;
}

int stream_region_remove(struct stream *s, uint32_t stag)
{
	int err = stream_onesided_ready(s, false);

	if (err)
		return err;
	stream_rx_lock(s);
	stream_tx_lock(s);
	err = stream_region_strike(s, stag);
	stream_tx_unlock(s);
	stream_rx_unlock(s);
	return err;
}

bool stream_serves(struct stream *s)
{
	/* A device serves its memory by itself */
	return !s->mem.native && base_load(&s->regions) &&
	       !(base_load(&s->state->ends) & STREAM_DRY) && !stream_is_foreign(s);
}

void stream_onesided_close(struct stream *s)
{
	if (!base_load(&s->jobs) || stream_is_foreign(s))
		return;
	stream_rx_lock(s);
	stream_tx_lock(s);
	stream_jobs_close(s);
	stream_tx_unlock(s);
	stream_rx_unlock(s);
}

static int mapping_find(struct stream *s, struct stream_job *job)
{
	int err;

	stream_rx_lock(s);
	err = stream_mapping_find(s, job);
	stream_rx_unlock(s);
	return err;
}

int stream_post(struct stream *s, const struct stream_job *wanted)
{
	struct stream_job copy = *wanted, *job = &copy;
	uint64_t before = stream_edges(s);
	int err = stream_onesided_ready(s, job->mapped && s->slots);

	if (!err && job->mapped)
		err = mapping_find(s, job);
	if (!err)
		err = stream_job_check(job);
	if (!err && base_load(&s->state->ends) & (STREAM_OUT_ENDED | STREAM_SHUT_WR))
		err = -EPIPE;
	if (err)
		return err;
	stream_tx_lock(s);
	err = stream_job_enter(s, job);
	if (!err)
		stream_push(s);
	stream_tx_unlock(s);
	stream_tell(s, before);
	return err;
}

int stream_complete(struct stream *s, struct stream_completion *out)
{
	int err = 0;

	if (stream_is_foreign(s))
		return -EXDEV;
	if (!stream_jobs_over(s))
		stream_progress(s);
	stream_tx_lock(s);
	if (stream_jobs_over(s))
		stream_job_take(s, out);
	else
		err = -EAGAIN;
	stream_tx_unlock(s);
	return err;
}
