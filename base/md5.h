/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_MD5_H
#define BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { BASE_MD5_SIZE = 16 };

/*
 * RFC 1321, for protocols that name things by it. Two inputs with the same hash can be made
 * easily: nothing may be trusted because of it.
 */
void base_md5(const void *bytes, size_t len, uint8_t hash[BASE_MD5_SIZE]);

#endif
