/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_FAULT_H
#define AM_FAULT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct amudp_ep;

/* Faults done to arriving datagrams, for tests. Rates are of 2^32; the same seed does the same. */
struct am_fault {
	bool on;
	uint32_t drop;
	uint32_t duplicate;
	uint32_t reorder;
	uint32_t delay;
	uint32_t corrupt;
	uint64_t delay_ns;
	uint64_t state; /* of the generator */
	int held_count;
	struct base_list held; /* datagrams kept back, earliest first */
};

/* Reads the variables FAULT_*. The number tells the endpoints of a job from each other. */
void am_fault_init(struct am_fault *fault, uint32_t number);
void am_fault_uninit(struct am_fault *fault);

/* Passes the datagram on to am_rx_datagram(): now, later, twice, altered or not at all. */
void am_fault_receive(struct amudp_ep *ep, uint8_t *p, uint32_t n, const struct sockaddr_in *from,
		      uint64_t now);
/* Passes on what has been held back long enough. */
void am_fault_release(struct amudp_ep *ep, uint64_t now);
/* When the next one is due, or BASE_NEVER. */
uint64_t am_fault_deadline(const struct am_fault *fault);

#endif
