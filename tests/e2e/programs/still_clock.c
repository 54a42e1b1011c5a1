/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library for LD_PRELOAD for which it is always the same time.
 */
#include <time.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
	*now = (struct timespec){ .tv_sec = 1000000000 };
	return 0;
}
