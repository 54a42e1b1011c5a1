/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_WINDOW_H
#define AM_WINDOW_H

#include <stdint.h>

struct amudp_ep;

/* Window bytes that a message of n bytes takes: the kernel's buffers count, not the data. */
static inline uint32_t am_window_cost(uint32_t n)
{
	return 1024 + 2 * n;
}

/* So many peers share the receive buffer; the limit of our own requests follows from it, too. */
void am_window_expect(struct amudp_ep *ep, int peers);
/* Anew when there is another driver than before. */
void am_window_share(struct amudp_ep *ep);

#endif
