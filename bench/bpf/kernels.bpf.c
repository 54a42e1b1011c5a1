/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measured functions as programs of the engine; the same text is compiled as native C in
 * speed.c.
 */
#include "kernels.h"

uint64_t nothing(void)
{
	return 0;
}

uint64_t walk(uint64_t at, uint64_t hops, uint64_t times)
{
	return list_walk(at, hops, times);
}

uint64_t table(uint64_t at, uint64_t count)
{
	return hash_get(at, count);
}

uint64_t bytes(uint64_t at, uint64_t len)
{
	return hash_bytes(at, len);
}

uint64_t search(uint64_t at, uint64_t len, uint64_t what)
{
	return byte_search(at, len, what);
}

uint64_t find(uint64_t at, uint64_t len, uint64_t what)
{
	return byte_find(at, len, what);
}
