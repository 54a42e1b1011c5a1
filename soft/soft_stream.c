/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front: a core, its request slots and its windows in one flat block, so that a
 * connection outlives the process that made it. Every call makes its view anew, and believes the
 * block's indices only when they are within bounds, for whoever shares the memory may have
 * written anything.
 *
 * The peer may write to the windows, and use the regions of this process as their rights allow;
 * nothing else.
 */
#include "soft/soft_stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/bits.h"
#include "base/rand.h"
#include "rnic/rnic_stream.h"
#include "soft/soft_core.h"
#include "soft/soft_region.h"

#define STREAM_MAGIC 0x57534f31u /* of this layout */
#define STREAM_IN_CAP (RNIC_STREAM_IN - MPA_PD_MAX)
/* Private data lies behind its frame, in the page that this has brought, until FPDUs come there */
#define STREAM_PD_AT MPA_START_MAX
/*
 * Reads are no part of a stream but for a zero-length one as RTR; the slots for the peer's are
 * twice as many as the depth
 */
#define STREAM_DEPTH 1
#define STREAM_IN_SLOTS 2
#define STREAM_OUT_SLOTS 1

struct stream {
	__u32 magic;
	/* tx: the operation of which the kernel has tx_off octets and not all */
	__u32 tx_off, tx_len, tx_stag;
	__u64 tx_to;
	struct soft_core core;
	struct rnic_window window[RNIC_WINDOWS];
	struct rdmap_inbound in[STREAM_IN_SLOTS];
	struct rdmap_outbound out[STREAM_OUT_SLOTS];
};

_Static_assert(sizeof(struct stream) <= RNIC_STREAM_STATE, "struct stream");
_Static_assert(SOFT_FPDU_MAX <= RNIC_STREAM_REST, "rest");
_Static_assert(2 * SOFT_FPDU_MAX <= STREAM_IN_CAP, "in");
_Static_assert(STREAM_PD_AT + MPA_PD_MAX <= 4096, "private data");

/* One call's view */
struct view {
	struct stream *st;
	struct llp llp;
	struct soft_io io;
	struct soft_regions *regions;
	struct rdmap_source source;
};

static struct stream *stream_of(const struct rnic_stream_mem *mem)
{
	return mem->state;
}

/* The slots that belong to the state, or those of the process's regions */
static struct rdmap_slots slots_view(struct stream *st, struct soft_regions *r)
{
	return r ? (struct rdmap_slots)RDMAP_SLOTS(r->in, r->out)
		 : (struct rdmap_slots)RDMAP_SLOTS(st->in, st->out);
}

static int view_init(struct view *v, const struct rnic_stream_mem *mem, int fd)
{
	struct stream *st = stream_of(mem);
	struct soft_regions *r = (struct soft_regions *)(void *)mem->regions;

	if (base_once(st->magic) != STREAM_MAGIC)
		return -EBADMSG;
	v->st = st;
	v->regions = r;
	v->source = soft_regions_source(r, st->core.rdmap.ddp.mpa.flags & MPA_F_CRC);
	llp_tcp_view(&v->llp, fd);
	v->io = (struct soft_io){
		.core = &st->core,
		.llp = &v->llp,
		.slots = slots_view(st, r),
		/* Of each only who has its lock makes use */
		.rest = base_once(mem->rest),
		.reserve = mem->reserve,
		.mem = mem,
		.in = base_once(mem->in),
		.in_cap = STREAM_IN_CAP,
		.pd_at = STREAM_PD_AT,
	};
	return 0;
}

static struct mpa_config config_of(const struct rnic_stream_param *p)
{
	struct mpa_config c = {
		.rev = p->mpa_rev,
		.rtr = p->rtr ? p->rtr : MPA_RTR_WRITE | MPA_RTR_READ,
		.ird = base_min(p->ird, STREAM_DEPTH),
		.ord = base_min(p->ord, STREAM_DEPTH),
	};

	if (p->crc)
		c.want |= MPA_F_CRC;
	if (p->markers)
		c.want |= MPA_F_RX_MARKERS;
	if (p->mpa_rev >= 2)
		c.want |= MPA_F_ENHANCED;
	if (p->mpa_rev >= 2 && p->p2p)
		c.want |= MPA_F_P2P;
	return c;
}

static int stream_init(const struct rnic_stream_mem *mem, int fd,
		       const struct rnic_stream_param *param)
{
	struct stream *st = stream_of(mem);
	struct mpa_config config;
	struct view v;
	struct llp llp;

	if (base_once(st->magic) == STREAM_MAGIC)
		return view_init(&v, mem, fd);
	if (!param || param->mpa_rev < 1 || param->mpa_rev > 2)
		return -EINVAL;
	config = config_of(param);
	memset(st, 0, sizeof(*st));
	soft_core_init(&st->core, param->initiator ? MPA_INITIATOR : MPA_RESPONDER, &config,
		       STREAM_IN_SLOTS, STREAM_OUT_SLOTS);
	llp_tcp_init(&llp, fd);
	st->magic = STREAM_MAGIC;
	return 0;
}

static bool stag_taken(const struct stream *st, __u32 stag)
{
	for (unsigned int i = 0; i < RNIC_WINDOWS; i++)
		if (st->window[i].len && st->window[i].stag == stag)
			return true;
	return !stag;
}

static int stream_window(const struct rnic_stream_mem *mem, unsigned int i, struct rnic_window *w)
{
	struct stream *st = stream_of(mem);
	uint32_t stag;
	int err;

	if (i >= RNIC_WINDOWS || w->to + w->len < w->to)
		return -EINVAL;
	do {
		err = base_rand_u32(&stag);
	} while (!err && stag_taken(st, stag));
	if (err)
		return err;
	w->stag = stag;
	st->window[i] = *w;
	return 0;
}

/* --- start-up --- */

static int start_initiator(struct view *v, const void *pd, size_t len, short *events)
{
	int err = soft_start_initiator(&v->io, pd, len, events);

	if (err == -ECONNREFUSED)
		return RNIC_STREAM_REJECTED;
	if (err == -EAGAIN)
		return err;
	/* A Terminate says what is wrong with the Reply. The RTR goes with what is sent first */
	if (err)
		soft_tx_flush(&v->io, &v->source, true);
	return err ? err : RNIC_STREAM_OPEN;
}

static int start_responder(struct view *v, int fd, short *events)
{
	size_t there = 0;
	int err = 0;

	if (!v->st->core.in_fill)
		err = soft_start_recognise(fd, &there, events);
	if (!err)
		err = soft_start_responder(&v->io, there, events);
	return err ? err : RNIC_STREAM_REQUEST;
}

static int stream_start(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len,
			short *events)
{
	struct view v;
	int err = view_init(&v, mem, fd);

	if (err)
		return err;
	switch (base_once(v.st->core.phase)) {
	case SOFT_IDLE:
	case SOFT_REQUESTED:
		if (v.st->core.rdmap.ddp.mpa.role == MPA_RESPONDER)
			return start_responder(&v, fd, events);
		return start_initiator(&v, pd, len, events);
	case SOFT_REQUEST:
		return RNIC_STREAM_REQUEST;
	case SOFT_REJECTED:
		return RNIC_STREAM_REJECTED;
	default:
		err = soft_core_error(&v.st->core);
		return err ? err : RNIC_STREAM_OPEN;
	}
}

static int stream_private_data(const struct rnic_stream_mem *mem, void *pd, size_t *len)
{
	const struct stream *st = stream_of(mem);
	size_t there = base_once(st->core.pd_len);
	struct view v;
	int err = view_init(&v, mem, -1);

	if (err)
		return err;
	if (base_once(st->core.phase) < SOFT_REQUEST)
		return -ENODATA;
	if (there > MPA_PD_MAX)
		return -EBADMSG;
	memcpy(pd, v.io.in + v.io.pd_at, there);
	*len = there;
	return 0;
}

static int stream_accept(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	struct view v;
	int err = view_init(&v, mem, fd);

	return err ? err : soft_start_accept(&v.io, pd, len);
}

static int stream_reject(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	struct view v;
	int err = view_init(&v, mem, fd);

	return err ? err : soft_start_reject(&v.io, pd, len);
}

/* --- sending --- */

#define FLUSH_TURNS 16

typedef int flush_fn(const struct soft_io *io, const struct rdmap_source *src, bool between);

/* The rest and what is owed. Copies of what the peer reads have room again with each turn. */
static int view_flush(struct view *v, flush_fn *flush)
{
	int err, turns = v->regions ? FLUSH_TURNS : 1;

	do {
		if (v->regions)
			v->regions->held_used = 0;
		err = flush(&v->io, &v->source, !v->st->tx_off);
	} while (!err && --turns && soft_tx_pending(&v->st->core));
	return err;
}

/* Can a batch begin? What was begun before goes first */
static int send_ready(struct view *v, const struct rnic_stream_wr *wr)
{
	struct stream *st = v->st;
	int err;

	if (st->core.phase != SOFT_OPEN)
		return -ENOTCONN;
	if (st->tx_off &&
	    (wr->len != st->tx_len || wr->stag != st->tx_stag || (wr->stag && wr->to != st->tx_to)))
		return -EINVAL;
	err = view_flush(v, soft_tx_flush_more);
	if (err)
		return err;
	return st->core.tx_end ? -EPIPE : 0;
}

/* Where a batch stands: the next octet to be built */
struct cursor {
	unsigned int op;
	__u32 off;
};

static void onesided_wr(struct rdmap_wr *w, const struct rnic_onesided *op, __u32 sink_stag)
{
	static const __u8 aops[] = {
		[RNIC_FETCH_ADD] = RDMAP_FETCH_ADD,
		[RNIC_CMP_SWAP] = RDMAP_CMP_SWAP,
	};

	w->op = op->opcode == RNIC_READ ? RDMAP_READ_REQ : RDMAP_ATOMIC_REQ;
	w->aop = op->opcode == RNIC_READ ? 0 : aops[op->opcode];
	w->sink_stag = sink_stag;
	w->sink_to = op->sink_to;
	w->cookie = op->cookie;
	w->data = op->data;
	w->mask = op->mask;
	w->compare = op->compare;
	w->compare_mask = op->compare_mask;
}

/* Octets that a message brings with it */
static __u32 payload_len(const struct rnic_stream_wr *wr)
{
	return wr->op ? 0 : wr->len;
}

/* One FPDU: 1, or 0 when no more can be built now, or -errno */
static int frame_build(struct soft_tx *t, struct view *v, const struct rnic_stream_wr *wr,
		       struct cursor *at)
{
	struct rdmap_wr w = {
		.op = wr->stag ? RDMAP_WRITE : RDMAP_SEND,
		.sg = wr->iov,
		.nsg = wr->niov,
		.len = wr->len,
		.stag = wr->stag,
		.to = wr->to,
	};
	bool last = false;
	ssize_t n;

	if (wr->op && !v->regions)
		return -EINVAL;
	if (wr->op)
		onesided_wr(&w, wr->op, v->regions->regions.sink_stag);
	n = rdmap_tx_wr(&v->st->core.rdmap, &v->io.slots, &t->v, &w, at->off, &last);
	if (n == -ENOBUFS || n == -EAGAIN)
		return 0;
	if (n < 0)
		return (int)n;
	soft_tx_note(t, at->op, at->off + (__u32)n, last);
	at->off = last ? 0 : at->off + (__u32)n;
	at->op += last;
	return 1;
}

/* One batch from *@at on; *@at is where the next one begins */
static int batch_send(struct view *v, const struct rnic_stream_wr *wr, unsigned int n,
		      struct cursor *at)
{
	struct cursor next = *at;
	const struct soft_tx_frame *f;
	struct soft_tx t;
	int got = 1;

	soft_tx_begin(&t, &v->io);
	while (got > 0 && next.op < n && soft_tx_takes(&t, payload_len(&wr[next.op]) - next.off))
		got = frame_build(&t, v, &wr[next.op], &next);
	if (!t.count)
		return got ? got : -EAGAIN;
	got = wr[n - 1].final && next.op == n ? soft_tx_push_more(&t) : soft_tx_push(&t);
	if (got <= 0)
		return got;
	f = &t.frame[got - 1];
	at->op = f->op + f->last;
	at->off = f->last ? 0 : f->off;
	return 0;
}

static void progress_keep(struct stream *st, const struct rnic_stream_wr *wr,
			  const struct cursor *at)
{
	st->tx_off = at->off;
	if (!at->off)
		return;
	st->tx_len = wr[at->op].len;
	st->tx_stag = wr[at->op].stag;
	st->tx_to = wr[at->op].to;
}

static int stream_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		       unsigned int n)
{
	struct cursor at = { .op = 0 };
	struct view v;
	int err = view_init(&v, mem, fd);

	if (err || !n)
		return err;
	err = send_ready(&v, wr);
	if (err)
		return err;
	at.off = base_once(v.st->tx_off);
	while (!err && at.op < n) {
		err = batch_send(&v, wr, n, &at);
		/* A rest means that the kernel is full */
		if (!err && v.st->core.rest_len)
			err = soft_tx_rest(&v.io);
	}
	if (at.op < n)
		progress_keep(v.st, wr, &at);
	else
		v.st->tx_off = 0;
	/* Behind all that was cut by what stream_segment() had said */
	soft_tx_emss(&v.io);
	return at.op ? (int)at.op : err;
}

static unsigned int stream_segment(const struct rnic_stream_mem *mem, unsigned int message)
{
	const struct mpa_conn *m = &stream_of(mem)->core.rdmap.ddp.mpa;
	unsigned int mulpdu = base_min(base_once(m->mulpdu), MPA_MULPDU_MAX);
	unsigned int whole = base_max(mulpdu, (unsigned int)MPA_MULPDU_MIN) - DDP_TAGGED_LEN;
	unsigned int behind = message ? mpa_fpdu_octets(DDP_UNTAGGED_LEN + message) : 0;

	return whole > 2 * behind ? whole - behind : whole;
}

static int stream_flush(const struct rnic_stream_mem *mem, int fd)
{
	struct view v;
	int err = view_init(&v, mem, fd);

	return err ? err : view_flush(&v, soft_tx_flush);
}

static bool stream_owes(const struct rnic_stream_mem *mem)
{
	return soft_tx_pending(&stream_of(mem)->core);
}

static bool stream_uses(const struct rnic_stream_mem *mem, bool tx)
{
	const struct soft_core *c = &stream_of(mem)->core;

	return tx ? base_once(c->rest_len) : base_once(c->in_off) != base_once(c->in_fill);
}

static void stream_align(const struct rnic_stream_mem *mem, bool on)
{
	stream_of(mem)->core.record = on;
}

static int stream_shutdown(const struct rnic_stream_mem *mem, int fd)
{
	struct view v;
	int err = view_init(&v, mem, fd);

	if (err)
		return err;
	err = view_flush(&v, soft_tx_flush);
	return err == -EAGAIN ? err : soft_tx_shutdown(&v.io);
}

/* --- receiving --- */

struct intake {
	struct stream *st;
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
	*len = ~0ull; /* the sink judges when it sees the octets */
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

static ssize_t stream_receive(const struct rnic_stream_mem *mem, int fd,
			      const struct rnic_sink *sink, size_t budget)
{
	struct intake in = { .st = stream_of(mem), .sink = sink };
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
	struct view v;
	int err = view_init(&v, mem, fd);

	if (err)
		return err;
	if (v.st->core.phase != SOFT_OPEN)
		return -ENOTCONN;
	in.regions = v.regions;
	return soft_rx(&v.io, &to, budget);
}

/* --- what it has come to --- */

/* By stream_info() also while others write */
__attribute__((no_sanitize("thread"))) static enum rnic_stream_state
state_of(const struct soft_core *c)
{
	if (soft_core_error(c) || rdmap_state_of(&c->rdmap) != RDMAP_OPEN)
		return RNIC_STREAM_BROKEN;
	if (c->phase == SOFT_REJECTED)
		return RNIC_STREAM_REJECTED;
	if (c->phase == SOFT_REQUEST)
		return RNIC_STREAM_REQUEST;
	if (c->phase != SOFT_OPEN)
		return RNIC_STREAM_STARTING;
	return c->rx_end ? RNIC_STREAM_ENDED : RNIC_STREAM_OPEN;
}

/*
 * Both directions may be at work meanwhile: each number is one that was true, which is all that
 * is promised
 */
__attribute__((no_sanitize("thread"))) static void stream_info(const struct rnic_stream_mem *mem,
							       struct rnic_stream_info *info)
{
	const struct soft_core *c = &stream_of(mem)->core;
	const struct mpa_conn *m = &c->rdmap.ddp.mpa;

	*info = (struct rnic_stream_info){
		.state = state_of(c),
		.fault_by_peer = rdmap_state_of(&c->rdmap) == RDMAP_TERM_RCVD,
		.mpa_rev = m->rev,
		.crc = m->flags & MPA_F_CRC,
		.tx_markers = m->flags & MPA_F_TX_MARKERS,
		.rx_markers = m->flags & MPA_F_RX_MARKERS,
		.may_send = mpa_conn_may_send(m),
		.more = c->rx_more,
		.alone = c->rx_alone,
		.rx_empty = c->rdmap.rx_empty,
		.heard = c->in_fill || c->phase >= SOFT_REQUEST,
		.mulpdu = m->mulpdu,
		.tx_fpdus = m->tx_fpdus,
		.rx_fpdus = m->rx_fpdus,
	};
	if (info->fault_by_peer)
		info->fault = c->rdmap.peer_term.fault;
	else
		info->fault = c->rdmap.term.fault ? c->rdmap.term.fault : m->fault;
}

/* --- one-sided operations --- */

/* Slots of another process are no use here: those that are in use are the state's own */
static bool slots_are_here(const struct rdmap_stream *s)
{
	return rdmap_ring_count(s->in_head, s->in_tail, STREAM_IN_SLOTS) <= STREAM_IN_SLOTS &&
	       rdmap_ring_count(s->out_head, s->out_tail, STREAM_OUT_SLOTS) <= STREAM_OUT_SLOTS;
}

/* A Read as RTR may be under way, of either end */
static void slots_move(const struct stream *st, struct soft_regions *r)
{
	__u32 in = st->core.rdmap.in_head, out = st->core.rdmap.out_head;

	for (unsigned int n = STREAM_IN_SLOTS; n; n--, in++)
		r->in[in % SOFT_REGION_IN_SLOTS] = st->in[in % STREAM_IN_SLOTS];
	for (unsigned int n = STREAM_OUT_SLOTS; n; n--, out++)
		r->out[out % SOFT_REGION_OUT_SLOTS] = st->out[out % STREAM_OUT_SLOTS];
}

static int onesided_create(const struct rnic_stream_mem *mem, uint16_t ird, uint16_t ord,
			   struct rnic_regions **out)
{
	struct stream *st = stream_of(mem);
	struct rdmap_stream *s = &st->core.rdmap;
	struct soft_regions *r;
	int err = base_once(st->magic) == STREAM_MAGIC ? 0 : -EBADMSG;

	if (!err && !slots_are_here(s))
		err = -EBUSY;
	if (!err)
		err = soft_regions_create(&r);
	if (err)
		return err;
	slots_move(st, r);
	s->in_cap = SOFT_REGION_IN_SLOTS;
	s->out_cap = SOFT_REGION_OUT_SLOTS;
	/* Not less than was agreed on: the Read may be still to come, or to go */
	s->ddp.mpa.ird = base_max(s->ddp.mpa.ird, base_min(ird, SOFT_REGION_DEPTH));
	s->ddp.mpa.ord = base_max(s->ddp.mpa.ord, base_min(ord, SOFT_REGION_DEPTH));
	*out = &r->regions;
	return 0;
}

static const struct rnic_onesided_ops soft_onesided_ops = {
	.create = onesided_create,
	.destroy = soft_regions_destroy,
	.add = soft_regions_add,
	.remove = soft_regions_remove,
	.close = soft_regions_close,
};

const struct rnic_stream_ops soft_stream_ops = {
	.init = stream_init,
	.window = stream_window,
	.start = stream_start,
	.private_data = stream_private_data,
	.accept = stream_accept,
	.reject = stream_reject,
	.send = stream_send,
	.segment = stream_segment,
	.flush = stream_flush,
	.owes = stream_owes,
	.uses = stream_uses,
	.align = stream_align,
	.receive = stream_receive,
	.info = stream_info,
	.shutdown = stream_shutdown,
	.onesided = &soft_onesided_ops,
	.carrier = &rnic_socket_carrier,
};
