/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_RESULT_H
#define BASE_RESULT_H

#include <errno.h>

/* What a raw system call has given, or -errno; errno is again what it was before. */
static inline long base_result(long r, int saved)
{
	long err = r < 0 ? -errno : r;

	errno = saved;
	return err;
}

#endif
