/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations of ours, in a queue.
 *
 * It has three indices, which only grow: head..next are sent, next..tail are not. A Write goes in
 * pieces of one FPDU, so that grants can go between them. Jobs leave in their order and before
 * bytes that are sent later: who writes and then sends a message knows that the peer finds the one
 * when it has the other. Completions are told in order too. A Write is over when the kernel has all
 * of it, the others when their answer is here; when the connection ends, all are.
 */
#include "stream/protocol/onesided.h"

#include <errno.h>
#include <string.h>

#include "stream/protocol/protocol.h"

static struct stream_job_slot *slot_at(struct stream_jobs *jobs, uint32_t i)
{
	return &jobs->slot[i % STREAM_JOBS];
}

static struct stream_jobs *jobs_of(const struct stream *s)
{
	return __atomic_load_n(&s->jobs, __ATOMIC_ACQUIRE);
}

/* --- sending --- */

static bool is_asking(const struct stream_job_slot *slot)
{
	return slot->job.kind != STREAM_JOB_WRITE;
}

static bool answers_full(const struct stream_jobs *jobs)
{
	uint32_t answered = base_load(&jobs->answered);

	return base_load(&jobs->asked) - answered >= jobs->depth;
}

bool stream_jobs_left(const struct stream *s)
{
	const struct stream_jobs *jobs = jobs_of(s);

	return jobs && base_load(&jobs->next) != base_load(&jobs->tail);
}

bool stream_jobs_due(const struct stream *s)
{
	return stream_jobs_left(s) &&
	       !(is_asking(slot_at(s->jobs, base_load(&s->jobs->next))) && answers_full(s->jobs));
}

static int write_push(struct stream *s, struct stream_job_slot *slot)
{
	struct stream_job *job = &slot->job;
	int done = 1;

	do {
		uint32_t segment = s->rnic->segment(&s->mem, 0);
		struct iovec iov = { (char *)job->addr + slot->sent,
				     base_min(job->len - slot->sent, segment) };
		struct rnic_stream_wr wr = { .stag = job->stag,
					     .to = job->to + slot->sent,
					     .iov = &iov,
					     .niov = 1,
					     .len = (uint32_t)iov.iov_len };

		done = stream_wr_post(s, &wr, 1);
		if (done > 0)
			slot->sent += wr.len;
	} while (done > 0 && slot->sent < job->len);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}

static int ask_push(struct stream *s, struct stream_job_slot *slot)
{
	static const enum rnic_onesided_opcode opcodes[] = {
		[STREAM_JOB_READ] = RNIC_READ,
		[STREAM_JOB_ADD] = RNIC_FETCH_ADD,
		[STREAM_JOB_SWAP] = RNIC_CMP_SWAP,
	};
	const struct stream_job *job = &slot->job;
	struct rnic_onesided op = {
		.opcode = opcodes[job->kind],
		.sink_to = (uintptr_t)job->addr,
		.cookie = s->jobs->next,
		.data = job->data,
		.mask = job->mask,
		.compare = job->compare,
		.compare_mask = job->compare_mask,
	};
	struct rnic_stream_wr wr = { .stag = job->stag, .to = job->to, .len = job->len, .op = &op };
	int done;

	/* The answer may be here before the call returns */
	base_store(&s->jobs->asked, s->jobs->asked + 1);
	done = stream_wr_post(s, &wr, 1);
	if (done <= 0)
		base_store(&s->jobs->asked, s->jobs->asked - 1);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}

int stream_jobs_push(struct stream *s)
{
	struct stream_jobs *jobs = s->jobs;
	int err = 0;

	while (!err && stream_jobs_due(s)) {
		struct stream_job_slot *slot = slot_at(jobs, jobs->next);

		err = is_asking(slot) ? ask_push(s, slot) : write_push(s, slot);
		if (err)
			break;
		if (!is_asking(slot)) {
			base_store(&slot->over, 1);
			__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
		}
		base_store(&jobs->next, jobs->next + 1);
		if (jobs->next == jobs->tail)
			__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
	}
	return err;
}

int stream_job_check(const struct stream_job *job)
{
	bool atomic = job->kind == STREAM_JOB_ADD || job->kind == STREAM_JOB_SWAP;

	if (job->len > STREAM_JOB_MAX || (job->len && !job->addr) || job->to + job->len < job->to)
		return -EINVAL;
	if (atomic && (job->len != sizeof(uint64_t) || job->to % sizeof(uint64_t) ||
		       (uintptr_t)job->addr % sizeof(uint64_t)))
		return -EINVAL;
	return 0;
}

/* tx lock */
int stream_job_enter(struct stream *s, const struct stream_job *job)
{
	struct stream_jobs *jobs = s->jobs;
	int err = stream_is_foreign(s) ? -EXDEV : 0;

	if (!err && job->kind != STREAM_JOB_WRITE && !jobs->depth)
		err = -EOPNOTSUPP;
	if (!err && jobs->tail - jobs->head == STREAM_JOBS)
		err = -ENOBUFS;
	if (err)
		return err;
	*slot_at(jobs, jobs->tail) = (struct stream_job_slot){ .job = *job };
	base_store(&jobs->tail, jobs->tail + 1);
	return 0;
}

void stream_jobs_close(struct stream *s)
{
	base_store(&s->jobs->tail, s->jobs->next);
	s->jobs->closed = true;
	base_store(&s->regions, 0);
	s->rnic->onesided->close(s->mem.regions);
}

/* --- completions --- */

void stream_job_done(struct stream *s, uint64_t cookie, uint64_t value)
{
	struct stream_job_slot *slot;

	if (!s->jobs)
		return;
	/* Pairs with stream_job_enter(), which wrote it under tx */
	base_load(&s->jobs->tail);
	slot = slot_at(s->jobs, (uint32_t)cookie);
	if (!s->jobs->closed &&
	    (slot->job.kind == STREAM_JOB_ADD || slot->job.kind == STREAM_JOB_SWAP))
		memcpy(slot->job.addr, &value, sizeof(value));
	base_store(&s->jobs->answered, s->jobs->answered + 1);
	base_store(&slot->over, 1);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
}

bool stream_jobs_over(const struct stream *s)
{
	struct stream_jobs *jobs = jobs_of(s);
	uint32_t head;

	if (!jobs || stream_is_foreign(s))
		return false;
	head = base_load(&jobs->head);
	if (head == base_load(&jobs->tail))
		return false;
	return base_load(&slot_at(jobs, head)->over) ||
	       base_load(&s->state->ends) & STREAM_OUT_ENDED;
}

/* The peer refuses memory by a Terminate of RDMAP's or DDP's; its first victim is told */
static enum stream_job_status why_not(struct stream *s)
{
	struct rnic_stream_info info;

	s->rnic->info(&s->mem, &info);
	if (!info.fault_by_peer || s->state->refused)
		return STREAM_JOB_FLUSHED;
	s->state->refused = 1;
	return STREAM_JOB_REFUSED;
}

/* tx lock */
void stream_job_take(struct stream *s, struct stream_completion *out)
{
	struct stream_jobs *jobs = s->jobs;
	struct stream_job_slot *slot = slot_at(jobs, jobs->head);
	bool over = base_load(&slot->over);

	*out = (struct stream_completion){
		.kind = slot->job.kind,
		.status = over ? STREAM_JOB_DONE : why_not(s),
		.cookie = slot->job.cookie,
		.len = over ? slot->job.len : 0,
	};
	base_store(&jobs->head, jobs->head + 1);
	if ((int32_t)(jobs->next - jobs->head) < 0)
		base_store(&jobs->next, jobs->head);
}

uint64_t stream_jobs_count(const struct stream *s)
{
	const struct stream_jobs *jobs = jobs_of(s);

	return jobs ? base_load(&jobs->tail) : 0;
}
