/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_PLACE_MEMORY_H
#define APPS_EXAMPLES_PLACE_MEMORY_H

/* place.h by pointers: for programs, which run beside the memory, and for the server. */

#include "place.h"

static inline const void *place_see(struct place *p, unsigned long addr, void *buffer,
				    unsigned long len)
{
	return (const void *)addr;
}

/* There is nothing at address 0 */
static inline int place_error(const struct place *p)
{
	return PLACE_DAMAGED;
}

static inline int place_load(struct place *p, unsigned long addr, unsigned long *value)
{
	*value = *(const volatile unsigned long *)addr;
	return 0;
}

static inline int place_store(struct place *p, unsigned long addr, const void *from,
			      unsigned long len)
{
	const unsigned long *words = (const unsigned long *)from;

	for (unsigned long i = 0; i < len / 8; i++)
		((volatile unsigned long *)addr)[i] = words[i];
	return 0;
}

static inline void *place_draft(struct place *p, unsigned long addr, void *buffer)
{
	return (void *)addr;
}

static inline int place_publish(struct place *p, unsigned long addr, const void *draft,
				unsigned long len)
{
	return 0;
}

static inline int place_swap(struct place *p, unsigned long addr, unsigned long *old,
			     unsigned long value)
{
	*old = __sync_val_compare_and_swap((unsigned long *)addr, *old, value);
	return 0;
}

static inline int place_add(struct place *p, unsigned long addr, unsigned long add,
			    unsigned long *old)
{
	*old = __sync_fetch_and_add((unsigned long *)addr, add);
	return 0;
}

#endif
