/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes that wait for their reader where the transport has received them.
 *
 * A program that waits for input by poll() or epoll_wait() has no buffer there yet when bytes come.
 * So the payload of a Send stays where it is, between the headers of FPDUs in the block's `in`, and
 * what is kept is where it lies: one span for each. A reader copies it from there. When the
 * transport needs that memory again, they are copied to chunks first (stream_spans_settle()).
 *
 * Spans are a row of bytes without a gap. Those before it, and those behind it, for which the table
 * had no room, are in chunks. What stands in the table may be rubbish that another process has
 * written: bytes of the block are read then, or zeroes.
 */
#include "stream/protocol/protocol.h"

#include <string.h>

#include "base/bits.h"
#include "base/point.h"

/* The table as it was read once; empty where it makes no sense */
struct table {
	unsigned int first, end;
	uint64_t from, to; /* the bytes of the stream that are in it */
};

static struct table table_of(const struct stream_rx *rx)
{
	struct table t = { base_once(rx->span_first), base_once(rx->span_end),
			   base_once(rx->span_from), base_once(rx->span_to) };

	if (t.first >= t.end || t.end > STREAM_SPANS || t.from >= t.to)
		t = (struct table){ 0 };
	return t;
}

/* Its bytes, cut to what is memory of the block */
static struct stream_span span_of(const struct stream_rx *rx, unsigned int i)
{
	struct stream_span span = { base_once(rx->span[i].off), base_once(rx->span[i].len) };

	span.off = base_min(span.off, (uint32_t)RNIC_STREAM_IN);
	span.len = base_min(span.len, (uint32_t)RNIC_STREAM_IN - span.off);
	return span;
}

bool stream_span_put(struct stream *s, uint64_t at, const uint8_t *p, size_t len)
{
	struct stream_rx *rx = &s->state->rx;
	const uint8_t *in = s->mem.in;
	struct table t;

	if (base_once(rx->span_end) == STREAM_SPANS && stream_spans_wait(s))
		return false;
	if (rx->message_open || p < in || p >= in + RNIC_STREAM_IN || !len)
		return false;
	t = table_of(rx);
	if (!t.end) {
		rx->span_first = 0;
		rx->span_from = at;
	} else if (t.end == STREAM_SPANS || at != t.to) {
		return false;
	}
	rx->span[t.end] = (struct stream_span){ (uint32_t)(p - in), (uint32_t)len };
	rx->span_to = at + len;
	BASE_POINT(stream_span_put);
	rx->span_end = (uint8_t)(t.end + 1);
	return true;
}

void stream_spans_settle(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;
	struct table t = table_of(rx);
	bool closed = base_load(&s->state->ends) & STREAM_CLOSED;

	for (; t.first < t.end && !closed; t.first++) {
		struct stream_span span = span_of(rx, t.first);

		stream_chunks_put(s, t.from, (uint8_t *)s->mem.in + span.off, span.len);
		t.from += span.len;
	}
	BASE_POINT(stream_spans_settled);
	rx->span_first = rx->span_end = 0;
}

/* Bytes @skip.. of those in spans */
static void spans_get(const struct stream *s, const struct table *t, uint64_t skip, uint8_t *to,
		      size_t len)
{
	const struct stream_rx *rx = &s->state->rx;

	for (unsigned int i = t->first; len && i < t->end; i++) {
		struct stream_span span = span_of(rx, i);
		uint32_t over = (uint32_t)base_min(skip, span.len);
		size_t n = base_min(len, span.len - over);

		memcpy(to, (const uint8_t *)s->mem.in + span.off + over, n);
		skip -= over;
		to += n;
		len -= n;
	}
	memset(to, 0, len);
}

/* Bytes of which some may be in spans */
static void any_get(struct stream *s, uint64_t at, void *p, size_t len)
{
	const struct table t = table_of(&s->state->rx);
	size_t before = at < t.from ? base_min(len, t.from - at) : 0, in;
	uint8_t *to = p;

	if (before)
		stream_chunks_get(s, at, to, before);
	at += before;
	to += before;
	len -= before;
	in = at < t.to ? base_min(len, t.to - at) : 0;
	if (in)
		spans_get(s, &t, at - t.from, to, in);
	if (in < len)
		stream_chunks_get(s, at + in, to + in, len - in);
}

void stream_bytes_get(struct stream *s, uint64_t at, void *p, size_t len)
{
	if (stream_spans_wait(s))
		any_get(s, at, p, len);
	else
		stream_chunks_get(s, at, p, len);
}

static void spans_drop(struct stream_rx *rx, struct table t, uint64_t len)
{
	for (; len && t.first < t.end; t.first++) {
		struct stream_span span = span_of(rx, t.first);

		if (len < span.len) {
			rx->span[t.first] = (struct stream_span){ span.off + (uint32_t)len,
								  span.len - (uint32_t)len };
			break;
		}
		len -= span.len;
	}
	rx->span_first = (uint8_t)t.first;
}

static void any_drop(struct stream *s, uint64_t from, uint64_t to)
{
	struct stream_rx *rx = &s->state->rx;
	const struct table t = table_of(rx);

	/* Bytes behind the spans may be in the chunk that ends before them */
	if (!t.end || t.to != rx->placed)
		stream_chunks_drop(s, from, to, rx->placed);
	else if (from < t.from)
		stream_chunks_drop(s, from, base_min(to, t.from), t.from);
	if (!t.end || to <= t.from)
		return;
	rx->span_from = to;
	BASE_POINT(stream_span_dropped);
	spans_drop(rx, t, to - t.from);
}

void stream_bytes_drop(struct stream *s, uint64_t from, uint64_t to)
{
	if (stream_spans_wait(s))
		any_drop(s, from, to);
	else
		stream_chunks_drop(s, from, to, s->state->rx.placed);
}
