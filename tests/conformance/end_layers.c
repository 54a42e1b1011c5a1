/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An end made of the protocol layers alone, with the least that can drive them: one thread, one
 * turn after the other, every FPDU built into one buffer and every input into another.
 *
 * A Send or Write is complete here when its last FPDU is built. What a provider does beyond that
 * (completion order, flushing, time-outs) is not this end's, and cases about it do not run on it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "llp/llp.h"
#include "rdmap/rdmap.h"
#include "suite.h"

enum { REGIONS = 64, QUEUE = 256, SLOTS = 64, ROOM = 1 << 18, PIECES = 4 };
enum { PD_OWN = 1, PD_FOREIGN = 2 };

struct send {
	struct warp_send_wr wr;
	struct iovec sg[PIECES];
	struct warp_sge sink;
	bool done; /* has its result */
};

struct recv {
	uint64_t wr_id;
	struct iovec sg[PIECES];
	unsigned int nsg;
	uint64_t len;
};

struct layers {
	struct end end;
	struct llp tcp, *llp;
	int fd;
	struct setup setup;
	struct rdmap_stream s;
	struct rdmap_slots slots;
	struct rdmap_inbound in_slots[SLOTS];
	struct rdmap_outbound out_slots[SLOTS];
	struct ddp_stag_table stags;
	struct ddp_region regions[REGIONS];
	unsigned int nregions;

	uint8_t pd[512];
	size_t pd_len;
	bool started, ended, shut;
	int error, limit;

	uint8_t in[ROOM], out[ROOM];
	size_t in_fill, out_fill;
	struct send sends[QUEUE];
	unsigned int send_head, send_tail;
	uint32_t send_off;
	struct recv recvs[QUEUE];
	unsigned int recv_head, recv_tail;
	struct warp_wc wcs[2 * QUEUE];
	unsigned int wc_head, wc_tail;
};

static struct layers *of(struct end *e)
{
	return (struct layers *)e;
}

static struct warp_wc *add_wc(struct layers *e, uint64_t id, enum warp_wc_opcode op)
{
	struct warp_wc *wc = &e->wcs[e->wc_tail++ % (2 * QUEUE)];

	*wc = (struct warp_wc){ .wr_id = id, .opcode = op };
	return wc;
}

/* --- what the layers call ----------------------------------------------------------------- */

static enum iwarp_fault sink_place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	struct layers *e = ctx;
	__u8 *addr;
	enum ddp_stag_error err =
		ddp_stag_check(&e->stags, seg->stag, PD_OWN, seg->to, seg->len, access, &addr);

	if (!err)
		memcpy(addr, seg->payload, seg->len);
	return ddp_stag_fault_tagged(err);
}

static unsigned int sink_recv_ready(void *ctx, __u64 *len)
{
	struct layers *e = ctx;

	*len = e->recvs[e->recv_head % QUEUE].len;
	return e->recv_tail - e->recv_head;
}

static void sink_recv_place(void *ctx, const struct ddp_seg *seg)
{
	struct layers *e = ctx;
	struct recv *r = &e->recvs[e->recv_head % QUEUE];

	ddp_scatter(r->sg, r->nsg, seg->mo, seg->payload, seg->len);
}

static void sink_recv_done(void *ctx, const struct rdmap_recv *recv)
{
	struct layers *e = ctx;
	struct warp_wc *wc = add_wc(e, e->recvs[e->recv_head++ % QUEUE].wr_id, WARP_WC_RECV);
	bool imm = recv->op == RDMAP_IMM || recv->op == RDMAP_IMM_SE;

	wc->flags = (imm ? WARP_WC_WITH_IMMEDIATE : 0) | (recv->solicited ? WARP_WC_SOLICITED : 0) |
		    (recv->invalidated ? WARP_WC_WITH_INVALIDATE : 0);
	wc->byte_len = imm ? 0 : (uint32_t)recv->len;
	wc->inv_stag = recv->inv_stag;
	wc->immediate = recv->imm;
}

static enum ddp_stag_error sink_invalidate(void *ctx, __u32 stag)
{
	struct layers *e = ctx;

	return ddp_stag_invalidate(&e->stags, stag, PD_OWN);
}

static void sink_done(void *ctx, __u64 cookie, __u64 value)
{
	struct layers *e = ctx;
	struct send *s = &e->sends[cookie % QUEUE];
	bool read = s->wr.opcode == WARP_WR_READ;
	struct warp_wc *wc = add_wc(e, s->wr.wr_id, read ? WARP_WC_READ : WARP_WC_ATOMIC);

	wc->byte_len = s->wr.num_sge ? s->sink.length : 0;
	if (!read)
		memcpy(s->sink.addr, &value, sizeof(value));
}

static void sink_kick(void *ctx)
{
}

static enum ddp_stag_error source_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	struct layers *e = ctx;

	return ddp_stag_check(&e->stags, stag, PD_OWN, to, len, access, addr);
}

/* --- in ----------------------------------------------------------------------------------- */

static void eat(struct layers *e, size_t n)
{
	e->in_fill -= n;
	memmove(e->in, e->in + n, e->in_fill);
}

static void fail_end(struct layers *e, int error)
{
	if (!e->error)
		e->error = error;
}

static void started(struct layers *e)
{
	enum iwarp_fault f;

	e->started = true;
	mpa_conn_set_emss(&e->s.ddp.mpa, e->llp->ops->emss(e->llp));
	f = rdmap_stream_started(&e->s);
	if (f)
		rdmap_fault(&e->s, f);
}

/* The peer's frame, if it is all there */
static void in_frame(struct layers *e)
{
	struct mpa_conn *c = &e->s.ddp.mpa;
	struct mpa_startup in = { 0 };
	size_t used;
	int rc;

	if (c->role == MPA_INITIATOR)
		rc = mpa_start_reply_get(c, e->in, e->in_fill, &in, &used);
	else
		rc = mpa_start_request_get(c, e->in, e->in_fill, &in, &used);
	if (rc == -EAGAIN)
		return;
	if (rc && rc != -ECONNREFUSED) {
		fail_end(e, rc);
		if (c->fault != MPA_E_START) {
			mpa_conn_set_emss(c, e->llp->ops->emss(e->llp));
			rdmap_fault(&e->s, c->fault);
		}
		return;
	}
	e->pd_len = in.pd_len;
	memcpy(e->pd, in.pd, in.pd_len);
	eat(e, used);
	if (rc)
		fail_end(e, rc);
	else if (c->role == MPA_INITIATOR)
		started(e);
}

static bool in_fpdu(struct layers *e)
{
	static const struct rdmap_sink sink = {
		.place = sink_place,
		.recv_ready = sink_recv_ready,
		.recv_place = sink_recv_place,
		.recv_done = sink_recv_done,
		.invalidate = sink_invalidate,
		.done = sink_done,
		.kick = sink_kick,
	};
	struct rdmap_sink mine = sink;
	struct mpa_fpdu f;
	int rc = mpa_rx_fpdu(&e->s.ddp.mpa, e->in, e->in_fill, &f);

	if (rc == -EAGAIN)
		return false;
	mine.ctx = e;
	if (rc) {
		rdmap_fault(&e->s, e->s.ddp.mpa.fault);
		return false;
	}
	rdmap_rx(&e->s, &e->slots, f.ulpdu, f.len, &mine);
	eat(e, f.used);
	return true;
}

/* No more input: it ended, or nothing of it is wanted any more */
static bool deaf(const struct layers *e)
{
	return e->ended || e->s.state != RDMAP_OPEN || e->error;
}

static bool receive(struct layers *e)
{
	struct iovec iov = { e->in + e->in_fill, ROOM - e->in_fill };
	ssize_t n = e->ended ? -EAGAIN : e->llp->ops->recv(e->llp, &iov, 1);

	if (n == -EAGAIN)
		return false;
	if (n > 0) {
		if (!deaf(e))
			e->in_fill += (size_t)n;
		return true;
	}
	e->ended = true;
	if (n < 0 || !e->started)
		fail_end(e, n < 0 ? (int)n : -ECONNRESET);
	else if (e->s.state == RDMAP_OPEN && mpa_rx_end(&e->s.ddp.mpa, e->in_fill))
		fail_end(e, -ECONNRESET);
	return true;
}

static void parse(struct layers *e)
{
	struct mpa_conn *c = &e->s.ddp.mpa;

	if (c->state == (c->role == MPA_INITIATOR ? MPA_REQUESTED : MPA_START) && !e->error)
		in_frame(e);
	if (c->state == MPA_REQUESTED && c->role == MPA_RESPONDER && !e->setup.hold)
		e->end.ops->accept(&e->end, &e->setup);
	while (e->started && !deaf(e) && in_fpdu(e))
		;
}

/* --- out ---------------------------------------------------------------------------------- */

static void flush(struct layers *e)
{
	struct iovec iov = { e->out, e->out_fill };
	ssize_t n = e->out_fill ? e->llp->ops->send(e->llp, &iov, 1, 0) : 0;

	if (n < 0 && n != -EAGAIN) {
		fail_end(e, (int)n);
		n = (ssize_t)e->out_fill;
	}
	if (n > 0) {
		e->out_fill -= (size_t)n;
		memmove(e->out, e->out + n, e->out_fill);
	}
}

static int rdmap_op(const struct warp_send_wr *wr)
{
	bool se = wr->flags & WARP_SEND_SOLICITED;

	switch (wr->opcode) {
	case WARP_WR_SEND:
		return se ? RDMAP_SEND_SE : RDMAP_SEND;
	case WARP_WR_SEND_INVALIDATE:
		return se ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
	case WARP_WR_WRITE:
		return RDMAP_WRITE;
	case WARP_WR_READ:
		return RDMAP_READ_REQ;
	case WARP_WR_IMMEDIATE:
		return se ? RDMAP_IMM_SE : RDMAP_IMM;
	default:
		return RDMAP_ATOMIC_REQ;
	}
}

static struct rdmap_wr rdmap_wr_of(const struct layers *e, const struct send *s)
{
	const struct warp_send_wr *wr = &s->wr;
	struct rdmap_wr r = {
		.op = (__u8)rdmap_op(wr),
		.aop = wr->opcode == WARP_WR_CMP_SWAP ? RDMAP_CMP_SWAP : RDMAP_FETCH_ADD,
		.fence = wr->flags & WARP_SEND_FENCE,
		.sg = s->sg,
		.nsg = wr->num_sge,
		.inv_stag = wr->inv_stag,
		.stag = wr->remote_stag,
		.to = wr->remote_to,
		.sink_stag = s->sink.stag,
		.sink_to = (uintptr_t)s->sink.addr,
		.imm = wr->immediate,
		.data = wr->swap_add,
		.mask = wr->mask,
		.compare = wr->compare,
		.compare_mask = wr->compare_mask,
		.cookie = e->send_head % QUEUE,
	};

	for (unsigned int i = 0; i < wr->num_sge; i++)
		r.len += (__u32)s->sg[i].iov_len;
	return r;
}

static void sent(struct layers *e, const struct warp_send_wr *wr)
{
	if (wr->opcode == WARP_WR_WRITE)
		add_wc(e, wr->wr_id, WARP_WC_WRITE);
	else if (wr->opcode <= WARP_WR_SEND_INVALIDATE || wr->opcode == WARP_WR_IMMEDIATE)
		add_wc(e, wr->wr_id, WARP_WC_SEND);
	e->send_head++;
	e->send_off = 0;
}

/* One segment of the oldest work request: whether one was built */
static bool build_wr(struct layers *e, struct mpa_txv *v)
{
	struct send *s = &e->sends[e->send_head % QUEUE];
	struct rdmap_wr wr;
	bool last = false;
	ssize_t n;

	if (e->send_head == e->send_tail)
		return false;
	wr = rdmap_wr_of(e, s);
	n = rdmap_tx_wr(&e->s, &e->slots, v, &wr, e->send_off, &last);
	if (n < 0) {
		check(n == -EAGAIN || n == -EPIPE, "rdmap_tx_wr: %zd", n);
		return false;
	}
	e->send_off += (uint32_t)n;
	if (last)
		sent(e, &s->wr);
	return true;
}

static bool build(struct layers *e, struct mpa_txv *v)
{
	const struct rdmap_source src = { .get = source_get, .ctx = e };

	if (e->started && e->s.state == RDMAP_OPEN) {
		if (rdmap_tx_rtr(&e->s, &e->slots, v) > 0)
			return true;
		if (!e->send_off && rdmap_tx_response(&e->s, &e->slots, v, &src) > 0)
			return true;
		if (e->s.state == RDMAP_OPEN)
			return build_wr(e, v);
	}
	/* the fault may be one of the source that was just to be answered from */
	return e->s.state == RDMAP_FAULTED && rdmap_tx_terminate(&e->s, v) > 0;
}

static bool build_one(struct layers *e)
{
	struct iovec iov[512];
	uint8_t scratch[4096];
	struct mpa_txv v = {
		.iov = iov, .scratch = scratch, .iov_cap = 512, .scratch_cap = sizeof(scratch)
	};

	if (ROOM - e->out_fill < FPDU_ROOM || !e->limit || !build(e, &v))
		return false;
	for (unsigned int i = 0; i < v.niov; i++) {
		memcpy(e->out + e->out_fill, iov[i].iov_base, iov[i].iov_len);
		e->out_fill += iov[i].iov_len;
	}
	rdmap_tx_commit(&e->s);
	e->limit -= e->limit > 0;
	return true;
}

/* Our end, when the protocol has come to one and all is sent */
static void maybe_shut(struct layers *e)
{
	bool over = e->error || e->ended || e->s.state == RDMAP_TERM_SENT ||
		    e->s.state == RDMAP_TERM_RCVD || e->s.state == RDMAP_FAULTED;

	if (!over || e->shut || e->out_fill || (e->s.state == RDMAP_FAULTED && !e->limit))
		return;
	e->shut = true;
	e->llp->ops->shutdown(e->llp);
}

static void layers_progress(struct end *end)
{
	struct layers *e = of(end);
	bool more = true;

	for (int turn = 0; more && turn < 64; turn++) {
		more = receive(e);
		parse(e);
		while (build_one(e))
			more = true;
		flush(e);
		maybe_shut(e);
	}
}

/* --- the calls ---------------------------------------------------------------------------- */

static void put_request(struct layers *e, const struct setup *s)
{
	size_t n = 0;
	int rc = mpa_start_request_put(&e->s.ddp.mpa, s->pd, s->pd_len, e->out, &n);

	e->out_fill = n;
	fail_end(e, rc);
}

static struct end *layers_create(struct llp *l, int fd, const struct setup *s)
{
	static const struct {
		unsigned int flag;
		__u8 rtr;
	} rtrs[] = {
		{ WARP_CONN_RTR_SEND, MPA_RTR_SEND },
		{ WARP_CONN_RTR_WRITE, MPA_RTR_WRITE },
		{ WARP_CONN_RTR_READ, MPA_RTR_READ },
	};
	struct layers *e = calloc(1, sizeof(*e));
	struct mpa_config c = {
		.rev = s->rev ? s->rev : 1,
		.want = (s->no_crc ? 0 : MPA_F_CRC) | (s->markers ? MPA_F_RX_MARKERS : 0) |
			(s->rev == 2 ? MPA_F_ENHANCED : 0) | (s->rtr ? MPA_F_P2P : 0),
		.ird = s->ird ? s->ird : 8,
		.ord = s->ord ? s->ord : 8,
	};

	check(e && !ddp_stag_table_init(&e->stags, REGIONS), "no memory");
	for (size_t i = 0; i < base_array_size(rtrs); i++)
		c.rtr |= s->rtr & rtrs[i].flag ? rtrs[i].rtr : 0;
	e->end.ops = &end_layers_ops;
	e->setup = *s;
	e->llp = l;
	e->fd = fd;
	e->limit = -1;
	e->slots = (struct rdmap_slots)RDMAP_SLOTS(e->in_slots, e->out_slots);
	if (fd >= 0) {
		llp_tcp_init(&e->tcp, fd);
		e->llp = &e->tcp;
	}
	rdmap_stream_init(&e->s, s->initiator ? MPA_INITIATOR : MPA_RESPONDER, &c, SLOTS, SLOTS);
	if (s->initiator)
		put_request(e, s);
	return &e->end;
}

static void layers_destroy(struct end *end)
{
	struct layers *e = of(end);

	ddp_stag_table_uninit(&e->stags);
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

static int layers_accept(struct end *end, const struct setup *s)
{
	struct layers *e = of(end);
	size_t n;
	int rc = mpa_start_reply_put(&e->s.ddp.mpa, s->pd, s->pd_len, e->out + e->out_fill, &n);

	if (rc)
		return rc;
	e->out_fill += n;
	started(e);
	return 0;
}

static int layers_reject(struct end *end, const void *pd, size_t len)
{
	struct layers *e = of(end);
	size_t n;
	int rc = mpa_start_reject_put(&e->s.ddp.mpa, pd, len, e->out + e->out_fill, &n);

	if (!rc) {
		e->out_fill += n;
		fail_end(e, -ECONNREFUSED);
	}
	return rc;
}

static uint32_t layers_mr(struct end *end, void *addr, size_t len, unsigned int access,
			  bool foreign)
{
	struct layers *e = of(end);
	struct ddp_region *r = &e->regions[e->nregions];

	check(e->nregions++ < REGIONS, "too many regions");
	*r = (struct ddp_region){ .to = (uintptr_t)addr,
				  .len = len,
				  .addr = addr,
				  .pd = foreign ? PD_FOREIGN : PD_OWN,
				  .access = (__u8)access };
	return ddp_stag_insert(&e->stags, r) ? 0 : r->stag;
}

static void layers_mr_remove(struct end *end, uint32_t stag)
{
	struct layers *e = of(end);

	for (unsigned int i = 0; i < e->nregions; i++) {
		if (e->regions[i].stag == stag)
			ddp_stag_remove(&e->stags, &e->regions[i]);
	}
}

static unsigned int pieces(const struct warp_sge *sg, unsigned int n, struct iovec *out)
{
	check(n <= PIECES, "%u pieces", n);
	for (unsigned int i = 0; i < n; i++)
		out[i] = (struct iovec){ sg[i].addr, sg[i].length };
	return n;
}

static int layers_post_recv(struct end *end, const struct warp_recv_wr *wr)
{
	struct layers *e = of(end);
	struct recv *r = &e->recvs[e->recv_tail++ % QUEUE];

	*r = (struct recv){ .wr_id = wr->wr_id };
	r->nsg = pieces(wr->sg, wr->num_sge, r->sg);
	for (unsigned int i = 0; i < r->nsg; i++)
		r->len += r->sg[i].iov_len;
	return 0;
}

static int layers_post_send(struct end *end, const struct warp_send_wr *wr)
{
	struct layers *e = of(end);
	struct send *s = &e->sends[e->send_tail++ % QUEUE];

	*s = (struct send){ .wr = *wr };
	pieces(wr->sg, wr->num_sge, s->sg);
	if (wr->num_sge)
		s->sink = wr->sg[0];
	return 0;
}

static int layers_poll(struct end *end, struct warp_wc *wc, int n)
{
	struct layers *e = of(end);
	int got = 0;

	while (got < n && e->wc_head != e->wc_tail)
		wc[got++] = e->wcs[e->wc_head++ % (2 * QUEUE)];
	return got;
}

static enum warp_conn_state state_of(const struct layers *e)
{
	const struct mpa_conn *c = &e->s.ddp.mpa;

	if (c->state == MPA_REJECTED)
		return WARP_CONN_REJECTED;
	if (e->error || e->s.state != RDMAP_OPEN)
		return WARP_CONN_ERROR;
	if (e->ended || e->shut)
		return WARP_CONN_DISCONNECTED;
	if (c->role == MPA_RESPONDER && c->state == MPA_REQUESTED)
		return WARP_CONN_REQUEST;
	return c->state == MPA_OPEN ? WARP_CONN_ESTABLISHED : WARP_CONN_CONNECTING;
}

static void layers_info(struct end *end, struct warp_conn_info *info)
{
	struct layers *e = of(end);
	const struct mpa_conn *c = &e->s.ddp.mpa;

	*info = (struct warp_conn_info){
		.state = state_of(e),
		.error = e->error,
		.ird = c->ird,
		.ord = c->ord,
		.peer_ird = c->peer_ird,
		.peer_ord = c->peer_ord,
		.mpa_rev = c->rev,
		.crc = c->flags & MPA_F_CRC,
		.tx_markers = c->flags & MPA_F_TX_MARKERS,
		.rx_markers = c->flags & MPA_F_RX_MARKERS,
		.mulpdu = c->mulpdu,
		.term_sent = e->s.term.fault,
		.term_received = e->s.peer_term.fault,
		.private_data = e->pd,
		.private_data_len = e->pd_len,
		.tx_fpdus = c->tx_fpdus,
		.rx_fpdus = c->rx_fpdus,
	};
}

static void layers_disconnect(struct end *end)
{
	struct layers *e = of(end);

	layers_progress(end);
	if (!e->shut)
		e->llp->ops->shutdown(e->llp);
	e->shut = true;
}

static struct rdmap_stream *layers_stream(struct end *end)
{
	return &of(end)->s;
}

void end_layers_limit(struct end *end, int n)
{
	of(end)->limit = n;
}

const struct end_ops end_layers_ops = {
	.create = layers_create,
	.destroy = layers_destroy,
	.progress = layers_progress,
	.accept = layers_accept,
	.reject = layers_reject,
	.mr = layers_mr,
	.mr_remove = layers_mr_remove,
	.post_recv = layers_post_recv,
	.post_send = layers_post_send,
	.poll = layers_poll,
	.info = layers_info,
	.disconnect = layers_disconnect,
	.stream = layers_stream,
};
