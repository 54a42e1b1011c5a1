/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_PROGRESS_H
#define AM_PROGRESS_H

#include "am/endpoint.h"

/* What AM_Poll does for one endpoint, with the bundle locked. Returns messages taken in. */
int am_endpoint_poll(struct amudp_ep *ep);
/* Earliest time that needs a poll without any arrival, or BASE_NEVER. */
uint64_t am_endpoint_deadline(struct amudp_ep *ep);

#endif
