/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

/*
 * Unpredictable octets from the kernel, for STags, initial sequence values and keys; -errno when it
 * has none to give. base_rand_u32() keeps some for later calls of the same process.
 */
int base_rand_fill(void *p, size_t n);
int base_rand_u32(uint32_t *out);
int base_rand_u64(uint64_t *out);

#endif
