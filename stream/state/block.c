/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory for bytes, taken under a lock, for receiving with the rx lock and for sending when bytes
 * are left over, and given back with the lock when nothing is in it: then a connection that rests
 * has its state and no more. So many blocks as connections lie in a slab, and
 * which are free is a word there, for each process that has one of these connections. The lowest is
 * taken first, so that the same few pages serve connections that take turns.
 *
 * The first blocks of a slab keep their memory, since they are used all the time, but for what many
 * bytes at once have taken: that is given back from time to time. So do the others, while the
 * process has little memory of this kind: to give back and to take anew costs a server with some
 * fifty busy connections more than all else that it does for a message.
 *
 * A process that dies between the two words leaves a block that nobody has. What stands in either
 * may be rubbish: then two connections may write over each other's bytes, and nothing else.
 */
#include "stream/state/memory.h"

#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/point.h"
#include "base/process.h"
#include "base/runfile.h"
#include "stream/place.h"

/* Blocks of a slab that keep their memory */
#define STAYING 4u
#define CHUNKS_STAYING 4u
/* Bytes of chunks that blocks of a process may keep, beyond the first ones */
#define KEPT_MAX (8ul << 20)
#define TRIM_PAUSE (100 * BASE_NS_PER_MS)

static struct stream_block *block_at(const struct stream_slab *slab, uint32_t i)
{
	return (struct stream_block *)(void *)(slab->blocks + i * stream_file_block(slab->chunk));
}

/* --- taking --- */

/* The lowest that is free; STREAM_CELLS: none is */
static uint32_t free_take(const struct stream_slab *slab, uint64_t *free)
{
	uint64_t was = __atomic_load_n(free, __ATOMIC_RELAXED),
		 valid = stream_cells_mask(slab->cells);

	do {
		if (!(was & valid))
			return STREAM_CELLS;
	} while (!__atomic_compare_exchange_n(free, &was, was & ~(was & valid & -(was & valid)),
					      false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return (uint32_t)__builtin_ctzll(was & valid);
}

static size_t kept; /* atomic: bytes of chunks of all slabs that have memory for certain */

/*
 * Atomic, for it goes with the block, and a thread may have that from another one by way of another
 * process
 */
void stream_block_reserved(struct stream_slab *slab, uint32_t i, unsigned int chunk, uint32_t len)
{
	uint32_t was = base_load(&slab->reserved[i][chunk]);

	if (was == len)
		return;
	base_store(&slab->reserved[i][chunk], len);
	if (chunk >= CHUNKS_STAYING)
		base_store(&slab->many[i], slab->many[i] + len - was);
	__atomic_add_fetch(&slab->kept, (size_t)len - was, __ATOMIC_RELAXED);
	__atomic_add_fetch(&kept, (size_t)len - was, __ATOMIC_RELAXED);
}

static void reserved_clear(struct stream_slab *slab, uint32_t i, unsigned int from)
{
	for (unsigned int k = from; k < STREAM_CHUNKS; k++)
		stream_block_reserved(slab, i, k, 0);
}

/* Memory that another process has given back */
static void reserved_forget(struct stream_slab *slab, uint32_t i)
{
	uint32_t lost = base_load(&slab->at->lost[i]);

	if (lost == base_load(&slab->lost[i]))
		return;
	base_store(&slab->lost[i], lost);
	reserved_clear(slab, i, 0);
}

void stream_blocks_forget(struct stream_slab *slab)
{
	__atomic_sub_fetch(&kept, slab->kept, __ATOMIC_RELAXED);
	slab->kept = 0;
}

static void touch(struct stream_slab *slab, uint32_t i)
{
	if (!(base_once(slab->touched) & 1ull << i))
		__atomic_fetch_or(&slab->touched, 1ull << i, __ATOMIC_RELAXED);
}

/* The block that @at tells, or a free one; where none is, that of the cell's number, as it is */
static uint32_t block_take(struct stream *s, uint8_t *at, uint64_t *free)
{
	uint32_t have = base_once(*at), i;

	if (have && have <= s->slab->cells)
		return have - 1;
	i = have ? STREAM_CELLS : free_take(s->slab, free);
	if (i == STREAM_CELLS) {
		stream_spoilt(s, STREAM_DAMAGED);
		return s->cell;
	}
	touch(s->slab, i);
	BASE_POINT(stream_block_taken);
	__atomic_store_n(at, (uint8_t)(i + 1), __ATOMIC_RELAXED);
	return i;
}

void stream_rx_take(struct stream *s)
{
	struct stream_slab_file *slab = s->slab->at;
	uint32_t i = block_take(s, &slab->rx_block[s->cell], &slab->rx_free);
	struct stream_block *block = block_at(s->slab, i);

	reserved_forget(s->slab, i);
	s->rx = i;
	s->chunks = block->chunk;
	__atomic_store_n(&s->mem.in, block->in, __ATOMIC_RELAXED);
}

void stream_tx_need(struct stream *s)
{
	struct stream_slab_file *slab = s->slab->at;
	struct stream_block *block;

	if (s->hold)
		return;
	block = block_at(s->slab, block_take(s, &slab->tx_block[s->cell], &slab->tx_free));
	s->hold = block->hold;
	__atomic_store_n(&s->mem.rest, block->rest, __ATOMIC_RELAXED);
}

void *stream_tx_rest_take(const struct rnic_stream_mem *mem)
{
	struct stream *s = base_container_of((struct rnic_stream_mem *)mem, struct stream, mem);

	stream_tx_need(s);
	return s->mem.rest;
}

/* Nearly no write leaves anything behind, and so it needs no memory for that */
void stream_tx_take(struct stream *s)
{
	s->hold = NULL;
	__atomic_store_n(&s->mem.rest, NULL, __ATOMIC_RELAXED);
	if (base_once(s->slab->at->tx_block[s->cell]))
		stream_tx_need(s);
}

const uint8_t *stream_hold(const struct stream *s)
{
	uint32_t at = base_load(&s->slab->at->tx_block[s->cell]);

	return block_at(s->slab, at && at <= s->slab->cells ? at - 1 : s->cell)->hold;
}

int stream_reserve(struct stream *s, void *p, size_t len)
{
	return s->mem.reserve ? s->mem.reserve(&s->mem, p, len) : 0;
}

/* --- giving back --- */

/* A process that may make few system calls only keeps what it has */
static void memory_release(void *p, size_t len)
{
	if (!base_process_confined())
		base_runfile_release(p, len);
}

/* Were many bytes in it? */
static bool is_big(const struct stream_slab *slab, uint32_t i)
{
	return base_load(&slab->many[i]);
}

/* Who always has many bytes there is not to ask for the same memory all the time */
static bool is_time(struct stream_slab *slab, uint32_t i)
{
	uint64_t now = base_now();

	if (now - slab->trimmed[i] < TRIM_PAUSE)
		return false;
	slab->trimmed[i] = now;
	return true;
}

/* Others are told first: they ask for memory that is there, rather than use memory that is not */
static void chunks_release(struct stream_slab *slab, uint32_t i, unsigned int from)
{
	base_store(&slab->lost[i], __atomic_add_fetch(&slab->at->lost[i], 1, __ATOMIC_RELAXED));
	memory_release(block_at(slab, i)->chunk + from * (size_t)slab->chunk,
		       (STREAM_CHUNKS - from) * (size_t)slab->chunk);
	reserved_clear(slab, i, from);
}

static bool may_stay(void)
{
	return __atomic_load_n(&kept, __ATOMIC_RELAXED) <= KEPT_MAX && !stream_place_is_scarce();
}

static void rx_trim(struct stream_slab *slab, uint32_t i)
{
	struct stream_block *block = block_at(slab, i);

	if (i >= STAYING && !may_stay()) {
		memory_release(block->in, sizeof(block->in));
		chunks_release(slab, i, 0);
	} else if (is_big(slab, i) && is_time(slab, i)) {
		chunks_release(slab, i, CHUNKS_STAYING);
	}
}

/* Nobody has a block: the first one keeps its few pages, the others take no memory */
void stream_blocks_trim(struct stream_slab *slab)
{
	if (is_big(slab, 0))
		chunks_release(slab, 0, CHUNKS_STAYING);
	for (uint32_t i = 1; i < slab->cells; i++)
		if (base_once(slab->touched) & 1ull << i) {
			memory_release(block_at(slab, i), stream_file_block(slab->chunk));
			reserved_clear(slab, i, 0);
		}
	slab->touched = 0;
	__atomic_store_n(&slab->at->sent_from, 0, __ATOMIC_RELAXED);
}

static void free_give(uint64_t *free, uint32_t i)
{
	__atomic_fetch_or(free, 1ull << i, __ATOMIC_RELEASE);
}

static void rx_give(struct stream *s)
{
	uint32_t at = base_once(s->slab->at->rx_block[s->cell]);

	if (!at || at > s->slab->cells)
		return;
	rx_trim(s->slab, at - 1);
	__atomic_store_n(&s->slab->at->rx_block[s->cell], 0, __ATOMIC_RELAXED);
	free_give(&s->slab->at->rx_free, at - 1);
}

void stream_block_note(const struct stream *s, const void *p)
{
	uint32_t at = base_once(s->slab->at->tx_block[s->cell]);
	const struct stream_block *block;

	if (!at || at > s->slab->cells)
		return;
	block = block_at(s->slab, at - 1);
	if ((const uint8_t *)p >= block->rest && (const uint8_t *)p < block->chunk)
		__atomic_fetch_or(&s->slab->at->sent_from, 1ull << (at - 1), __ATOMIC_RELAXED);
}

/*
 * Most connections never have bytes that wait to be sent. A process whose memory is no file asks
 * for none, so it sets no bit
 */
static bool may_have_memory(const struct stream *s, uint32_t i)
{
	uint64_t bit = 1ull << i;

	return !s->mem.reserve ||
	       __atomic_fetch_and(&s->slab->at->sent_from, ~bit, __ATOMIC_RELAXED) & bit;
}

static void tx_give(struct stream *s)
{
	uint32_t at = base_once(s->slab->at->tx_block[s->cell]);
	struct stream_block *block;

	if (!at || at > s->slab->cells)
		return;
	block = block_at(s->slab, at - 1);
	if (at > STAYING && may_have_memory(s, at - 1))
		memory_release(block->rest, sizeof(block->rest) + sizeof(block->hold));
	__atomic_store_n(&s->slab->at->tx_block[s->cell], 0, __ATOMIC_RELEASE);
	free_give(&s->slab->at->tx_free, at - 1);
}

/* A device has no use for such memory */
static bool uses(const struct stream *s, bool tx)
{
	return s->rnic->uses && s->rnic->uses(&s->mem, tx);
}

void stream_chunks_init(struct stream_rx *rx)
{
	memset(rx->chunk_of, STREAM_NO_CHUNK, sizeof(rx->chunk_of));
	for (unsigned int i = 0; i < STREAM_CHUNKS; i++)
		rx->free_chunk[i] = (uint8_t)(STREAM_CHUNKS - 1 - i);
	rx->chunks_free = STREAM_CHUNKS;
}

/* Bytes of it are missing, so it is no use to keep the others: what it has is of use elsewhere */
static void rx_drop(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;

	rx->placed = rx->consumed;
	base_store(&rx->delivered, rx->placed);
	base_store(&rx->message_first, STREAM_NO_MESSAGE);
	rx->span_first = rx->span_end = 0;
	stream_chunks_init(rx);
	rx_give(s);
}

/* Start-up keeps what it has to its end */
void stream_rx_rest(struct stream *s)
{
	if (s->starved) {
		rx_drop(s);
		return;
	}
	if (!stream_is_open(s) || base_once(s->state->rx.chunks_free) != STREAM_CHUNKS ||
	    stream_spans_wait(s) || uses(s, false))
		return;
	/* The first chunk is the first one used again, as it is anyway where no other was used */
	if (s->state->rx.free_chunk[STREAM_CHUNKS - 1])
		stream_chunks_init(&s->state->rx);
	rx_give(s);
}

void stream_tx_rest(struct stream *s)
{
	const struct stream_tx *tx = &s->state->tx;

	if (s->hold && stream_is_open(s) && !base_once(tx->hold_end) &&
	    !base_once(tx->message_end) && !uses(s, true))
		tx_give(s);
}

void stream_blocks_end(struct stream *s)
{
	rx_give(s);
	tx_give(s);
}
