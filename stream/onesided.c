/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations: memory for the peer's, and a queue of ours.
 *
 * Both belong to the process that used them first, which the state names; in any other the
 * connection may only be closed (-EXDEV).
 *
 * The queue has three indices, which only grow: head..next are sent, next..tail are not. A Write
 * goes in pieces of one FPDU, so that grants can go between them. Jobs leave in their order and
 * before octets that are sent later: who writes and then sends a message knows that the peer finds
 * the one when it has the other. Completions are told in order too. A Write is over when the kernel
 * has all of it, the others when their answer is here; when the connection ends, all are.
 */
#include "stream/rsock.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"

struct slot {
	struct stream_job job;
	uint32_t sent; /* tx: octets of a Write */
	uint32_t over; /* atomic: written by tx (Writes) or rx (answers), read by who collects */
};

struct rsock_jobs {
	uint32_t head;		  /* tx; * read without it */
	uint32_t next;		  /* tx; * */
	uint32_t tail;		  /* tx; * */
	uint32_t asked, answered; /* tx, rx; * both: Reads and Atomics, ever */
	uint16_t depth;
	bool closed; /* both */
	struct slot slot[STREAM_JOBS];
};
_Static_assert((STREAM_JOBS & (STREAM_JOBS - 1)) == 0, "indices wrap");

static struct slot *slot_at(struct rsock_jobs *jobs, uint32_t i)
{
	return &jobs->slot[i % STREAM_JOBS];
}

/* --- set-up --- */

static struct rsock_jobs *jobs_of(const struct rsock *s)
{
	return __atomic_load_n(&s->jobs, __ATOMIC_ACQUIRE);
}

/* Both locks */
static int jobs_create(struct rsock *s)
{
	uint16_t ird = base_min(s->state->peer.ord, RSOCK_DEPTH),
		 ord = base_min(s->state->peer.ird, RSOCK_DEPTH);
	struct rsock_jobs *jobs;
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

void rsock_onesided_uninit(struct rsock *s)
{
	if (s->mem.regions)
		s->rnic->onesided->destroy(s->mem.regions);
	base_map_destroy(s->jobs, sizeof(*s->jobs));
	rsock_maps_uninit(s);
}

bool rsock_is_anothers(const struct rsock *s)
{
	uint32_t owner = rsock_load(&s->state->owner);

	return owner && owner != (uint32_t)syscall(SYS_getpid);
}

bool rsock_is_foreign(const struct rsock *s)
{
	/* Closed here while another process has it: what fails here must not break it there */
	return __atomic_load_n(&s->base.fd, __ATOMIC_ACQUIRE) < 0 || rsock_is_anothers(s);
}

/* No lock. To the first process that uses them they belong, and there they are made */
static int own(struct rsock *s)
{
	int err = 0;

	if (jobs_of(s))
		return rsock_is_foreign(s) ? -EXDEV : 0;
	rsock_rx_lock(s);
	rsock_tx_lock(s);
	if (rsock_is_foreign(s))
		err = -EXDEV;
	else if (!s->jobs)
		err = jobs_create(s);
	if (!err)
		rsock_store(&s->state->owner, (uint32_t)syscall(SYS_getpid));
	rsock_tx_unlock(s);
	rsock_rx_unlock(s);
	return err;
}

int rsock_onesided_ready(struct rsock *s, bool can)
{
	int err = rsock_is_open(s) ? 0 : stream_progress(&s->base);

	if (err)
		return err;
	return can || rsock_has(s, STREAM_FEATURE_ONESIDED) ? own(s) : -EOPNOTSUPP;
}

/* --- memory --- */

int rsock_region_enter(struct rsock *s, void *addr, size_t len, unsigned int access, uint32_t *stag)
{
	int err = s->rnic->onesided->add(s->mem.regions, addr, len, access, stag);

	if (!err)
		__atomic_add_fetch(&s->regions, 1, __ATOMIC_ACQ_REL);
	return err;
}

int rsock_region_strike(struct rsock *s, uint32_t stag)
{
	int err = s->rnic->onesided->remove(s->mem.regions, stag);

	if (!err)
		__atomic_sub_fetch(&s->regions, 1, __ATOMIC_ACQ_REL);
	return err;
}

int stream_region_add(struct stream *stream, void *addr, size_t len, unsigned int access,
		      uint32_t *stag)
{
	struct rsock *s = rsock_of(stream);
	int err = rsock_onesided_ready(s, false);

	if (err)
		return err;
	rsock_rx_lock(s);
	rsock_tx_lock(s);
	err = rsock_region_enter(s, addr, len, access, stag);
	rsock_tx_unlock(s);
	rsock_rx_unlock(s);
	return err;
}

int stream_region_remove(struct stream *stream, uint32_t stag)
{
	struct rsock *s = rsock_of(stream);
	int err = rsock_onesided_ready(s, false);

	if (err)
		return err;
	rsock_rx_lock(s);
	rsock_tx_lock(s);
	err = rsock_region_strike(s, stag);
	rsock_tx_unlock(s);
	rsock_rx_unlock(s);
	return err;
}

bool stream_serves(struct stream *stream)
{
	struct rsock *s = rsock_of(stream);

	/* A device serves its memory by itself */
	return !s->mem.native && rsock_load(&s->regions) &&
	       !(rsock_load(&s->state->ends) & STREAM_DRY) && !rsock_is_foreign(s);
}

/* --- sending --- */

static bool is_asking(const struct slot *slot)
{
	return slot->job.kind != STREAM_JOB_WRITE;
}

static bool answers_full(const struct rsock_jobs *jobs)
{
	uint32_t answered = rsock_load(&jobs->answered);

	return rsock_load(&jobs->asked) - answered >= jobs->depth;
}

bool rsock_jobs_left(const struct rsock *s)
{
	const struct rsock_jobs *jobs = jobs_of(s);

	return jobs && rsock_load(&jobs->next) != rsock_load(&jobs->tail);
}

bool rsock_jobs_due(const struct rsock *s)
{
	return rsock_jobs_left(s) &&
	       !(is_asking(slot_at(s->jobs, rsock_load(&s->jobs->next))) && answers_full(s->jobs));
}

static int write_push(struct rsock *s, struct slot *slot)
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

		done = rsock_post(s, &wr, 1);
		if (done > 0)
			slot->sent += wr.len;
	} while (done > 0 && slot->sent < job->len);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}

static int ask_push(struct rsock *s, struct slot *slot)
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
	rsock_store(&s->jobs->asked, s->jobs->asked + 1);
	done = rsock_post(s, &wr, 1);
	if (done <= 0)
		rsock_store(&s->jobs->asked, s->jobs->asked - 1);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}

int rsock_jobs_push(struct rsock *s)
{
	struct rsock_jobs *jobs = s->jobs;
	int err = 0;

	while (!err && rsock_jobs_due(s)) {
		struct slot *slot = slot_at(jobs, jobs->next);

		err = is_asking(slot) ? ask_push(s, slot) : write_push(s, slot);
		if (err)
			break;
		if (!is_asking(slot)) {
			rsock_store(&slot->over, 1);
			__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
		}
		rsock_store(&jobs->next, jobs->next + 1);
		if (jobs->next == jobs->tail)
			__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
	}
	return err;
}

void rsock_onesided_close(struct rsock *s)
{
	if (!jobs_of(s) || rsock_is_foreign(s))
		return;
	rsock_rx_lock(s);
	rsock_tx_lock(s);
	rsock_store(&s->jobs->tail, s->jobs->next);
	s->jobs->closed = true;
	rsock_store(&s->regions, 0);
	s->rnic->onesided->close(s->mem.regions);
	rsock_tx_unlock(s);
	rsock_rx_unlock(s);
}

static int job_check(const struct stream_job *job)
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
static int job_enter(struct rsock *s, const struct stream_job *job)
{
	struct rsock_jobs *jobs = s->jobs;
	int err = rsock_is_foreign(s) ? -EXDEV : 0;

	if (!err && job->kind != STREAM_JOB_WRITE && !jobs->depth)
		err = -EOPNOTSUPP;
	if (!err && jobs->tail - jobs->head == STREAM_JOBS)
		err = -ENOBUFS;
	if (err)
		return err;
	*slot_at(jobs, jobs->tail) = (struct slot){ .job = *job };
	rsock_store(&jobs->tail, jobs->tail + 1);
	rsock_push(s);
	return 0;
}

int stream_post(struct stream *stream, const struct stream_job *wanted)
{
	struct rsock *s = rsock_of(stream);
	struct stream_job copy = *wanted, *job = &copy;
	uint64_t before = rsock_edges(s);
	int err = rsock_onesided_ready(s, job->mapped && s->slots);

	if (!err && job->mapped)
		err = rsock_mapping_find(s, job);
	if (!err)
		err = job_check(job);
	if (!err && rsock_load(&s->state->ends) & (STREAM_OUT_ENDED | STREAM_SHUT_WR))
		err = -EPIPE;
	if (err)
		return err;
	rsock_tx_lock(s);
	err = job_enter(s, job);
	rsock_tx_unlock(s);
	rsock_tell(s, before);
	return err;
}

/* --- completions --- */

void rsock_job_done(struct rsock *s, uint64_t cookie, uint64_t value)
{
	struct slot *slot;

	if (!s->jobs)
		return;
	/* Pairs with job_enter(), which wrote it under tx */
	rsock_load(&s->jobs->tail);
	slot = slot_at(s->jobs, (uint32_t)cookie);
	if (!s->jobs->closed &&
	    (slot->job.kind == STREAM_JOB_ADD || slot->job.kind == STREAM_JOB_SWAP))
		memcpy(slot->job.addr, &value, sizeof(value));
	rsock_store(&s->jobs->answered, s->jobs->answered + 1);
	rsock_store(&slot->over, 1);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
}

bool rsock_jobs_over(const struct rsock *s)
{
	struct rsock_jobs *jobs = jobs_of(s);
	uint32_t head;

	if (!jobs || rsock_is_foreign(s))
		return false;
	head = rsock_load(&jobs->head);
	if (head == rsock_load(&jobs->tail))
		return false;
	return rsock_load(&slot_at(jobs, head)->over) ||
	       rsock_load(&s->state->ends) & STREAM_OUT_ENDED;
}

/* The peer refuses memory by a Terminate of RDMAP's or DDP's; its first victim is told */
static enum stream_job_status why_not(struct rsock *s)
{
	struct rnic_stream_info info;

	s->rnic->info(&s->mem, &info);
	if (!info.fault_by_peer || s->state->refused)
		return STREAM_JOB_FLUSHED;
	s->state->refused = 1;
	return STREAM_JOB_REFUSED;
}

/* tx lock */
static void slot_take(struct rsock *s, struct stream_completion *out)
{
	struct rsock_jobs *jobs = s->jobs;
	struct slot *slot = slot_at(jobs, jobs->head);
	bool over = rsock_load(&slot->over);

	*out = (struct stream_completion){
		.kind = slot->job.kind,
		.status = over ? STREAM_JOB_DONE : why_not(s),
		.cookie = slot->job.cookie,
		.len = over ? slot->job.len : 0,
	};
	rsock_store(&jobs->head, jobs->head + 1);
	if ((int32_t)(jobs->next - jobs->head) < 0)
		rsock_store(&jobs->next, jobs->head);
}

int stream_complete(struct stream *stream, struct stream_completion *out)
{
	struct rsock *s = rsock_of(stream);
	int err = 0;

	if (rsock_is_foreign(s))
		return -EXDEV;
	if (!rsock_jobs_over(s))
		stream_progress(stream);
	rsock_tx_lock(s);
	if (rsock_jobs_over(s))
		slot_take(s, out);
	else
		err = -EAGAIN;
	rsock_tx_unlock(s);
	return err;
}

uint64_t rsock_jobs_count(const struct rsock *s)
{
	const struct rsock_jobs *jobs = jobs_of(s);

	return jobs ? rsock_load(&jobs->tail) : 0;
}
