/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes that wait for their reader.
 *
 * The ring that the peer sees is a row of places for chunks; a place gets a chunk when the
 * first byte arrives there and gives it back when its last one is read. Bytes are named by
 * their number since the beginning, so they may be put in any order. Live bytes are at most
 * the ring, which touch at most STREAM_CHUNKS places: a chunk is always to be had. Free
 * chunks are a stack, so that a stream that is read at once uses one page for ever.
 */
#include "stream/state/memory.h"

#include <string.h>

#include "base/point.h"

/* A chunk's size is a power of two */
static size_t offset_of(const struct stream *s, uint64_t at)
{
	return at & (s->chunk - 1);
}

static uint8_t *place_of(struct stream *s, uint64_t at)
{
	return &s->state->rx.chunk_of[(at >> __builtin_ctz(s->chunk)) % STREAM_CHUNKS];
}

/*
 * The chunk of byte @at, taken now if there is none; one that is not there only when another
 * process has spoilt the tables
 */
static uint8_t chunk_find(struct stream *s, uint64_t at)
{
	struct stream_rx *rx = &s->state->rx;
	uint8_t *place = place_of(s, at);
	uint8_t chunk = base_once(*place), left = base_once(rx->chunks_free);

	if (chunk != STREAM_NO_CHUNK || !left || left > STREAM_CHUNKS)
		return chunk;
	chunk = base_once(rx->free_chunk[left - 1]);
	*place = chunk;
	BASE_POINT(stream_chunk_taken);
	rx->chunks_free = left - 1;
	return chunk;
}

/* The folder may be full, and to touch what has no memory yet would be SIGBUS */
static int chunk_reserve(struct stream *s, uint8_t chunk, size_t end)
{
	uint8_t *p = s->chunks + chunk * (size_t)s->chunk;
	uint32_t want = end <= STREAM_CHUNK_MIN ? STREAM_CHUNK_MIN : s->chunk;
	int err;

	if (want <= base_load(&s->slab->reserved[s->rx][chunk]))
		return 0;
	err = stream_reserve(s, p, want);
	if (!err)
		stream_block_reserved(s->slab, s->rx, chunk, want);
	return err;
}

/* The memory of @len bytes from @at on, within one chunk; NULL: there is none */
static uint8_t *chunk_memory(struct stream *s, uint64_t at, size_t len)
{
	uint8_t chunk = chunk_find(s, at);
	size_t off = offset_of(s, at);

	if (chunk >= STREAM_CHUNKS)
		return NULL;
	if (chunk_reserve(s, chunk, off + len))
		return NULL;
	return s->chunks + chunk * (size_t)s->chunk + off;
}

static void chunk_free(struct stream *s, uint64_t at)
{
	struct stream_rx *rx = &s->state->rx;
	uint8_t *place = place_of(s, at);
	uint8_t chunk = base_once(*place), left = base_once(rx->chunks_free);

	if (chunk < STREAM_CHUNKS && left < STREAM_CHUNKS) {
		rx->free_chunk[left] = chunk;
		rx->chunks_free = left + 1;
	}
	*place = STREAM_NO_CHUNK;
}

static size_t chunk_span(const struct stream *s, uint64_t at, size_t len)
{
	return base_min(len, s->chunk - offset_of(s, at));
}

void stream_chunks_put(struct stream *s, uint64_t at, const void *p, size_t len)
{
	const uint8_t *from = p;

	while (len) {
		size_t n = chunk_span(s, at, len);
		uint8_t *to = chunk_memory(s, at, n);

		if (to) {
			memcpy(to, from, n);
		} else {
			stream_spoilt(s, STREAM_NO_MEMORY);
			s->starved = true;
		}
		at += n;
		from += n;
		len -= n;
	}
}

void stream_chunks_get(struct stream *s, uint64_t at, void *p, size_t len)
{
	uint8_t *to = p;

	while (len) {
		size_t n = chunk_span(s, at, len);
		const uint8_t *from = chunk_memory(s, at, n);

		if (from)
			memcpy(to, from, n);
		else
			memset(to, 0, n);
		at += n;
		to += n;
		len -= n;
	}
}

void stream_chunks_drop(struct stream *s, uint64_t from, uint64_t to, uint64_t end)
{
	uint64_t stop = to - offset_of(s, to);

	/* The last place is begun, but nothing is left in it */
	if (to == end && offset_of(s, to))
		stop += s->chunk;
	for (uint64_t at = from - offset_of(s, from); at < stop; at += s->chunk)
		chunk_free(s, at);
}
