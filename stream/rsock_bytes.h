/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes that wait for their reader. Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_BYTES_H
#define STREAM_RSOCK_BYTES_H

/* --- chunk.c: rx lock. @at counts octets of the ring, ever, and is within it --- */

void stream_chunks_init(struct stream_rx *rx);
void stream_chunks_put(struct stream *s, uint64_t at, const void *p, size_t len);
void stream_chunks_get(struct stream *s, uint64_t at, void *p, size_t len);
/* Octets before @to are read; the first of them is @from, and the last in a chunk is before @end */
void stream_chunks_drop(struct stream *s, uint64_t from, uint64_t to, uint64_t end);

/* --- span.c: rx lock --- */

/* Octets from @at on wait at @p. False: they cannot, for that is not where they stay */
bool stream_span_put(struct stream *s, uint64_t at, const uint8_t *p, size_t len);
/* Are there any? */
bool stream_spans_wait(const struct stream *s);
/* Those that wait there are copied to chunks */
void stream_spans_settle(struct stream *s);
/* As stream_chunks_get() and stream_chunks_drop() have them, wherever octets are */
void stream_bytes_get(struct stream *s, uint64_t at, void *p, size_t len);
void stream_bytes_drop(struct stream *s, uint64_t from, uint64_t to);

#endif
