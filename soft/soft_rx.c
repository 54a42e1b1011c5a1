/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way in: octets are received into one area, taken apart there frame by frame, and handed up
 * when their CRC is good.
 *
 * The area holds two of the longest frames, so what is left of a frame moves to its front only
 * when the frame does not fit behind. After a fault, or a Terminate, input is received and thrown
 * away: a socket that is closed with octets unread resets the connection, and our Terminate might
 * be lost with it (RFC 5040 section 6.2.1). The end of the octets inside a frame is a broken
 * connection, at a frame's edge an orderly one (RFC 5044 section 8).
 */
#include "soft/soft_core.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/point.h"

static int rx_fail(struct soft_core *c, int err)
{
	if (!c->rx_error) {
		base_debug("stream broken in receiving: %s, %s", strerror(-err),
			   rdmap_fault_text(c->rdmap.term.fault));
		__atomic_store_n(&c->rx_error, err, __ATOMIC_RELAXED);
	}
	return err;
}

/* What the RDMAP stream has come to */
static int stream_error(const struct rdmap_stream *s)
{
	switch (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE)) {
	case RDMAP_OPEN:
		return 0;
	case RDMAP_TERM_RCVD:
		return -ECONNRESET;
	default:
		return -EPROTO;
	}
}

/* The frame at in_off needs @need octets: is there room behind? */
static void leftover_move(const struct soft_io *io, __u32 need)
{
	struct soft_core *c = io->core;

	if (c->in_off == c->in_fill) {
		c->in_off = c->in_fill = 0;
	} else if (c->in_off + need > io->in_cap) {
		c->in_fill -= c->in_off;
		memmove(io->in, io->in + c->in_off, c->in_fill);
		BASE_POINT(soft_rx_moved);
		c->in_off = 0;
	}
}

int soft_rx_parse(const struct soft_io *io, const struct rdmap_sink *sink)
{
	struct soft_core *c = io->core;
	struct rdmap_stream *s = &c->rdmap;
	struct mpa_fpdu f = { .used = 0 };
	int err = stream_error(s);

	while (!err && c->in_off < c->in_fill) {
		err = mpa_rx_fpdu(&s->ddp.mpa, io->in + c->in_off, c->in_fill - c->in_off, &f);
		if (err == -EAGAIN)
			break;
		if (err) {
			rdmap_fault(s, s->ddp.mpa.fault);
			break;
		}
		c->in_off += f.used;
		BASE_POINT(soft_rx_framed);
		rdmap_rx(s, &io->slots, f.ulpdu, f.len, sink);
		err = stream_error(s);
	}
	if (err && err != -EAGAIN)
		return rx_fail(c, stream_error(s));
	leftover_move(io, err == -EAGAIN ? f.used : 0);
	return 0;
}

/*
 * A carrier tells of a reset once, and who sends may have been told: then what looks like an
 * orderly end is none. EPIPE is what comes of sending behind one.
 */
static ssize_t end_told(struct soft_core *c)
{
	int err = __atomic_load_n(&c->tx_error, __ATOMIC_RELAXED);

	return err && err != -EPIPE ? rx_fail(c, err) : 0;
}

static ssize_t rx_ended(const struct soft_io *io)
{
	struct soft_core *c = io->core;
	int err = mpa_rx_end(&c->rdmap.ddp.mpa, c->in_fill - c->in_off);

	if (err)
		return rx_fail(c, err);
	__atomic_store_n(&c->rx_end, 1, __ATOMIC_RELAXED);
	return end_told(c);
}

/* Input of a broken stream; a bound, for the peer may never stop */
static int discard(const struct soft_io *io)
{
	struct iovec iov = { io->in, io->in_cap };

	io->core->in_off = io->core->in_fill = 0;
	for (int i = 0; i < 16 && io->llp->ops->recv(io->llp, &iov, 1) > 0; i++)
		;
	return io->core->rx_error;
}

/* One recv and what it brought; *@dry: the carrier had less than there was room for */
static ssize_t rx_once(const struct soft_io *io, const struct rdmap_sink *sink, bool *dry)
{
	struct soft_core *c = io->core;
	struct iovec iov = { io->in + c->in_fill, io->in_cap - c->in_fill };
	ssize_t got = io->llp->ops->recv(io->llp, &iov, 1);
	int err;

	if (got == -EAGAIN)
		return got;
	if (got < 0)
		return rx_fail(c, (int)got);
	if (got == 0)
		return rx_ended(io);
	BASE_POINT(soft_rx_received);
	*dry = (size_t)got < iov.iov_len;
	c->in_fill += (__u32)got;
	err = soft_rx_parse(io, sink);
	return err ? err : got;
}

ssize_t soft_rx(const struct soft_io *io, const struct rdmap_sink *sink, size_t budget)
{
	struct soft_core *c = io->core;
	ssize_t got = 0, sum = 0;
	bool dry = false;

	if (c->rx_error)
		return discard(io);
	if (c->rx_end)
		return end_told(c);
	while (!budget || (!dry && (size_t)sum < budget)) {
		got = rx_once(io, sink, &dry);
		if (got <= 0)
			break;
		sum += got;
	}
	/* An end is told by the next call: octets before it count first */
	return sum ? sum : got;
}
