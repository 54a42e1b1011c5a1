/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of the heap for what is set up, each of which a test may let fail (base/point.h). It is
 * given back by free().
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdlib.h>

#include "base/point.h"

static inline void *base_heap_get(size_t size)
{
	return BASE_FAILS(heap) ? NULL : malloc(size);
}

/* Zeroes, @n objects of @size */
static inline void *base_heap_array(size_t n, size_t size)
{
	return BASE_FAILS(heap) ? NULL : calloc(n, size);
}

#endif
