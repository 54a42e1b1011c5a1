/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BENCH_XSK_H
#define BENCH_XSK_H

/* A socket of AF_XDP with its memory, for benchmarks: frames of XSK_FRAME bytes, copied. */

#include <stdint.h>
#include <xdp/xsk.h>

enum { XSK_FRAME = 4096 };

struct xsk {
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons done, rx;
	uint8_t *frames;
};

/*
 * At queue 0 of the interface, with rings of @ring; no frame is in them. XDP_COPY and others are
 * @flags. A negative errno: it cannot be
 */
int xsk_open(struct xsk *x, const char *interface, uint32_t frames, uint32_t ring, uint16_t flags);
/* A frame for what arrives, by any address in it. -EBUSY: the ring is full */
int xsk_give(struct xsk *x, uint64_t addr);

#endif
