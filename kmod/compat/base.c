/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the protocol layers take from base/, by the kernel's means: CRC32c and random numbers.
 *
 * The kernel's crc32c() passes the raw register on, as base/crc32c.h promises.
 */
#include <linux/crc32c.h>
#include <linux/random.h>

#include "base/crc32c.h"
#include "base/rand.h"

uint32_t base_crc32c(uint32_t crc, const void *p, size_t n)
{
	return crc32c(crc, p, n);
}

uint32_t base_crc32c_iov(uint32_t crc, const struct iovec *iov, size_t count)
{
	for (size_t i = 0; i < count; i++)
		crc = base_crc32c(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}

int base_rand_u32(uint32_t *out)
{
	*out = get_random_u32();
	return 0;
}
