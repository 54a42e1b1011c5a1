/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a number of which nobody without the key can tell
 * the next one, however many he has seen.
 */
struct base_siphash_key {
	uint64_t k[2];
};

uint64_t base_siphash(const struct base_siphash_key *key, const void *p, size_t len);

#endif
