/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32c by ISA-L, which picks the fastest code for the CPU at run time.
 *
 * ISA-L's crc32_iscsi neither inverts at the start nor at the end, which is the raw register
 * that the header promises; it counts in int, so longer input is fed in pieces.
 */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#define CRC_PIECE_MAX ((size_t)1 << 30)

uint32_t base_crc32c(uint32_t crc, const void *p, size_t n)
{
	/* ISA-L takes a pointer to non-const, and only reads. */
	unsigned char *at = (unsigned char *)(uintptr_t)p;

	for (; n > CRC_PIECE_MAX; n -= CRC_PIECE_MAX, at += CRC_PIECE_MAX)
		crc = crc32_iscsi(at, CRC_PIECE_MAX, crc);
	return n ? crc32_iscsi(at, (int)n, crc) : crc;
}

uint32_t base_crc32c_iov(uint32_t crc, const struct iovec *iov, size_t count)
{
	for (size_t i = 0; i < count; i++)
		crc = base_crc32c(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}
