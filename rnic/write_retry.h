/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first words to a peer that may overlook them: what all that sends them has in common.
 *
 * Linux' siw as responder does not look at what arrives while it sends its Reply, until another
 * segment comes. So an initiator that has sent something, and has heard nothing 20 ms later, sends
 * a Write of no bytes; again after twice as long, for that one may have come as early, and so on, a
 * few times; and once more when it hears something, for siw may have spoken before it looked, and
 * looks from then on. Clocks and timers differ: soft/soft_stage.c and verbs/verbs_cm.c for queue
 * pairs, stream/life/write_retry.c and verbs/verbs_stream_write_retry.c for streams.
 */
#ifndef RNIC_WRITE_RETRY_H
#define RNIC_WRITE_RETRY_H

#include "base/bits.h"
#include "base/clock.h"

#define RNIC_WRITE_RETRIES 6

/* How long to wait for the peer when @sent such Writes have gone */
static inline uint64_t rnic_write_retry_ns(uint32_t sent)
{
	return (20 * BASE_NS_PER_MS) << base_min(sent, (uint32_t)RNIC_WRITE_RETRIES);
}

/* Where such a Write goes: to @stag of the peer's, if one is known. 0 would be a Send */
static inline uint32_t rnic_write_retry_stag(uint32_t stag)
{
	return stag ? stag : 1;
}

#endif
