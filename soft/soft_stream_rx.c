/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front, inward: what RDMAP hands up goes to the sink that the caller brings, bytes of
 * windows and of messages alike.
 */
#include "soft/soft_view.h"

struct intake {
	struct soft_stream *st;
	const struct soft_regions *regions;
	const struct rnic_sink *sink;
	/* The last part of a Send, given on when the message is known to be good as a whole */
	const __u8 *tail;
	__u64 tail_off;
	__u32 tail_len;
};

static enum iwarp_fault intake_place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	struct intake *in = ctx;

	for (unsigned int i = 0; i < RNIC_WINDOWS && access == DDP_REMOTE_WRITE; i++) {
		const struct rnic_window w = in->st->window[i];

		if (!w.len || w.stag != seg->stag)
			continue;
		if (seg->to < w.to || seg->len > w.len || seg->to - w.to > w.len - seg->len)
			return DDP_E_T_BOUNDS;
		if (in->sink->write(in->sink->ctx, &w, seg->to - w.to, seg->payload, seg->len))
			return DDP_E_T_BOUNDS;
		return IWARP_OK;
	}
	return in->regions ? soft_regions_place(in->regions, seg, access) : DDP_E_T_STAG;
}

static unsigned int intake_recv_ready(void *ctx, __u64 *len)
{
	*len = ~0ull; /* the sink judges when it sees the bytes */
	return 1;
}

static void message_give(struct intake *in, __u64 off, const void *p, size_t len, bool last)
{
	int err = in->sink->message(in->sink->ctx, off, p, len, last);

	if (err)
		rdmap_fault(&in->st->core.rdmap, err == -EMSGSIZE ? DDP_E_U_LENGTH : DDP_E_U_NOBUF);
}

static void intake_recv_place(void *ctx, const struct ddp_seg *seg)
{
	struct intake *in = ctx;

	if (seg->last) {
		in->tail = seg->payload;
		in->tail_off = seg->mo;
		in->tail_len = seg->len;
	} else {
		message_give(in, seg->mo, seg->payload, seg->len, false);
	}
}

static void intake_recv_done(void *ctx, const struct rdmap_recv *recv)
{
	struct intake *in = ctx;

	if (recv->op == RDMAP_IMM || recv->op == RDMAP_IMM_SE)
		rdmap_fault(&in->st->core.rdmap, RDMAP_E_OPCODE);
	else
		message_give(in, in->tail ? in->tail_off : recv->len, in->tail, in->tail_len, true);
	in->tail = NULL;
	in->tail_len = 0;
}

static enum ddp_stag_error intake_invalidate(void *ctx, __u32 stag)
{
	return DDP_STAG_STREAM; /* a window belongs to the connection's whole life */
}

static void intake_done(void *ctx, __u64 cookie, __u64 value)
{
	const struct intake *in = ctx;

	if (in->sink->done)
		in->sink->done(in->sink->ctx, cookie, value);
}

static void intake_kick(void *ctx)
{
}

ssize_t soft_stream_receive(const struct rnic_stream_mem *mem, int fd, const struct rnic_sink *sink,
			    size_t budget)
{
	struct intake in = { .st = soft_stream_of(mem), .sink = sink };
	const struct rdmap_sink to = {
		.place = intake_place,
		.recv_ready = intake_recv_ready,
		.recv_place = intake_recv_place,
		.recv_done = intake_recv_done,
		.invalidate = intake_invalidate,
		.done = intake_done,
		.kick = intake_kick,
		.ctx = &in,
	};
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd);

	if (err)
		return err;
	if (v.st->core.phase != SOFT_OPEN)
		return -ENOTCONN;
	in.regions = v.regions;
	v.llp.sleep = sink->sleep;
	v.io.sink = sink;
	return soft_rx(&v.io, &to, budget);
}
