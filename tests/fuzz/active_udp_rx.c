/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A request of the protocol of 2010 from anybody: what it points to lies inside of it.
 */
#include <stdlib.h>
#include <string.h>

#include "active/udp_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct active_udp_request r;
	uint8_t *copy = malloc(size + 1), sum = 0;

	demand(copy);
	memcpy(copy, data, size);
	if (!active_udp_read(copy, size, &r)) {
		demand(r.op <= ACTIVE_UDP_WRITE_BYTES);
		for (size_t i = 0; i < r.octets.len; i++)
			sum |= r.octets.at[i];
		for (size_t i = 0; r.hash && i < BASE_MD5_SIZE; i++)
			sum |= r.hash[i];
		demand(!r.octets.len || r.octets.len == r.count || r.octets.len == r.count * 4ull);
		demand((r.op == ACTIVE_UDP_RUN) == !!r.hash);
	}
	demand(sum || size < SIZE_MAX);
	free(copy);
	return 0;
}
