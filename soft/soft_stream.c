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

#include <poll.h>
#include <string.h>

#include "base/rand.h"
#include "soft/soft_view.h"

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
	struct soft_stream *st = soft_stream_of(mem);
	struct mpa_config config;
	struct soft_view v;
	struct llp llp;

	if (base_once(st->magic) == STREAM_MAGIC)
		return soft_view_init(&v, mem, fd);
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

static bool stag_taken(const struct soft_stream *st, __u32 stag)
{
	for (unsigned int i = 0; i < RNIC_WINDOWS; i++)
		if (st->window[i].len && st->window[i].stag == stag)
			return true;
	return !stag;
}

static int stream_window(const struct rnic_stream_mem *mem, unsigned int i, struct rnic_window *w)
{
	struct soft_stream *st = soft_stream_of(mem);
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

static int start_initiator(struct soft_view *v, const void *pd, size_t len, short *events)
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

static int start_responder(struct soft_view *v, int fd, short *events)
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
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd);

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
	const struct soft_stream *st = soft_stream_of(mem);
	size_t there = base_once(st->core.pd_len);
	struct soft_view v;
	int err = soft_view_init(&v, mem, -1);

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
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd);

	return err ? err : soft_start_accept(&v.io, pd, len);
}

static int stream_reject(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd);

	return err ? err : soft_start_reject(&v.io, pd, len);
}

/* --- what it has come to --- */

static bool stream_uses(const struct rnic_stream_mem *mem, bool tx)
{
	const struct soft_core *c = &soft_stream_of(mem)->core;

	return tx ? base_once(c->rest_len) : base_once(c->in_off) != base_once(c->in_fill);
}

static void stream_align(const struct rnic_stream_mem *mem, bool on)
{
	soft_stream_of(mem)->core.record = on;
}

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
	const struct soft_core *c = &soft_stream_of(mem)->core;
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
static void slots_move(const struct soft_stream *st, struct soft_regions *r)
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
	struct soft_stream *st = soft_stream_of(mem);
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
	.send = soft_stream_send,
	.segment = soft_stream_segment,
	.flush = soft_stream_flush,
	.owes = soft_stream_owes,
	.uses = stream_uses,
	.align = stream_align,
	.receive = soft_stream_receive,
	.info = stream_info,
	.shutdown = soft_stream_shutdown,
	.onesided = &soft_onesided_ops,
	.carrier = &rnic_socket_carrier,
};
