/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets that wait for their reader.
 *
 * The ring that the peer sees is a row of places for chunks; a place gets a chunk when the
 * first octet arrives there and gives it back when its last one is read. Octets are named by
 * their number since the beginning, so they may be put in any order. Live octets are at most
 * the ring, which touch at most STREAM_CHUNKS places: a chunk is always to be had. Free
 * chunks are a stack, so that a stream that is read at once uses one page for ever.
 */
#include "stream/rsock.h"

#include <string.h>

#include "base/point.h"

void rsock_chunks_init(struct stream_rx *rx)
{
	memset(rx->chunk_of, STREAM_NO_CHUNK, sizeof(rx->chunk_of));
	for (unsigned int i = 0; i < STREAM_CHUNKS; i++)
		rx->free_chunk[i] = (uint8_t)(STREAM_CHUNKS - 1 - i);
	rx->chunks_free = STREAM_CHUNKS;
}

static uint8_t *place_of(struct rsock *s, uint64_t at)
{
	return &s->state->rx.chunk_of[at / s->chunk % STREAM_CHUNKS];
}

/* The memory of octet @at; NULL only when another process has spoilt the tables */
static uint8_t *chunk_memory(struct rsock *s, uint64_t at)
{
	struct stream_rx *rx = &s->state->rx;
	uint8_t *place = place_of(s, at);
	uint8_t left = rx->chunks_free;

	if (*place == STREAM_NO_CHUNK && left > 0 && left <= STREAM_CHUNKS) {
		*place = rx->free_chunk[left - 1];
		BASE_POINT(stream_chunk_taken);
		rx->chunks_free = left - 1;
	}
	if (*place >= STREAM_CHUNKS)
		return NULL;
	return s->memory->chunk + *place * (size_t)s->chunk + at % s->chunk;
}

static void chunk_free(struct rsock *s, uint64_t at)
{
	struct stream_rx *rx = &s->state->rx;
	uint8_t *place = place_of(s, at);

	if (*place < STREAM_CHUNKS && rx->chunks_free < STREAM_CHUNKS)
		rx->free_chunk[rx->chunks_free++] = *place;
	*place = STREAM_NO_CHUNK;
}

static size_t chunk_span(const struct rsock *s, uint64_t at, size_t len)
{
	return base_min(len, s->chunk - at % s->chunk);
}

void rsock_chunks_put(struct rsock *s, uint64_t at, const void *p, size_t len)
{
	const uint8_t *from = p;

	while (len) {
		size_t n = chunk_span(s, at, len);
		uint8_t *to = chunk_memory(s, at);

		if (to)
			memcpy(to, from, n);
		at += n;
		from += n;
		len -= n;
	}
}

void rsock_chunks_get(struct rsock *s, uint64_t at, void *p, size_t len)
{
	uint8_t *to = p;

	while (len) {
		size_t n = chunk_span(s, at, len);
		const uint8_t *from = chunk_memory(s, at);

		if (from)
			memcpy(to, from, n);
		at += n;
		to += n;
		len -= n;
	}
}

void rsock_chunks_drop(struct rsock *s, uint64_t from, uint64_t to)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t end = to - to % s->chunk;

	/* The last place is begun, but nothing is left in it */
	if (to == rx->placed && to % s->chunk)
		end += s->chunk;
	for (uint64_t at = from - from % s->chunk; at < end; at += s->chunk)
		chunk_free(s, at);
}
