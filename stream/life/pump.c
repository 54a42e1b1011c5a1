/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A look at the transport, and what became due by it.
 */
#include "stream/life/life.h"

#include "base/point.h"
#include "base/recv_sleep.h"

void stream_tell(struct stream *s, uint64_t before)
{
	if (s->changed && stream_edges(s) != before)
		s->changed(s->ctx);
}

void stream_push_due(struct stream *s)
{
	if (!stream_is_open(s) || !stream_push_wanted(s))
		return;
	stream_tx_lock(s);
	stream_push(s);
	stream_tx_unlock(s);
}

/*
 * rx lock. Who comes to the connection meanwhile is a holder first, and looks then whether somebody
 * sleeps (stream_rx_sleeps()). Each writes before it reads, all SEQ_CST: one of them sees the other
 */
static bool may_sleep(struct stream *s)
{
	base_lock_sleep(&s->state->rx_lock, true);
	if (__atomic_load_n(&s->state->holders, __ATOMIC_SEQ_CST) <= 1)
		return true;
	base_lock_sleep(&s->state->rx_lock, false);
	return false;
}

/* A look at the transport, and what became due by it; @sleep as stream_drain() has it */
static void pump(struct stream *s, struct base_recv_sleep *sleep)
{
	struct stream_spare since = stream_spare_begin(s);

	if (stream_rx_sleeps(s))
		return;
	stream_rx_lock(s);
	if (sleep && !may_sleep(s))
		sleep = NULL;
	if (!stream_drain(s, NULL, sleep) && !stream_more(s))
		s->spare = since;
	if (sleep)
		base_lock_sleep(&s->state->rx_lock, false);
	stream_rx_unlock(s);
	stream_push_due(s);
}

void stream_pump(struct stream *s)
{
	if (stream_is_foreign(s))
		return;
	if (base_load(&s->looked_behind)) {
		base_store(&s->looked_behind, false);
		stream_push_due(s);
		return;
	}
	pump(s, NULL);
}

/*
 * Under the lock: the caller is the only thread of the only process that has the stream. To a
 * process that comes to it unannounced (pidfd_getfd(), a bare clone()) there is nothing to take in
 * as long as the sleep lasts
 */
bool stream_sleep(struct stream *s, struct base_recv_sleep *sleep)
{
	uint64_t before = stream_edges(s);

	sleep->slept = false;
	if (s->mem.native || !stream_is_open(s) || stream_is_foreign(s))
		return false;
	pump(s, sleep);
	stream_tell(s, before);
	return sleep->slept || stream_edges(s) != before;
}

/* Looks that the longest socket buffer with the shortest frames does not need */
#define LOOKS_MAX 256

void stream_pump_end(struct stream *s)
{
	int looks = LOOKS_MAX;

	do {
		stream_pump(s);
	} while (stream_more(s) && --looks);
}

bool stream_more(struct stream *s)
{
	return stream_has_more(s);
}
