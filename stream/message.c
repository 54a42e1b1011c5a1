/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the peer says: Writes into our ring and into our target SGL, and messages of four
 * octets.
 *
 * rsockets believes its peer; we do not. A Write must continue the ring where the last one
 * ended, within what was granted; a DATA message must name exactly the octets that were placed
 * since the one before; an SGE must go to the slot whose turn it is, when the buffer it named
 * is used up. Anything else is refused and ends the connection (docs/stream-wire.md, "a correct
 * peer must never").
 */
#include "stream/rsock.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"
#include "stream/cursor.h"

static int refuse(const char *why)
{
	base_warn("stream: the peer %s", why);
	return -EPROTO;
}

/* Octets for a waiting reader go straight to it, the others to chunks */
static void octets_put(struct rsock_drain *d, const uint8_t *p, size_t len)
{
	struct stream_rx *rx = &d->s->state->rx;
	struct rsock_target *t = d->target;
	uint64_t at = rx->placed;

	while (t && len && t->filled < t->len) {
		char *to;
		size_t n = stream_cursor_next(&t->cursor, base_min(len, t->len - t->filled), &to);

		memcpy(to, p, n);
		t->filled += n;
		at += n;
		p += n;
		len -= n;
	}
	rsock_chunks_put(d->s, at, p, len);
}

static int ring_write(struct rsock_drain *d, uint64_t off, const uint8_t *p, size_t len)
{
	struct stream_state *st = d->s->state;
	struct stream_rx *rx = &st->rx;

	if (off != rx->placed % d->s->ring)
		return refuse("wrote into the ring out of turn");
	if (len > rsock_load(&st->tx.granted) - rx->placed)
		return refuse("wrote more than it was granted");
	if (rsock_load(&st->ends) & STREAM_IN_ENDED)
		return refuse("wrote after its end");
	if (!(rsock_load(&st->ends) & STREAM_CLOSED))
		octets_put(d, p, len);
	rx->placed += len;
	return 0;
}

static int sgl_write(struct rsock_drain *d, uint64_t off, const uint8_t *p, size_t len)
{
	struct stream_state *st = d->s->state;
	struct stream_rx *rx = &st->rx;

	if (len != sizeof(rx->sge) || off != rx->entries % RS_SGL_ENTRIES * sizeof(rx->sge))
		return refuse("wrote beside the SGE whose turn it is");
	if (rx->sge_here || rx->entries - rsock_load(&st->tx.filled) >= RS_SGL_ENTRIES)
		return refuse("wrote over an SGE that is in use");
	memcpy(&rx->sge, p, len);
	rx->sge_here = 1;
	return 0;
}

static int sink_write(void *ctx, const struct rnic_window *w, uint64_t off, const void *p,
		      size_t len)
{
	return w->tag == RSOCK_SGL ? sgl_write(ctx, off, p, len) : ring_write(ctx, off, p, len);
}

static int take_data(struct rsock *s, uint32_t octets)
{
	struct stream_state *st = s->state;
	struct stream_rx *rx = &st->rx;

	if (rsock_load(&st->ends) & STREAM_IN_ENDED)
		return refuse("sent octets after its end");
	if (!octets || octets != rx->placed - rx->delivered)
		return refuse("told of other octets than it wrote");
	if (rx->got == rsock_load(&st->tx.limit))
		return refuse("sent more messages than it has credit for");
	rsock_store(&rx->got, (uint16_t)(rx->got + 1));
	rsock_store(&rx->delivered, rx->placed);
	__atomic_add_fetch(&st->in_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static int sge_accept(struct stream_rx *rx)
{
	struct stream_entry *e = &rx->entry[rx->entries % RS_SGL_ENTRIES];
	uint64_t to = le64toh(rx->sge.addr);
	uint32_t len = le32toh(rx->sge.length);

	if (!len || to + len < to)
		return refuse("granted a buffer that cannot be");
	*e = (struct stream_entry){ .to = to, .stag = le32toh(rx->sge.key), .room = len };
	rx->sge_here = 0;
	rsock_store(&rx->entries, rx->entries + 1);
	return 0;
}

static int take_sgl(struct rsock *s, uint32_t limit)
{
	struct stream_state *st = s->state;
	int err = st->rx.sge_here ? sge_accept(&st->rx) : 0;

	if (err)
		return err;
	rsock_store(&st->rx.limit, (uint16_t)limit);
	__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static int take_ctrl(struct rsock *s, uint32_t what)
{
	switch (what) {
	case RS_CTRL_DISCONNECT:
		rsock_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED);
		return 0;
	case RS_CTRL_SHUTDOWN:
		rsock_end(s, STREAM_IN_ENDED);
		return 0;
	case RS_CTRL_KEEPALIVE:
		return 0;
	case RS_CTRL_ABORT:
		if (!rsock_has(s, STREAM_FEATURE_ABORT))
			return refuse("aborted in a way that was not agreed on");
		rsock_store(&s->state->aborted, 1);
		rsock_break(s, ECONNRESET);
		return 0;
	default:
		return refuse("sent a control message that there is not");
	}
}

static int take_nothing(struct rsock *s, uint32_t data)
{
	return refuse("sent a message that must not be");
}

static int (*const take[8])(struct rsock *s, uint32_t data) = {
	[RS_OP_DATA] = take_data,	  [1] = take_nothing,
	[RS_OP_WRITE] = take_nothing,	  [3] = take_nothing,
	[RS_OP_SGL] = take_sgl,		  [5] = take_nothing,
	[RS_OP_IOMAP_SGL] = take_nothing, /* we advertise no slots */
	[RS_OP_CTRL] = take_ctrl,
};

static int message_take(struct rsock *s, uint32_t msg)
{
	return take[rs_msg_op(msg)](s, rs_msg_data(msg));
}

static int sink_message(void *ctx, uint64_t off, const void *p, size_t len, bool last)
{
	struct rsock *s = ((struct rsock_drain *)ctx)->s;
	struct stream_rx *rx = &s->state->rx;

	if (off > RS_MSG_LEN || len > RS_MSG_LEN - off)
		return -EMSGSIZE;
	if (len)
		memcpy(rx->msg + off, p, len);
	if (!last)
		return 0;
	if (off + len != RS_MSG_LEN)
		return refuse("sent a message of the wrong length");
	return message_take(s, base_get_le32(rx->msg));
}

struct rnic_sink rsock_sink(struct rsock_drain *drain)
{
	return (struct rnic_sink){ sink_write, sink_message, drain };
}
