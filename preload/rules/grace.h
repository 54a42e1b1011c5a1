/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_GRACE_H
#define PRELOAD_GRACE_H

#include <stdint.h>

#include "base/bits.h"
#include "base/clock.h"

/*
 * How long a server that speaks first waits for a Request where no option says it: so long or so
 * many round trips, whichever is more, up to a limit: the peer's kernel measures the round trip
 */
#define GRACE_LIMIT (5 * BASE_NS_PER_MS)
#define GRACE_RTTS 2
#define GRACE_MAX (50 * BASE_NS_PER_MS)

static inline uint64_t grace_by(uint64_t rtt)
{
	return base_min(base_max(GRACE_LIMIT, GRACE_RTTS * rtt), GRACE_MAX);
}

#endif
