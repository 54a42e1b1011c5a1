/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BENCH_BPF_KERNELS_H
#define BENCH_BPF_KERNELS_H

/* What is measured; compiled as native C, and for BPF. The same lines for both. */

#include <stdint.h>

struct node {
	uint64_t next; /* an address, or 0 */
	uint64_t value;
	uint64_t pad[6];
};

struct bucket {
	uint64_t key, value;
};

#define AT(type, addr) ((type *)(__UINTPTR_TYPE__)(addr))
enum { BUCKETS = 4096 };

/* The sum over a list of @hops nodes, @times over: each time it begins where the last sum says */
static inline __attribute__((always_inline)) uint64_t list_walk(uint64_t list, uint64_t hops,
								uint64_t times)
{
	uint64_t sum = 0;

	for (; times; times--) {
		uint64_t at = list ^ sum >> 63;

		for (uint64_t left = hops; at && left; left--) {
			sum += AT(struct node, at)->value;
			at = AT(struct node, at)->next;
		}
	}
	return sum;
}

/* @count look-ups in a table with open addresses; keys are made as they go */
static inline __attribute__((always_inline)) uint64_t hash_get(uint64_t table, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t key = 1; key <= count; key++) {
		uint64_t h = key * 0x9e3779b97f4a7c15u;
		uint64_t i = (h ^ h >> 32) & (BUCKETS - 1);

		while (AT(struct bucket, table)[i].key && AT(struct bucket, table)[i].key != key)
			i = (i + 1) & (BUCKETS - 1);
		sum += AT(struct bucket, table)[i].value;
	}
	return sum;
}

/* FNV-1a over bytes */
static inline __attribute__((always_inline)) uint64_t hash_bytes(uint64_t at, uint64_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint64_t end = at + len; at != end; at++)
		h = (h ^ *AT(const uint8_t, at)) * 0x100000001b3u;
	return h;
}

/* Where the byte @what is, or @len; one after another */
static inline __attribute__((always_inline)) uint64_t byte_find(uint64_t at, uint64_t len,
								uint64_t what)
{
	for (uint64_t i = 0; i < len; i++)
		if (*AT(const uint8_t, at + i) == what)
			return i;
	return len;
}

/* The same as such loops are written where it matters: eight in a row */
static inline __attribute__((always_inline)) uint64_t byte_search(uint64_t at, uint64_t len,
								  uint64_t what)
{
	uint64_t begin = at, end = at + len;

	for (; end - at >= 8; at += 8)
#pragma GCC unroll 8
		for (unsigned int i = 0; i < 8; i++)
			if (AT(const uint8_t, at)[i] == what)
				return at + i - begin;
	return at - begin + byte_find(at, end - at, what);
}

#endif
