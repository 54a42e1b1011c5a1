/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_XDP_PROGRAM_H
#define AM_XDP_PROGRAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* The redirect program of an endpoint, attached to its interface. */
struct am_xdp_program {
	int map; /* queue 0 -> the socket */
	int program;
	int link; /* closing it detaches, as the end of the process does */
	bool native;
};

#define AM_XDP_TOS_BULK 0x08 /* of IP's type of service: the kernel's to receive */

void am_xdp_program_clear(struct am_xdp_program *p);
/* What the program is made for. */
struct am_xdp_target {
	int ifindex;
	const struct sockaddr_in *name; /* packets for exactly this address and port */
	uint32_t frame_max;		/* longer ones are the kernel's */
	int socket;
	bool generic; /* the hook to take first */
};

/* -EBUSY when another program has the interface. */
int am_xdp_program_init(struct am_xdp_program *p, const struct am_xdp_target *target);
void am_xdp_program_uninit(struct am_xdp_program *p);

#endif
