/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A buffer is its caller's from the moment at which it is taken out of its place, so no lock is
 * needed, and a fork at any time costs a child one buffer at most.
 */
#include "base/bounce.h"

#include <stdbool.h>

#include "base/map.h"

#define KEPT 4

static char *kept[KEPT]; /* atomic; NULL: a free place */

char *base_bounce_get(void)
{
	void *buf = NULL;

	for (int i = 0; i < KEPT && !buf; i++)
		buf = __atomic_exchange_n(&kept[i], NULL, __ATOMIC_ACQUIRE);
	if (!buf && base_map_create(BASE_BOUNCE_SIZE, &buf))
		return NULL;
	return buf;
}

void base_bounce_put(char *buf)
{
	bool stays = false;

	for (int i = 0; buf && i < KEPT && !stays; i++) {
		char *none = NULL;

		stays = __atomic_compare_exchange_n(&kept[i], &none, buf, false, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED);
	}
	if (!stays)
		base_map_destroy(buf, BASE_BOUNCE_SIZE);
}
