/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first words to a peer that may overlook them (rnic/write_retry.h): the initiator of a stream
 * counts from when it came up. Warpsock, which says so by the features that it shares, overlooks
 * nothing; a device sends its own (verbs/).
 *
 * The time stands where that of the Reply stood, so whoever sleeps for the stream looks again then,
 * and the worker thread, where the program sleeps elsewhere.
 */
#include "stream/life/life.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "rnic/write_retry.h"

bool stream_write_retry_waits(const struct stream *s)
{
	return stream_is_open(s) && base_load(&s->state->start_deadline) != BASE_NEVER;
}

static void wait_more(struct stream *s)
{
	uint64_t length = rnic_write_retry_ns(base_load(&s->state->tx.write_retries));

	base_store(&s->state->start_deadline, base_deadline(base_now(), length));
}

void stream_write_retry_begin(struct stream *s)
{
	if (!s->initiator || s->mem.native || base_load(&s->state->features))
		return;
	wait_more(s);
	stream_start_join(s);
}

/* To where the peer's entries stand: there are devices that look an STag up for no byte */
static struct rnic_stream_wr nothing(const struct stream_peer *peer)
{
	return (struct rnic_stream_wr){ .stag = rnic_write_retry_stag(peer->sgl_stag),
					.to = peer->sgl_to };
}

/*
 * tx lock. What the kernel has no room for is not needed: more than enough is under way. The last
 * one is for a peer that was heard: it may have spoken before it looked, and looks from then on
 */
static void write_retry(struct stream *s, bool last)
{
	const struct rnic_stream_wr wr = nothing(&s->state->peer);
	bool due = last || base_deadline_passed(base_load(&s->state->start_deadline), base_now());

	if (!stream_write_retry_waits(s) || !due)
		return;
	base_debug("stream: may a peer have overlooked something? A Write of no octets");
	stream_wr_post(s, &wr, 1);
	base_store(&s->state->tx.write_retries, s->state->tx.write_retries + 1);
	if (last)
		stream_undecided_end(s);
	else
		wait_more(s);
}

void stream_write_retry_look(struct stream *s)
{
	struct rnic_stream_info info;

	if (!stream_write_retry_waits(s))
		return;
	s->rnic->info(&s->mem, &info);
	if (stream_out_ended(s) || base_load(&s->state->tx.write_retries) >= RNIC_WRITE_RETRIES) {
		stream_undecided_end(s);
		return;
	}
	if (!info.rx_fpdus &&
	    !base_deadline_passed(base_load(&s->state->start_deadline), base_now()))
		return;
	stream_tx_lock(s);
	write_retry(s, info.rx_fpdus);
	stream_tx_unlock(s);
}
