/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_XDP_ROUTE_H
#define AM_XDP_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define AM_ROUTE_CACHE 256

/* Where frames to an address go, as the kernel says; asked again every second. */
struct am_route {
	uint32_t address; /* network order; 0: empty */
	bool direct;	  /* frames may be sent to mac on our interface */
	uint8_t mac[6];
	uint64_t expires;
};

struct am_routes {
	int netlink;
	int ifindex;
	struct am_route cache[AM_ROUTE_CACHE];
};

int am_routes_init(struct am_routes *r, int ifindex);
void am_routes_uninit(struct am_routes *r);

/*
 * The hardware address for a destination, or NULL when its packets are the kernel's to send: the
 * next hop is not known yet, it is this machine, or another interface leads there.
 */
const uint8_t *am_routes_find(struct am_routes *r, uint32_t address, uint64_t now);

#endif
