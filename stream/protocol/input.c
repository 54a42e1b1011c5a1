/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the peer says: Writes into our ring and into our target SGL, and messages of four
 * bytes, behind which another Warpsock may put a body.
 *
 * rsockets believes its peer; we do not. A Write must continue the ring where the last one
 * ended, within what was granted; a DATA message must name exactly the bytes that were placed
 * since the one before; an SGE must go to the slot whose turn it is, when the buffer it named
 * is used up. Anything else is refused and ends the connection (docs/stream-wire.md, "a correct
 * peer must never").
 */
#include "stream/protocol/protocol.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/point.h"
#include "stream/cursor.h"

/* Bytes for a waiting reader go straight to it, the others stay or go to chunks */
static void octets_put(struct stream_drain *d, const uint8_t *p, size_t len)
{
	struct stream_rx *rx = &d->s->state->rx;
	struct stream_target *t = d->target;
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
	if (len && !stream_span_put(d->s, at, p, len))
		stream_chunks_put(d->s, at, p, len);
}

/* Bytes of the stream, whichever way they came */
static int octets_arrive(struct stream_drain *d, const uint8_t *p, size_t len)
{
	struct stream_state *st = d->s->state;
	struct stream_rx *rx = &st->rx;

	if (len > base_load(&st->tx.granted) - rx->placed)
		return stream_refuse("wrote more than it was granted");
	if (base_load(&st->ends) & STREAM_IN_ENDED)
		return stream_refuse("wrote after its end");
	if (!(base_load(&st->ends) & STREAM_CLOSED))
		octets_put(d, p, len);
	BASE_POINT(stream_message_placed);
	rx->placed += len;
	return 0;
}

static int ring_write(struct stream_drain *d, uint64_t off, const uint8_t *p, size_t len)
{
	if (off != d->s->state->rx.placed % d->s->ring)
		return stream_refuse("wrote into the ring out of turn");
	return octets_arrive(d, p, len);
}

static int sgl_write(struct stream_drain *d, uint64_t off, const uint8_t *p, size_t len)
{
	struct stream_state *st = d->s->state;
	struct stream_rx *rx = &st->rx;

	if (len != sizeof(rx->sge) || off != rx->entries % RS_SGL_ENTRIES * sizeof(rx->sge))
		return stream_refuse("wrote beside the SGE whose turn it is");
	if (rx->sge_here || rx->entries - base_load(&st->tx.filled) >= RS_SGL_ENTRIES)
		return stream_refuse("wrote over an SGE that is in use");
	memcpy(&rx->sge, p, len);
	rx->sge_here = 1;
	return 0;
}

static int sink_write(void *ctx, const struct rnic_window *w, uint64_t off, const void *p,
		      size_t len)
{
	if (w->tag == STREAM_SGL_WINDOW && off >= RS_SGL_LEN)
		return stream_slot_write(((struct stream_drain *)ctx)->s, off - RS_SGL_LEN, p, len);
	if (stream_has(((struct stream_drain *)ctx)->s, STREAM_FEATURE_INLINE))
		return stream_refuse("wrote where Sends were agreed on");
	return w->tag == STREAM_SGL_WINDOW ? sgl_write(ctx, off, p, len)
					   : ring_write(ctx, off, p, len);
}

/*
 * All that was placed since the last message, and so many bytes, are the program's; @urgent: the
 * last one is. Who sees them delivered sees that, too
 */
static int octets_deliver(struct stream *s, uint32_t octets, bool urgent)
{
	struct stream_state *st = s->state;
	struct stream_rx *rx = &st->rx;

	if (base_load(&st->ends) & STREAM_IN_ENDED)
		return stream_refuse("sent octets after its end");
	if (!octets || rx->message_open || octets != rx->placed - rx->delivered)
		return stream_refuse("told of other octets than it sent");
	if (urgent)
		stream_urgent_arrive(s);
	base_store(&rx->delivered, rx->placed);
	BASE_POINT(stream_message_delivered);
	__atomic_add_fetch(&st->in_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static int take_data(struct stream *s, uint32_t octets)
{
	int err = stream_credit_take(s);

	return err ? err : octets_deliver(s, octets, false);
}

static bool is_urgent(const struct stream *s, uint32_t value)
{
	return value & STREAM_INLINE_URGENT && stream_has(s, STREAM_FEATURE_URGENT);
}

static int take_inline(struct stream *s, uint32_t value)
{
	bool urgent = is_urgent(s, value);

	if (!stream_has(s, STREAM_FEATURE_INLINE))
		return stream_refuse("sent octets in a message without leave");
	return octets_deliver(s, urgent ? value & ~STREAM_INLINE_URGENT : value, urgent);
}

static int sge_accept(struct stream_rx *rx)
{
	struct stream_entry *e = &rx->entry[rx->entries % RS_SGL_ENTRIES];
	uint64_t to = le64toh(rx->sge.addr);
	uint32_t len = le32toh(rx->sge.length);

	if (!len || to + len < to)
		return stream_refuse("granted a buffer that cannot be");
	*e = (struct stream_entry){ .to = to, .stag = le32toh(rx->sge.key), .room = len };
	rx->sge_here = 0;
	base_store(&rx->entries, rx->entries + 1);
	return 0;
}

static int take_sgl(struct stream *s, uint32_t limit)
{
	struct stream_state *st = s->state;
	int err;

	if (stream_has(s, STREAM_FEATURE_INLINE))
		return stream_refuse("granted credit where a window was agreed on");
	err = st->rx.sge_here ? sge_accept(&st->rx) : 0;
	if (err)
		return err;
	st->rx.idle.row++;
	base_store(&st->rx.limit, (uint16_t)limit);
	__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

/* A part of a user message: with the bytes that were told of, and in the end the whole of it */
static int take_message(struct stream *s, uint32_t value)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t before = rx->message_part;

	if (!stream_has(s, STREAM_FEATURE_MESSAGES))
		return stream_refuse("sent a user message without leave");
	if (base_load(&s->state->ends) & STREAM_IN_ENDED)
		return stream_refuse("sent a user message after its end");
	if (stream_message_begin(s))
		return stream_refuse("sent more than it was granted");
	rx->message_part = rx->placed - rx->message_at - STREAM_MESSAGE_COST;
	if (rx->message_part - before != (value & ~STREAM_MESSAGE_MORE))
		return stream_refuse("told of other octets than its message has");
	return value & STREAM_MESSAGE_MORE ? 0 : stream_message_end(s);
}

static int take_window(struct stream *s, uint32_t value)
{
	struct stream_rx *rx = &s->state->rx;
	struct stream_window w;
	uint64_t limit;

	if (!stream_has(s, STREAM_FEATURE_INLINE))
		return stream_refuse("granted a window without leave");
	memcpy(&w, rx->body, sizeof(w));
	limit = le64toh(w.limit);
	if (limit < rx->window)
		return stream_refuse("took back what it had granted");
	rx->idle.row++;
	if (!(value & STREAM_WINDOW_HELD))
		rx->settled = 1;
	if (limit == rx->window)
		return 0; /* only to say what is held: there is no more room than before */
	base_store(&rx->window, limit);
	BASE_POINT(stream_message_window);
	__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static int take_ctrl(struct stream *s, uint32_t what)
{
	switch (what) {
	case RS_CTRL_DISCONNECT:
		stream_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_LEFT);
		return 0;
	case RS_CTRL_SHUTDOWN:
		stream_end(s, STREAM_IN_ENDED);
		return 0;
	case RS_CTRL_KEEPALIVE:
		s->state->rx.idle.row++;
		return 0;
	case RS_CTRL_ABORT:
		if (!stream_has(s, STREAM_FEATURE_ABORT))
			return stream_refuse("aborted in a way that was not agreed on");
		base_store(&s->state->aborted, 1);
		stream_break(s, ECONNRESET);
		return 0;
	default:
		return stream_refuse("sent a control message that there is not");
	}
}

static int take_nothing(struct stream *s, uint32_t data)
{
	return stream_refuse("sent a message that must not be");
}

/* Bodies: bytes @off.. behind a message's four */

static int body_none(struct stream_drain *d, size_t off, const uint8_t *p, size_t len)
{
	return -EMSGSIZE;
}

static int body_inline(struct stream_drain *d, size_t off, const uint8_t *p, size_t len)
{
	if (!stream_has(d->s, STREAM_FEATURE_INLINE) || d->s->state->rx.message_open)
		return -EMSGSIZE;
	/* A reader's buffer ends before an urgent byte, and what is behind it comes later */
	if (is_urgent(d->s, rs_msg_data(base_get_le32(d->s->state->rx.msg))))
		d->target = NULL;
	return octets_arrive(d, p, len);
}

/* Bytes behind it belong to no reader's buffer, for they come after the message */
static int body_message(struct stream_drain *d, size_t off, const uint8_t *p, size_t len)
{
	int err;

	if (!stream_has(d->s, STREAM_FEATURE_MESSAGES))
		return -EMSGSIZE;
	d->target = NULL;
	err = stream_message_begin(d->s);
	return err ? err : octets_arrive(d, p, len);
}

static int body_window(struct stream_drain *d, size_t off, const uint8_t *p, size_t len)
{
	struct stream_rx *rx = &d->s->state->rx;

	if (off > sizeof(rx->body) || len > sizeof(rx->body) - off)
		return -EMSGSIZE;
	memcpy(rx->body + off, p, len);
	BASE_POINT(stream_message_body);
	return 0;
}

static const struct {
	int (*body)(struct stream_drain *d, size_t off, const uint8_t *p, size_t len);
	size_t body_len; /* 0: none, or as many as there are */
	int (*take)(struct stream *s, uint32_t data);
} rows[8] = {
	[RS_OP_DATA] = { body_none, 0, take_data },
	[RS_OP_INLINE] = { body_inline, 0, take_inline },
	[RS_OP_WRITE] = { body_none, 0, take_nothing },
	[RS_OP_MESSAGE] = { body_message, 0, take_message },
	[RS_OP_SGL] = { body_none, 0, take_sgl },
	[RS_OP_WINDOW] = { body_window, sizeof(struct stream_window), take_window },
	[RS_OP_IOMAP_SGL] = { body_none, 0, stream_slot_take },
	[RS_OP_CTRL] = { body_none, 0, take_ctrl },
};

/* --- Writes of a device, which land without a word: messages tell of them --- */

static int ring_landed(struct stream_drain *d, uint32_t octets)
{
	const struct stream *s = d->s;
	const uint8_t *ring = s->rnic->native->memory(s->mem.native, STREAM_RING_WINDOW);
	uint32_t at = (uint32_t)(s->state->rx.placed % s->ring);
	uint32_t first = base_min(octets, s->ring - at);
	int err;

	if (octets > s->ring)
		return stream_refuse("told of more octets than the ring has");
	err = octets_arrive(d, ring + at, first);
	return err || first == octets ? err : octets_arrive(d, ring, octets - first);
}

/* An SGE is there when it says how long its buffer is; once taken, it says so no more */
static int sgl_landed(struct stream_drain *d)
{
	const struct stream *s = d->s;
	uint32_t slot = s->state->rx.entries % RS_SGL_ENTRIES;
	struct rs_sge *sgl = s->rnic->native->memory(s->mem.native, STREAM_SGL_WINDOW), sge;

	/* It may land in this moment, for a later message: its length comes last */
	if (!sgl[slot].length)
		return 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sge = sgl[slot];
	sgl[slot] = (struct rs_sge){ 0 };
	return sgl_write(d, slot * sizeof(sge), (const uint8_t *)&sge, sizeof(sge));
}

static int landed(struct stream_drain *d, uint32_t msg)
{
	if (rs_msg_op(msg) == RS_OP_DATA)
		return ring_landed(d, rs_msg_data(msg));
	if (rs_msg_op(msg) == RS_OP_IOMAP_SGL)
		return stream_slot_landed(d->s, rs_msg_data(msg));
	return rs_msg_op(msg) == RS_OP_SGL ? sgl_landed(d) : 0;
}

/* The four bytes are whole and @len more have come behind them */
static int message_take(struct stream *s, size_t len)
{
	uint32_t msg = base_get_le32(s->state->rx.msg);
	enum rs_op op = rs_msg_op(msg);

	if (rows[op].body_len && len != rows[op].body_len)
		return stream_refuse("sent a message of the wrong length");
	return rows[op].take(s, rs_msg_data(msg));
}

/* Does it come as a whole, with bytes of the stream and nothing else to tell? */
static bool is_ordinary(const struct stream *s, const uint8_t *p, size_t len)
{
	return len > RS_MSG_LEN &&
	       base_get_le32(p) == rs_msg(RS_OP_INLINE, (uint32_t)len - RS_MSG_LEN) &&
	       stream_has(s, STREAM_FEATURE_INLINE) && !s->state->rx.message_open;
}

static int ordinary_take(struct stream_drain *d, const uint8_t *p, uint32_t len)
{
	int err = octets_arrive(d, p, len);

	return err ? err : octets_deliver(d->s, len, false);
}

static int sink_message(void *ctx, uint64_t off, const void *p, size_t len, bool last)
{
	struct stream_drain *d = ctx;
	struct stream_rx *rx = &d->s->state->rx;
	size_t head = off < RS_MSG_LEN ? base_min(len, RS_MSG_LEN - off) : 0;
	uint64_t end = off + len;
	int err = 0;

	if (!off && last && is_ordinary(d->s, p, len))
		return ordinary_take(d, (const uint8_t *)p + RS_MSG_LEN,
				     (uint32_t)len - RS_MSG_LEN);
	if (head)
		memcpy(rx->msg + off, p, head);
	if (len > head)
		err = rows[rs_msg_op(base_get_le32(rx->msg))].body(
			d, off + head - RS_MSG_LEN, (const uint8_t *)p + head, len - head);
	if (err || !last)
		return err;
	if (end < RS_MSG_LEN)
		return stream_refuse("sent a message of the wrong length");
	err = d->s->mem.native ? landed(d, base_get_le32(rx->msg)) : 0;
	return err ? err : message_take(d->s, end - RS_MSG_LEN);
}

static bool sink_wants(void *ctx)
{
	return stream_spans_wait(((struct stream_drain *)ctx)->s);
}

static void sink_settle(void *ctx)
{
	stream_spans_settle(((struct stream_drain *)ctx)->s);
}

static void sink_done(void *ctx, uint64_t cookie, uint64_t value)
{
	stream_job_done(((struct stream_drain *)ctx)->s, cookie, value);
}

/* Writers try again, if there are some that could not */
static void sink_room(void *ctx)
{
	struct stream_state *st = ((struct stream_drain *)ctx)->s->state;

	/* Pairs with blocked_note() in push.c */
	if (__atomic_fetch_or(&st->tx.blocked, 0, __ATOMIC_SEQ_CST))
		__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
}

struct rnic_sink stream_sink(struct stream_drain *drain)
{
	return (struct rnic_sink){ .write = sink_write,
				   .message = sink_message,
				   .ctx = drain,
				   .wants = sink_wants,
				   .settle = sink_settle,
				   .done = sink_done,
				   .room = sink_room,
				   .sleep = drain->sleep };
}
