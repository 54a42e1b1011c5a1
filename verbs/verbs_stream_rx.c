/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes in: messages, each in a slot that goes back to the device before the stream answers it,
 * for an answer lets the peer send another; and of what was sent, that it has left.
 *
 * The queue is emptied, then armed, then looked at once more; so when there is nothing, the channel
 * wakes who sleeps for the next completion.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "verbs/verbs_stream.h"

#define BATCH 16
/* Completions that one call takes at most, and a batch more */
#define TAKEN_MAX 1000

int verbs_stream_slot_post(struct verbs_stream *s, unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)s->slots.p + i * VERBS_STREAM_SLOT, VERBS_STREAM_SLOT,
			       s->slots.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = verbs_stream_id(true, i),
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	return -ibv_post_recv(s->id->qp, &wr, &bad);
}

/* The message is taken before its slot goes: 0, -errno */
static int message_take(struct verbs_stream *s, const struct rnic_sink *sink,
			const struct ibv_wc *wc)
{
	unsigned int slot = (unsigned int)(wc->wr_id >> 1);
	const char *p = (const char *)s->slots.p + slot * VERBS_STREAM_SLOT;
	int err = sink->message(sink->ctx, 0, p, wc->byte_len, true);

	verbs_stream_write_retry_heard(s);
	/* What ended meanwhile takes none */
	if (!err)
		verbs_stream_slot_post(s, slot);
	return err;
}

static void sent_note(struct verbs_stream *s, const struct rnic_sink *sink, const struct ibv_wc *wc)
{
	verbs_store(&s->out_done, wc->wr_id >> 1);
	verbs_stream_done(s);
	sink->room(sink->ctx);
}

static const char *work_name(uint64_t wr_id)
{
	if (wr_id == VERBS_STREAM_KEEP)
		return "a keepalive";
	return wr_id & 1 ? "a message" : "a send";
}

/* 0; -EPROTO: the peer said what must not be */
static int completion_take(struct verbs_stream *s, const struct rnic_sink *sink,
			   const struct ibv_wc *wc)
{
	bool message = wc->wr_id & 1 && wc->wr_id != VERBS_STREAM_KEEP;

	if (!(wc->wr_id & 1))
		sent_note(s, sink, wc);
	else if (!message)
		s->keep_out = false;
	if (wc->status == IBV_WC_SUCCESS)
		return message ? message_take(s, sink, wc) : 0;
	/* Why it ended, if anybody says so, is the connection manager's to say */
	if (wc->status != IBV_WC_WR_FLUSH_ERR) {
		base_debug("verbs: %s failed with status %d, of %u posted %u are done",
			   work_name(wc->wr_id), wc->status, verbs_load(&s->posted),
			   verbs_load(&s->done));
		/* As TCP says it of a peer that was asked and is silent */
		verbs_stream_fail(s, wc->wr_id == VERBS_STREAM_KEEP ? -ETIMEDOUT : -ECONNRESET);
	}
	return 0;
}

/* What is in the queue, up to a bound: how many, or -EPROTO */
static int queue_empty(struct verbs_stream *s, const struct rnic_sink *sink)
{
	struct ibv_wc wc[BATCH];
	int n, sum = 0;

	while (sum < TAKEN_MAX && (n = ibv_poll_cq(s->cq, BATCH, wc)) > 0) {
		for (int i = 0; i < n; i++)
			if (completion_take(s, sink, &wc[i]))
				return -EPROTO;
		sum += n;
	}
	if (sum && s->keep_ns)
		s->moved = base_now();
	return sum;
}

/* True: the queue is armed anew, and to be looked at again */
static bool arm(struct verbs_stream *s, bool event)
{
	struct ibv_cq *cq;
	void *ctx;

	while (event && !verbs_call(ibv_get_cq_event)(s->channel, &cq, &ctx)) {
		verbs_call(ibv_ack_cq_events)(cq, 1);
		s->armed = false;
	}
	if (s->armed)
		return false;
	s->armed = !ibv_req_notify_cq(s->cq, 0);
	return s->armed;
}

/* Of which channel something is to be read; @any: something else has happened */
static bool channels_look(struct verbs_stream *s, bool *cm, bool *any)
{
	struct epoll_event events[4];
	bool cq = false, timer = false, keep = false;
	long n = syscall(SYS_epoll_pwait, s->native.fd, events, 4, 0, NULL, 0);

	for (long i = 0; i < n; i++) {
		const void *of = events[i].data.ptr;

		cq |= of == s->channel;
		timer |= of == &s->timer;
		keep |= of == &s->keep_timer;
	}
	*cm = n > cq + timer + keep;
	if (keep)
		verbs_stream_keep_go(s);
	*any = timer && verbs_stream_write_retry_go(s);
	return cq;
}

/* How many completions there were; also when one of them ended the connection */
static int take(struct verbs_stream *s, const struct rnic_sink *sink)
{
	int n = queue_empty(s, sink);

	if (n < 0)
		verbs_stream_fail(s, n);
	return base_max(n, 0);
}

/*
 * Takes in what there is; true: there may be more. Who reads comes back, and need not know that the
 * queue is empty. What came before the end is in the queue when that is seen
 */
static bool look(struct verbs_stream *s, const struct rnic_sink *sink, bool reader, ssize_t *sum)
{
	int n = take(s, sink);
	bool cm, event, any;

	*sum += n;
	if (n)
		return !reader;
	verbs_stream_write_retry_look(s);
	event = channels_look(s, &cm, &any);
	*sum += any;
	if (arm(s, event))
		return true;
	if (!cm)
		return false;
	n = verbs_stream_look(s);
	n += take(s, sink);
	*sum += n;
	return n;
}

ssize_t verbs_stream_receive(const struct rnic_stream_mem *mem, int fd,
			     const struct rnic_sink *sink, size_t budget)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	ssize_t sum = 0;
	int saved = errno;

	if (s->owner != base_process_self().pid)
		return -EAGAIN;
	verbs_stream_keep_look(s);
	while (sum < TAKEN_MAX && verbs_load(&s->phase) < VERBS_REJECTED &&
	       look(s, sink, budget, &sum))
		;
	verbs_store(&s->more, sum >= TAKEN_MAX);
	errno = saved;
	if (sum)
		return sum;
	switch (verbs_load(&s->phase)) {
	case VERBS_ENDED:
		return 0;
	case VERBS_FAILED:
		return s->error;
	default:
		return -EAGAIN;
	}
}
