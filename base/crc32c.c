/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CRC32c by ISA-L, which picks the fastest code for the CPU at run time.
 *
 * ISA-L's crc32_iscsi neither inverts at the start nor at the end, which is the raw register
 * that the header promises; it counts in int, so longer input is fed in pieces. Its vector code
 * pays from 256 octets on; the CPU's own instruction takes a header in half the time.
 */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

#define CRC_PIECE_MAX ((size_t)1 << 30)
#define CRC_SHORT_MAX 256

#if defined(__x86_64__)

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t crc_short(uint32_t crc, const uint8_t *p,
							    size_t n)
{
	uint64_t word, wide = crc;
	uint32_t half;
	uint16_t pair;

	for (; n >= sizeof(word); p += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	if (n & sizeof(half)) {
		memcpy(&half, p, sizeof(half));
		crc = __builtin_ia32_crc32si(crc, half);
		p += sizeof(half);
	}
	if (n & sizeof(pair)) {
		memcpy(&pair, p, sizeof(pair));
		crc = __builtin_ia32_crc32hi(crc, pair);
		p += sizeof(pair);
	}
	return n & 1 ? __builtin_ia32_crc32qi(crc, *p) : crc;
}

#else

static bool has_instruction(void)
{
	return false;
}

static uint32_t crc_short(uint32_t crc, const uint8_t *p, size_t n)
{
	return crc;
}

#endif

uint32_t base_crc32c(uint32_t crc, const void *p, size_t n)
{
	/* ISA-L takes a pointer to non-const, and only reads. */
	unsigned char *at = (unsigned char *)(uintptr_t)p;

	if (n < CRC_SHORT_MAX && has_instruction())
		return crc_short(crc, at, n);
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
