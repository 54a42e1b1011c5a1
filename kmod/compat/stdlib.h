/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The heap of set-up, which may sleep */
#ifndef KMOD_COMPAT_STDLIB_H
#define KMOD_COMPAT_STDLIB_H

#include <linux/mm.h>
#include <linux/slab.h>

static inline void *malloc(size_t size)
{
	return kvmalloc(size, GFP_KERNEL_ACCOUNT);
}

static inline void *calloc(size_t n, size_t size)
{
	return kvcalloc(n, size, GFP_KERNEL_ACCOUNT);
}

static inline void free(void *p)
{
	kvfree(p);
}

#endif
