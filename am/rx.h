/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_RX_H
#define AM_RX_H

#include "am/endpoint.h"

/* Takes in one packet, whoever sent it. */
void am_rx_datagram(struct amudp_ep *ep, const uint8_t *p, uint32_t n,
		    const struct sockaddr_in *from);

#endif
