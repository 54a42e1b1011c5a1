/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client that writes rubbish into a structure that it shares with others: numbers of all kinds,
 * and addresses of the region itself, which lead in circles.
 *
 *   active_rubbish PORT REGION SEED
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <warp/active.h>

enum { WORDS = 512, PAGES = 300, NEAR = 1 << 18 };

static unsigned int seed;

static uint64_t dice(uint64_t most)
{
	uint64_t value = (uint64_t)rand_r(&seed) << 32 | (uint64_t)rand_r(&seed) << 8;

	return (value ^ (uint64_t)rand_r(&seed)) % most;
}

static uint64_t word(const struct warp_active_region_info *region)
{
	switch (dice(6)) {
	case 0:
		return dice(40);
	case 1:
		return dice(1ull << 63) * 2;
	case 2:
		return dice(region->size);
	case 3:
		return ~dice(1000);
	default: /* an address; most structures have their nodes at multiples of 16 or 64 */
		return region->addr + dice(region->size < NEAR ? region->size : NEAR) / 64 * 64;
	}
}

static bool page_write(struct warp_active_client *c, const struct warp_active_region_info *region)
{
	uint64_t words[WORDS], most = region->size > NEAR && dice(4) ? NEAR : region->size;
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_WRITE,
					 .region = region->number,
					 .buffer = words };
	struct warp_active_request *r;

	op.offset = dice(most) / 8 * 8;
	op.len = (dice(WORDS) + 1) * 8;
	if (op.len > region->size - op.offset)
		op.len = region->size - op.offset;
	op.len = op.len / 8 * 8;
	for (size_t i = 0; i < op.len / 8; i++)
		words[i] = word(region);
	return !op.len || (!warp_active_access(c, &op, &r) && !warp_active_wait(r, -1, NULL));
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_active_region_info region;
	struct warp_active_client *c;
	bool good = true;

	if (argc != 4)
		return 2;
	at.sin_port = htons((uint16_t)atoi(argv[1]));
	seed = (unsigned int)atoi(argv[3]);
	if (warp_active_connect((struct sockaddr *)&at, sizeof(at), NULL, &c) ||
	    warp_active_region_find(c, argv[2], &region)) {
		fprintf(stderr, "no region %s at port %s\n", argv[2], argv[1]);
		return 3;
	}
	for (int i = 0; i < PAGES && good; i++)
		good = page_write(c, &region);
	warp_active_disconnect(c);
	return good ? 0 : 3;
}
