/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_XDP_PROGRAM_H
#define AM_XDP_PROGRAM_H

#include <netinet/in.h>
#include <stdbool.h>

/* The redirect program of an endpoint, attached to its interface. */
struct am_xdp_program {
	int map; /* queue 0 -> the socket */
	int program;
	int link; /* closing it detaches, as the end of the process does */
	bool native;
};

void am_xdp_program_clear(struct am_xdp_program *p);
/* -EBUSY when another program has the interface. */
int am_xdp_program_init(struct am_xdp_program *p, int ifindex, const struct sockaddr_in *name,
			int socket, bool generic);
void am_xdp_program_uninit(struct am_xdp_program *p);

#endif
