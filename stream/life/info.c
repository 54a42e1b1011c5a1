/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a stream says of itself.
 */
#include "stream/life/life.h"

#include <wire/iwarp_fault.h>

#include "stream/protocol/onesided.h"

/* The program's. Headers are counted last, so they are read first: never more than consumed */
static uint64_t octets_read(const struct stream_rx *rx)
{
	uint64_t headers = base_load(&rx->headers);

	return base_load(&rx->consumed) - headers;
}

void stream_stats(struct stream *s, struct stream_stats *stats)
{
	struct rnic_stream_info info = { 0 };
	uint64_t octets = 0;

	/* What was held for a peer without DDP goes another way */
	if (stream_is_open(s)) {
		/* First: of what is sent meanwhile nobody is to think that nothing of it waits */
		octets = base_load(&s->state->tx.octets);
		s->rnic->info(&s->mem, &info);
	}
	*stats = (struct stream_stats){
		.tx_octets = octets,
		.rx_octets = octets_read(&s->state->rx),
		.tx_fpdus = info.tx_fpdus,
		.rx_fpdus = info.rx_fpdus,
		.queued = info.queued,
		.opened = stream_is_open(s),
		.broken = base_load(&s->state->broken),
		.failed = base_load(&s->failed),
		.device = s->mem.native,
		.probe_error = base_load(&s->probe_error),
		.last = base_load(&s->last),
	};
}

static bool both_over(uint32_t ends)
{
	return ends & STREAM_IN_ENDED && ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR);
}

void stream_info(struct stream *s, struct stream_info *out)
{
	const struct stream_state *st = s->state;
	struct rnic_stream_info info = { 0 };
	bool open = stream_is_open(s);

	if (base_load(&st->stage) >= STREAM_OPEN)
		s->rnic->info(&s->mem, &info);
	*out = (struct stream_info){
		.provider = s->provider,
		.features = base_load(&st->features),
		.fault = info.fault,
		.fault_by_peer = info.fault_by_peer,
		.ring = s->ring,
		.mulpdu = info.mulpdu,
		.ird = stream_has(s, STREAM_FEATURE_ONESIDED) ? STREAM_ONESIDED_DEPTH : 0,
		.ord = open ? st->peer.ird : 0,
		.mpa_rev = info.mpa_rev,
		.open = open,
		.broken = base_load(&st->broken),
		.start_error = base_load(&s->start_error),
		.reached = base_load(&s->failed),
		.foreign = stream_is_foreign(s),
		.over = both_over(base_load(&st->ends)),
		.cut = base_load(&st->broken) == STREAM_CUT || info.fault == MPA_E_CLOSED,
		.aborted = base_load(&st->aborted),
		.crc = info.crc,
		.tx_markers = info.tx_markers,
		.rx_markers = info.rx_markers,
		.tx_octets = base_load(&st->tx.octets),
		.rx_octets = octets_read(&st->rx),
		.tx_fpdus = info.tx_fpdus,
		.rx_fpdus = info.rx_fpdus,
		.messages_sent = base_load(&st->tx.messages),
		.messages_received = base_load(&st->rx.messages),
		.jobs = stream_jobs_count(s),
	};
}
