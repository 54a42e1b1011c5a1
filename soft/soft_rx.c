/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way in: bytes are received into one area, taken apart there frame by frame, and handed up
 * when their CRC is good.
 *
 * The area holds two of the longest frames, so what is left of a frame moves to its front only
 * when the frame does not fit behind. Until then what was handed up may be wanted where it lies.
 * After a fault, or a Terminate, input is received and thrown away: a socket that is closed with
 * bytes unread resets the connection, and our Terminate might be lost with it (RFC 5040 section
 * 6.2.1). The end of the bytes inside a frame is a broken connection, at a frame's edge an orderly
 * one (RFC 5044 section 8).
 *
 * A peer may send faster than a frame is taken apart, and frames without bytes for ever. So one
 * call ends at a bound, also where more waits: its caller holds a lock, and others wait for it.
 */
#include "soft/soft_core.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"
#include "base/point.h"
#include "rnic/rnic_sink.h"

/* What one call takes in at most, and one recv more */
#define OCTETS_MAX (1 << 20)
#define FPDUS_MAX 1000
#define RECVS_MAX 64

/* Where bytes lie in `in`, as it was read once */
struct span {
	__u32 off, fill;
};

static int rx_fail(struct soft_core *c, int err)
{
	if (!c->rx_error) {
		base_debug("stream broken in receiving: %s, %s", strerror(-err),
			   rdmap_fault_text(c->rdmap.term.fault));
		__atomic_store_n(&c->rx_error, err, __ATOMIC_RELAXED);
	}
	return err;
}

/* False: another process has spoilt it */
static bool span_get(const struct soft_io *io, struct span *in)
{
	in->off = base_once(io->core->in_off);
	in->fill = base_once(io->core->in_fill);
	return in->off <= in->fill && in->fill <= io->in_cap;
}

static void span_put(const struct soft_io *io, struct span in)
{
	io->core->in_off = in.off;
	io->core->in_fill = in.fill;
}

/* What the RDMAP stream has come to */
static int stream_error(const struct rdmap_stream *s)
{
	switch (rdmap_state_of(s)) {
	case RDMAP_OPEN:
		return 0;
	case RDMAP_TERM_RCVD:
		return -ECONNRESET;
	default:
		return -EPROTO;
	}
}

/* Do bytes that were handed up still lie in `in`? */
static bool is_wanted(const struct soft_io *io)
{
	return io->sink && io->sink->wants && io->sink->wants(io->sink->ctx);
}

static void settle(const struct soft_io *io)
{
	if (io->sink && io->sink->settle)
		io->sink->settle(io->sink->ctx);
}

/*
 * Is there room for the frame at in_off, or the longest one where it is not here yet? Before that
 * is needed, bytes stay where they are
 */
static void room_make(const struct soft_io *io, struct span *in)
{
	bool empty = in->off == in->fill;
	__u32 need = empty ? SOFT_FPDU_MAX : base_min(base_once(io->core->in_need), io->in_cap);

	if (empty && !is_wanted(io)) {
		in->off = in->fill = 0;
	} else if (need > io->in_cap - in->off) {
		settle(io);
		in->fill -= in->off;
		memmove(io->in, io->in + in->off, in->fill);
		BASE_POINT(soft_rx_moved);
		in->off = 0;
	} else {
		return;
	}
	span_put(io, *in);
}

int soft_rx_parse(const struct soft_io *io, const struct rdmap_sink *sink)
{
	struct soft_core *c = io->core;
	struct rdmap_stream *s = &c->rdmap;
	struct mpa_fpdu f = { .used = 0 };
	struct span in;
	int err = stream_error(s);

	if (!span_get(io, &in))
		return rx_fail(c, -EBADMSG);
	while (!err && in.off < in.fill) {
		err = mpa_rx_fpdu(&s->ddp.mpa, io->in + in.off, in.fill - in.off, &f);
		if (err == -EAGAIN)
			break;
		if (err) {
			rdmap_fault(s, s->ddp.mpa.fault);
			break;
		}
		in.off += f.used;
		span_put(io, in);
		BASE_POINT(soft_rx_framed);
		rdmap_rx(s, &io->slots, f.ulpdu, f.len, sink);
		err = stream_error(s);
	}
	if (err && err != -EAGAIN)
		return rx_fail(c, stream_error(s));
	c->in_need = f.used;
	return 0;
}

/*
 * A carrier tells of a reset once, and who sends may have been told: then what looks like an
 * orderly end is none. EPIPE is what comes of sending behind one.
 */
static ssize_t end_told(struct soft_core *c)
{
	int err = soft_core_told(&c->tx_error);

	return err && err != -EPIPE ? rx_fail(c, err) : 0;
}

static ssize_t rx_ended(const struct soft_io *io, struct span in)
{
	struct soft_core *c = io->core;
	int err = mpa_rx_end(&c->rdmap.ddp.mpa, in.fill - in.off);

	if (err)
		return rx_fail(c, err);
	__atomic_store_n(&c->rx_end, 1, __ATOMIC_RELAXED);
	return end_told(c);
}

/* Input of a broken stream; a bound, for the peer may never stop */
static int discard(const struct soft_io *io)
{
	struct iovec iov = { io->in, io->in_cap };

	settle(io);
	io->core->in_off = io->core->in_fill = 0;
	for (int i = 0; i < 16 && io->llp->ops->recv(io->llp, &iov, 1) > 0; i++)
		;
	return soft_core_told(&io->core->rx_error);
}

/* The kernel takes nothing from the socket where there is no memory for it */
ssize_t soft_rx_recv(const struct soft_io *io, __u32 at, size_t len)
{
	struct iovec iov = { io->in + at, len };
	ssize_t got = io->llp->ops->recv(io->llp, &iov, 1);

	if (got != -EFAULT || !io->reserve || io->reserve(io->mem, iov.iov_base, len))
		return got;
	return io->llp->ops->recv(io->llp, &iov, 1);
}

bool soft_rx_place(const struct soft_io *io, struct iovec *out)
{
	struct span in;

	if (io->core->rx_error || io->core->rx_end || !span_get(io, &in))
		return false;
	room_make(io, &in);
	*out = (struct iovec){ io->in + in.fill, io->in_cap - in.fill };
	return true;
}

/* One recv and what it brought; *@less: than there was room for */
static ssize_t rx_once(const struct soft_io *io, const struct rdmap_sink *sink, bool *less)
{
	struct soft_core *c = io->core;
	struct span in;
	ssize_t got;
	int err;

	if (!span_get(io, &in))
		return rx_fail(c, -EBADMSG);
	room_make(io, &in);
	got = soft_rx_recv(io, in.fill, io->in_cap - in.fill);
	if (got == -EAGAIN)
		return got;
	if (got < 0)
		return rx_fail(c, (int)got);
	if (got == 0)
		return rx_ended(io, in);
	BASE_POINT(soft_rx_received);
	*less = (size_t)got < io->in_cap - in.fill;
	in.fill += (__u32)got;
	span_put(io, in);
	err = soft_rx_parse(io, sink);
	return err ? err : got;
}

/* So many bytes and frames, and this recv: is it enough for one call? */
static bool is_enough(ssize_t octets, __u64 fpdus, unsigned int recvs)
{
	return octets >= OCTETS_MAX || fpdus >= FPDUS_MAX || recvs >= RECVS_MAX;
}

ssize_t soft_rx(const struct soft_io *io, const struct rdmap_sink *sink, size_t budget)
{
	struct soft_core *c = io->core;
	const __u64 *fpdus = &c->rdmap.ddp.mpa.rx_fpdus, before = *fpdus;
	bool less = false, more = true, enough = false;
	unsigned int recvs = 0;
	ssize_t got = 0, sum = 0;

	if (c->rx_error)
		return discard(io);
	if (c->rx_end)
		return end_told(c);
	while (more && !enough) {
		got = rx_once(io, sink, &less);
		if (got <= 0)
			break;
		sum += got;
		more = budget ? !less && (size_t)sum < budget : !io->llp->empty;
		enough = is_enough(sum, *fpdus - before, ++recvs);
	}
	__atomic_store_n(&c->rx_more, more && enough && got > 0, __ATOMIC_RELAXED);
	/* An end is told by the next call: bytes before it count first */
	return sum ? sum : got;
}
