/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each argument is evaluated once */
#define base_min(a, b)                             \
	__extension__({                            \
		__typeof__(a) min_a_ = (a);        \
		__typeof__(b) min_b_ = (b);        \
		min_a_ < min_b_ ? min_a_ : min_b_; \
	})
#define base_max(a, b)                             \
	__extension__({                            \
		__typeof__(a) max_a_ = (a);        \
		__typeof__(b) max_b_ = (b);        \
		max_a_ > max_b_ ? max_a_ : max_b_; \
	})
/*
 * What stands in memory that others write to, read once: the compiler may not look again after it
 * has been judged
 */
#define base_once(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
/* What one thread publishes with base_store(), another sees with base_load() */
#define base_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define base_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define base_array_size(a) (sizeof(a) / sizeof((a)[0]))
#define base_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline bool base_is_pow2(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* align is a power of two; the result wraps when n is within align of SIZE_MAX. */
static inline size_t base_align_up(size_t n, size_t align)
{
	return (n + align - 1) & ~(align - 1);
}

static inline size_t base_align_down(size_t n, size_t align)
{
	return n & ~(align - 1);
}

/* Octets of a message stand at any address: memcpy is the aligned-or-not access. */
#define BASE_DEFINE_GET_PUT(order, bits, decode, encode)                     \
	static inline uint##bits##_t base_get_##order##bits(const void *p)   \
	{                                                                    \
		uint##bits##_t v;                                            \
		memcpy(&v, p, sizeof(v));                                    \
		return decode(v);                                            \
	}                                                                    \
	static inline void base_put_##order##bits(void *p, uint##bits##_t v) \
	{                                                                    \
		v = encode(v);                                               \
		memcpy(p, &v, sizeof(v));                                    \
	}

BASE_DEFINE_GET_PUT(be, 16, be16toh, htobe16)
BASE_DEFINE_GET_PUT(be, 32, be32toh, htobe32)
BASE_DEFINE_GET_PUT(be, 64, be64toh, htobe64)
/* The one little-endian field on an iWARP wire is MPA's CRC. */
BASE_DEFINE_GET_PUT(le, 32, le32toh, htole32)

#undef BASE_DEFINE_GET_PUT

#endif
