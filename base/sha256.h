/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

/* SHA-256 (FIPS 180-4) */

#include <stddef.h>
#include <stdint.h>

enum { BASE_SHA256_SIZE = 32, BASE_SHA256_BLOCK = 64 };

struct base_sha256 {
	uint32_t state[8];
	uint64_t len; /* bytes so far */
	uint8_t block[BASE_SHA256_BLOCK];
};

void base_sha256_init(struct base_sha256 *s);
void base_sha256_add(struct base_sha256 *s, const void *bytes, size_t len);
void base_sha256_end(struct base_sha256 *s, uint8_t hash[BASE_SHA256_SIZE]);
/* The three in one */
void base_sha256(const void *bytes, size_t len, uint8_t hash[BASE_SHA256_SIZE]);

#endif
