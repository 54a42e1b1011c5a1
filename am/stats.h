/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_STATS_H
#define AM_STATS_H

#include "include/warp/amudp.h"

/* Of all categories of messages. */
static inline uint64_t am_stats_total(const uint64_t *by_category)
{
	return by_category[amudp_Short] + by_category[amudp_Medium] + by_category[amudp_Long];
}

#endif
