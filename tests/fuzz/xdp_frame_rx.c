/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw frames off the wire: the datagram that one is taken for is inside of it, and what we put
 * into a frame for the same datagram is taken the same way.
 */
#include <stdlib.h>
#include <string.h>

#include "am/xdp_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = sizeof(struct am_xdp_header) };

static void require(int good)
{
	if (!good)
		abort();
}

static void again(const struct am_arrival *a)
{
	static const uint8_t mac[ETH_ALEN] = { 2 };
	struct am_datagram d = { .count = 1, .iov = { { a->data, a->length } } };
	uint8_t *frame = malloc(HEADER + a->length);
	struct am_xdp_header header = { 0 };
	struct am_arrival got;

	am_xdp_header_init(&header, &a->from);
	require(am_xdp_frame_put(frame, &header, mac, 1, &d) == HEADER + a->length);
	require(am_xdp_frame_parse(frame, HEADER + a->length, &got));
	require(got.length == a->length && !memcmp(got.data, a->data, a->length));
	require(!memcmp(&got.from, &a->from, sizeof(got.from)));
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *frame = malloc(size ? size : 1);
	struct am_arrival a;

	memcpy(frame, data, size);
	if (am_xdp_frame_parse(frame, (uint32_t)size, &a)) {
		require(a.data == frame + HEADER && a.length <= size - HEADER);
		again(&a);
	}
	free(frame);
	return 0;
}
