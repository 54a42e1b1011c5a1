/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random octets by the raw getrandom system call.
 *
 * The raw call, because libc's wrapper is a cancellation point and this runs in critical
 * sections. A call of more than 256 octets may be cut short by a signal, so it loops.
 */
#include "base/rand.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int base_rand_fill(void *p, size_t n)
{
	unsigned char *at = p;

	while (n) {
		long got = syscall(SYS_getrandom, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

int base_rand_u32(uint32_t *out)
{
	return base_rand_fill(out, sizeof(*out));
}

int base_rand_u64(uint64_t *out)
{
	return base_rand_fill(out, sizeof(*out));
}
