/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_LIVE_H
#define AM_LIVE_H

#include <stdint.h>

#include "include/warp/amudp.h"

struct amudp_ep;

#define AM_LIVE_MAGIC 0x414D4C33u /* "AML3" */

/*
 * What a running endpoint shows: a file of this layout, am-PID-PORT in the directory of
 * am_live_directory(). serial is odd while it is written.
 */
struct am_live {
	uint32_t magic;
	uint32_t serial;
	uint32_t pid;
	uint32_t rank;	  /* UINT32_MAX: none */
	uint32_t address; /* network order */
	uint16_t port;	  /* network order */
	uint16_t depth;
	uint32_t outstanding;
	uint32_t peers;
	uint64_t time; /* of the update, ns of CLOCK_MONOTONIC */
	amudp_stats_t stats;
	amudp_xstats_t xstats;
};

extern uint32_t am_live_rank; /* of this process in its job */

/* XDG_RUNTIME_DIR/warpsock if it is ours, or /tmp/warpsock-UID; empty when it cannot be had. */
const char *am_live_directory(void);
void am_live_publish(struct amudp_ep *ep);
void am_live_unpublish(struct amudp_ep *ep);
/* At the end of the process, when another thread may still be writing. */
void am_live_unlink(const struct amudp_ep *ep);
void am_live_update(struct amudp_ep *ep, uint64_t now);

#endif
