/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way out: frames are built into a batch on the stack, handed to the carrier by one call, and
 * what it did not take has not happened.
 *
 * Invariants. The rest of a frame that was cut goes before everything else, so no batch is built
 * while there is one. A frame of which the carrier took one byte is accepted; its other bytes
 * are copied and become the rest, for the memory it was built from is the program's again when
 * the call returns. All later frames are undone by the mark behind the cut one (RFC 5044 section
 * 5: an FPDU once begun is finished unchanged). Frames are never interleaved; what the protocol
 * owes goes between messages.
 */
#include "soft/soft_core.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"
#include "base/point.h"

/* The segment size may change with the path and the peer's window; asking costs a system call */
#define EMSS_REFRESH 64

void soft_core_init(struct soft_core *c, enum mpa_role role, const struct mpa_config *config,
		    __u16 in_cap, __u16 out_cap)
{
	memset(c, 0, sizeof(*c));
	rdmap_stream_init(&c->rdmap, role, config, in_cap, out_cap);
}

int soft_core_told(const __s32 *error)
{
	const int err = base_once(*error), most = 4095;

	return err <= 0 && err >= -most ? err : -EBADMSG;
}

int soft_core_error(const struct soft_core *c)
{
	int err = soft_core_told(&c->rx_error);

	return err ? err : soft_core_told(&c->tx_error);
}

/* Read without the lock by soft_tx_pending() */
static void rest_len_set(struct soft_core *c, __u32 len)
{
	__atomic_store_n(&c->rest_len, len, __ATOMIC_RELAXED);
}

int soft_tx_fail(struct soft_core *c, int err)
{
	if (!c->tx_error) {
		base_debug("stream broken in sending: %s", strerror(-err));
		__atomic_store_n(&c->tx_error, err, __ATOMIC_RELAXED);
	}
	return err;
}

unsigned int soft_tx_flags(const struct soft_core *c)
{
	return c->record ? LLP_RECORD : 0;
}

void soft_tx_emss_set(const struct soft_io *io, unsigned int emss)
{
	struct mpa_conn *m = &io->core->rdmap.ddp.mpa;

	if (m->flags & MPA_F_TX_MARKERS)
		emss = base_min(emss, (unsigned int)SOFT_TX_MARKED);
	if (emss)
		mpa_conn_set_emss(m, emss);
}

void soft_tx_emss(const struct soft_io *io)
{
	struct mpa_conn *m = &io->core->rdmap.ddp.mpa;
	__u32 fpdus = (__u32)m->tx_fpdus;

	if (io->core->phase != SOFT_OPEN || fpdus - io->core->emss_at < EMSS_REFRESH)
		return;
	io->core->emss_at = fpdus;
	soft_tx_emss_set(io, io->llp->ops->emss(io->llp));
}

void soft_tx_begin(struct soft_tx *t, const struct soft_io *io)
{
	t->io = io;
	t->count = 0;
	t->v = (struct mpa_txv){
		.iov = t->iov,
		.scratch = t->scratch,
		.iov_cap = SOFT_TX_IOV,
		.scratch_cap = SOFT_TX_SCRATCH,
	};
	rdmap_tx_mark(&io->core->rdmap, &t->start);
}

bool soft_tx_full(const struct soft_tx *t)
{
	if (base_once(t->io->core->record) && t->count)
		return true;
	return t->count == SOFT_TX_FRAMES || t->v.octets >= SOFT_TX_OCTETS;
}

void soft_tx_note(struct soft_tx *t, __u32 op, __u32 off, bool last)
{
	struct soft_tx_frame *f = &t->frame[t->count++];

	rdmap_tx_mark(&t->io->core->rdmap, &f->mark);
	f->end = t->v.octets;
	f->op = op;
	f->off = off;
	f->last = last;
	f->owed = false;
}

/*
 * A record is a segment, and frames that are whole in it are as good as one alone. Markers
 * stand where they fall, so with them a frame's length is not known beforehand.
 */
bool soft_tx_takes(const struct soft_tx *t, __u64 len)
{
	const struct mpa_conn *m = &t->io->core->rdmap.ddp.mpa;

	if (!t->count)
		return true;
	if (t->count == SOFT_TX_FRAMES)
		return false;
	if (!base_once(t->io->core->record))
		return t->v.octets < SOFT_TX_OCTETS;
	return !(m->flags & MPA_F_TX_MARKERS) && len < m->mulpdu &&
	       t->v.octets + mpa_fpdu_octets(DDP_UNTAGGED_LEN + (__u32)len) <= m->emss;
}

static __u8 *rest_of(const struct soft_io *io)
{
	return io->rest ? io->rest : io->rest_take(io->mem);
}

static int rest_reserve(const struct soft_io *io, size_t len)
{
	return io->reserve ? io->reserve(io->mem, rest_of(io), len) : 0;
}

int soft_tx_keep(const struct soft_io *io, const struct iovec *iov, __u64 from, __u64 to)
{
	struct soft_core *c = io->core;
	__u8 *rest = rest_of(io);
	__u64 at = 0, end;
	__u32 len = 0;
	int err = rest_reserve(io, to - from);

	if (err)
		return err;

	for (; at < to; at = end, iov++) {
		end = at + iov->iov_len;
		if (end > from) {
			__u64 lo = base_max(at, from), hi = base_min(end, to);

			memcpy(rest + len, (__u8 *)iov->iov_base + (lo - at), hi - lo);
			len += (__u32)(hi - lo);
		}
	}
	BASE_POINT(soft_tx_kept);
	c->rest_off = 0;
	rest_len_set(c, len);
	return 0;
}

/* The carrier took @sent bytes: how much of the batch has happened, or -errno */
static int batch_settle(struct soft_tx *t, __u64 sent)
{
	struct rdmap_stream *s = &t->io->core->rdmap;
	unsigned int n = 0;
	int err = 0;

	while (n < t->count && (n ? t->frame[n - 1].end : 0) < sent)
		n++;
	if (n && t->frame[n - 1].end > sent)
		err = soft_tx_keep(t->io, t->iov, sent, t->frame[n - 1].end);
	if (n < t->count)
		rdmap_tx_rewind(s, n ? &t->frame[n - 1].mark : &t->start);
	BASE_POINT(soft_tx_rewound);
	rdmap_tx_commit(s);
	return err ? err : (int)n;
}

static int batch_push(struct soft_tx *t, unsigned int flags)
{
	const struct soft_io *io = t->io;
	ssize_t sent;
	int n;

	if (!t->count)
		return 0;
	sent = io->llp->ops->send(io->llp, t->iov, t->v.niov, flags);
	BASE_POINT(soft_tx_sent);
	n = batch_settle(t, sent > 0 ? (__u64)sent : 0);
	if (sent < 0 && sent != -EAGAIN)
		return soft_tx_fail(io->core, (int)sent);
	if (n < 0)
		return soft_tx_fail(io->core, n);
	t->count = 0;
	t->v.niov = t->v.used = 0;
	t->v.octets = 0;
	rdmap_tx_mark(&io->core->rdmap, &t->start);
	return n ? n : -EAGAIN;
}

int soft_tx_push(struct soft_tx *t)
{
	return batch_push(t, soft_tx_flags(t->io->core));
}

int soft_tx_push_more(struct soft_tx *t)
{
	unsigned int flags = soft_tx_flags(t->io->core);

	return batch_push(t, flags ? flags : LLP_MORE);
}

int soft_tx_rest(const struct soft_io *io)
{
	struct soft_core *c = io->core;
	__u32 off = base_once(c->rest_off), end = base_once(c->rest_len);

	if (off > end || end > SOFT_FPDU_MAX)
		return soft_tx_fail(c, -EBADMSG);
	while (off < end) {
		struct iovec iov = { rest_of(io) + off, end - off };
		ssize_t sent = io->llp->ops->send(io->llp, &iov, 1, soft_tx_flags(c));

		if (sent == -EAGAIN)
			return -EAGAIN;
		if (sent < 0)
			return soft_tx_fail(c, (int)sent);
		BASE_POINT(soft_rest_sent);
		off += (__u32)sent;
		c->rest_off = off;
	}
	c->rest_off = 0;
	rest_len_set(c, 0);
	return 0;
}

int soft_tx_raw(const struct soft_io *io, const __u8 *p, size_t n)
{
	struct iovec iov = { (__u8 *)p, n };
	ssize_t sent = io->llp->ops->send(io->llp, &iov, 1, soft_tx_flags(io->core));
	size_t left = n - (size_t)base_max(sent, (ssize_t)0);
	int err;

	if (sent < 0 && sent != -EAGAIN)
		return soft_tx_fail(io->core, (int)sent);
	if (!left)
		return 0;
	err = rest_reserve(io, left);
	if (err)
		return soft_tx_fail(io->core, err);
	memcpy(rest_of(io), p + n - left, left);
	io->core->rest_off = 0;
	rest_len_set(io->core, (__u32)left);
	return -EAGAIN;
}

int soft_tx_owed(struct soft_tx *t, const struct rdmap_source *src, bool between)
{
	const struct soft_io *io = t->io;
	struct rdmap_stream *s = &io->core->rdmap;
	int got = rdmap_tx_rtr(s, &io->slots, &t->v);

	if (!got && between)
		got = rdmap_tx_response(s, &io->slots, &t->v, src);
	if (got <= 0)
		got = rdmap_tx_terminate(s, &t->v);
	if (got != 1)
		return 0;
	soft_tx_note(t, 0, 0, true);
	t->frame[t->count - 1].owed = true;
	return 1;
}

/*
 * All that is owed has gone: behind a Terminate comes our end, and where none was possible there
 * is nothing to send
 */
static int fault_finish(const struct soft_io *io)
{
	switch (rdmap_state_of(&io->core->rdmap)) {
	case RDMAP_FAULTED:
		return soft_tx_fail(io->core, -EPROTO);
	case RDMAP_TERM_SENT:
		return soft_tx_shutdown(io);
	default:
		return 0;
	}
}

static int flush(const struct soft_io *io, const struct rdmap_source *src, bool between,
		 int (*push)(struct soft_tx *t))
{
	struct soft_tx t;
	int err = soft_core_told(&io->core->tx_error);

	while (!err) {
		err = soft_tx_rest(io);
		if (err || io->core->phase != SOFT_OPEN)
			break;
		soft_tx_begin(&t, io);
		while (!soft_tx_full(&t) && soft_tx_owed(&t, src, between))
			;
		if (!t.count)
			return fault_finish(io);
		err = push(&t);
		err = base_min(err, 0);
	}
	return err;
}

int soft_tx_flush(const struct soft_io *io, const struct rdmap_source *src, bool between)
{
	return flush(io, src, between, soft_tx_push);
}

int soft_tx_flush_more(const struct soft_io *io, const struct rdmap_source *src, bool between)
{
	return flush(io, src, between, soft_tx_push_more);
}

/* No lock is needed to ask; what comes up meanwhile, its finder asks for again */
bool soft_tx_pending(const struct soft_core *c)
{
	const struct rdmap_stream *s = &c->rdmap;

	if (__atomic_load_n(&c->tx_error, __ATOMIC_RELAXED))
		return false;
	if (__atomic_load_n(&c->rest_len, __ATOMIC_RELAXED))
		return true;
	if (__atomic_load_n(&c->phase, __ATOMIC_ACQUIRE) != SOFT_OPEN)
		return false;
	if (rdmap_state_of(s) == RDMAP_FAULTED)
		return true;
	return __atomic_load_n(&s->rtr, __ATOMIC_RELAXED) == RDMAP_RTR_TO_SEND ||
	       __atomic_load_n(&s->in_tail, __ATOMIC_ACQUIRE) !=
		       __atomic_load_n(&s->in_next, __ATOMIC_RELAXED);
}

int soft_tx_shutdown(const struct soft_io *io)
{
	struct soft_core *c = io->core;
	int err;

	if (c->tx_end)
		return 0;
	err = soft_tx_rest(io);
	if (err == -EAGAIN)
		return err;
	c->tx_end = 1;
	BASE_POINT(soft_tx_ended);
	return io->llp->ops->shutdown(io->llp);
}
