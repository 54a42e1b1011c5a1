/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of AF_XDP for benchmarks. The program that sends frames to one is the benchmark's own.
 */
#include "xsk.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUSY_TRIES = 100, BUSY_US = 10000 };

int xsk_open(struct xsk *x, const char *interface, uint32_t frames, uint32_t ring, uint16_t flags)
{
	const struct xsk_umem_config memory = { .fill_size = ring,
						.comp_size = ring,
						.frame_size = XSK_FRAME };
	const struct xsk_socket_config config = { .rx_size = ring,
						  .tx_size = ring,
						  .libxdp_flags =
							  XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
						  .bind_flags = flags };
	size_t size = (size_t)frames * XSK_FRAME;
	int ret;

	x->frames = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (x->frames == MAP_FAILED)
		return -ENOMEM;
	ret = xsk_umem__create(&x->umem, x->frames, size, &x->fill, &x->done, &memory);
	if (ret)
		return ret;
	/* A socket that was just closed lets go of the queue a little later */
	for (int i = 0; i < BUSY_TRIES; i++) {
		ret = xsk_socket__create(&x->socket, interface, 0, x->umem, &x->rx, &x->tx,
					 &config);
		if (ret != -EBUSY)
			break;
		usleep(BUSY_US);
	}
	return ret;
}

int xsk_give(struct xsk *x, uint64_t addr)
{
	uint32_t at = 0;

	if (xsk_ring_prod__reserve(&x->fill, 1, &at) != 1)
		return -EBUSY;
	*xsk_ring_prod__fill_addr(&x->fill, at) = addr & ~(uint64_t)(XSK_FRAME - 1);
	xsk_ring_prod__submit(&x->fill, 1);
	return 0;
}
