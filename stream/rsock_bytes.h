/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes that wait for their reader. Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_BYTES_H
#define STREAM_RSOCK_BYTES_H

/* --- chunk.c: rx lock. @at counts octets of the ring, ever, and is within it --- */

void rsock_chunks_init(struct stream_rx *rx);
void rsock_chunks_put(struct rsock *s, uint64_t at, const void *p, size_t len);
void rsock_chunks_get(struct rsock *s, uint64_t at, void *p, size_t len);
/* Octets before @to are read; the first of them is @from, and the last in a chunk is before @end */
void rsock_chunks_drop(struct rsock *s, uint64_t from, uint64_t to, uint64_t end);

/* --- span.c: rx lock --- */

/* Octets from @at on wait at @p. False: they cannot, for that is not where they stay */
bool rsock_span_put(struct rsock *s, uint64_t at, const uint8_t *p, size_t len);
/* Are there any? */
bool rsock_spans_wait(const struct rsock *s);
/* Those that wait there are copied to chunks */
void rsock_spans_settle(struct rsock *s);
/* As rsock_chunks_get() and rsock_chunks_drop() have them, wherever octets are */
void rsock_bytes_get(struct rsock *s, uint64_t at, void *p, size_t len);
void rsock_bytes_drop(struct rsock *s, uint64_t from, uint64_t to);

#endif
