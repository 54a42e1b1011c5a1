/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * CRC32c (Castagnoli, reflected), as RFC 5044 section 4.4 and RFC 3720 use it. The functions pass
 * the raw register on, so that one CRC may run over any number of pieces:
 *
 *	crc = base_crc32c(BASE_CRC32C_INIT, header, header_len);
 *	crc = base_crc32c(crc, payload, payload_len);
 *	value = base_crc32c_final(crc);
 *
 * value is a host integer. On an iWARP wire its least significant octet goes first: store it
 * with base_put_le32().
 */
#define BASE_CRC32C_INIT 0xFFFFFFFFu

uint32_t base_crc32c(uint32_t crc, const void *p, size_t n);
uint32_t base_crc32c_iov(uint32_t crc, const struct iovec *iov, size_t count);

static inline uint32_t base_crc32c_final(uint32_t crc)
{
	return ~crc;
}

#endif
