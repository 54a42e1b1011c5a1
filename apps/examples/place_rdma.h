/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_PLACE_RDMA_H
#define APPS_EXAMPLES_PLACE_RDMA_H

/* place.h for clients: each call is one operation of RDMA. */

#include <stdint.h>

#include "active_end.h"
#include "place.h"

struct place {
	struct active_end end;
	unsigned long operations; /* since somebody set it to 0 */
	int error;
};

static inline int place_access(struct place *p, struct warp_active_access *op, unsigned long addr,
			       unsigned long *old)
{
	const struct warp_active_region_info *region = &p->end.region;
	struct warp_active_result result;
	int ret;

	op->region = region->number;
	op->offset = addr - region->addr;
	p->operations++;
	ret = active_end_access(&p->end, op, &result);
	if (!ret && old)
		*old = result.value;
	if (ret)
		p->error = ret;
	return ret;
}

static inline const void *place_see(struct place *p, unsigned long addr, void *buffer,
				    unsigned long len)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_READ, .buffer = buffer, .len = len };

	return place_access(p, &op, addr, NULL) ? NULL : buffer;
}

static inline int place_error(const struct place *p)
{
	return p->error;
}

static inline int place_load(struct place *p, unsigned long addr, unsigned long *value)
{
	return place_see(p, addr, value, sizeof(*value)) ? 0 : p->error;
}

static inline int place_store(struct place *p, unsigned long addr, const void *from,
			      unsigned long len)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_WRITE,
					 .buffer = (void *)(uintptr_t)from,
					 .len = len };

	return place_access(p, &op, addr, NULL);
}

static inline void *place_draft(struct place *p, unsigned long addr, void *buffer)
{
	return buffer;
}

static inline int place_publish(struct place *p, unsigned long addr, const void *draft,
				unsigned long len)
{
	return place_store(p, addr, draft, len);
}

static inline int place_swap(struct place *p, unsigned long addr, unsigned long *old,
			     unsigned long value)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_COMPARE_SWAP,
					 .compare = *old,
					 .value = value };

	return place_access(p, &op, addr, old);
}

static inline int place_add(struct place *p, unsigned long addr, unsigned long add,
			    unsigned long *old)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_FETCH_ADD, .value = add };

	return place_access(p, &op, addr, old);
}

#endif
