/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message of Active RDMA from anybody. What is taken is written as the same octets again, and all
 * that it points to lies inside of it.
 */
#include <stdlib.h>
#include <string.h>

#include "active/wire.h"
#include "base/bits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 20 };

static void demand(bool good)
{
	if (!good)
		abort();
}

static void read_one(const uint8_t *octets, size_t len)
{
	static uint8_t again[ROOM];
	struct active_region_info region;
	struct active_message m;
	struct active_span rest;
	unsigned int count = 0;

	if (active_message_read(octets, len, &m))
		return;
	demand(active_message_write(&m, again, ROOM) == (int)len && !memcmp(octets, again, len));
	for (size_t i = 0; i < m.grants.len / 8; i++)
		active_grant_get(&m, i);
	for (rest = m.regions; active_region_next(&rest, &region); count++)
		;
	demand(count == m.region_count && !rest.len);
}

/* Once as it came, once with a head that fits */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	demand(copy);
	memcpy(copy, data, size);
	read_one(copy, size);
	if (size >= sizeof(struct active_wire_head) && size < ROOM) {
		copy[0] = ACTIVE_WIRE_MAGIC;
		copy[1] = ACTIVE_WIRE_VERSION;
		copy[3] = 0;
		base_put_be32(copy + 4, (uint32_t)size);
		read_one(copy, size);
	}
	free(copy);
	return 0;
}
