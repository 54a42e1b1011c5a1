/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_XDP_FRAME_H
#define AM_XDP_FRAME_H

#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>

#include "am/nic.h"

/* What stands before a datagram's bytes in an Ethernet frame. */
struct am_xdp_header {
	struct ethhdr ether;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

/* All that is the same in every frame that the endpoint of this name sends. */
void am_xdp_header_init(struct am_xdp_header *h, const struct sockaddr_in *name);
/* Writes the frame with its checksums; returns its bytes. */
uint32_t am_xdp_frame_put(uint8_t *p, const struct am_xdp_header *h, const uint8_t *mac,
			  uint16_t id, const struct am_datagram *d);
/* False when the frame is not a whole UDP datagram whose lengths agree. */
bool am_xdp_frame_parse(uint8_t *p, uint32_t n, struct am_arrival *out);

#endif
