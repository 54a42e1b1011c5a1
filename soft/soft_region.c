/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of one stream connection that its peer may use by STag (RFC 5041 section 7.1).
 *
 * It belongs to the process: the block is private, with the slots of requests in it. Who receives
 * or sends holds one of the stream's locks, who changes the table both, so that an STag is dead
 * when it has been removed. The sink of our own Reads is one region of all addresses that a peer
 * has no right to; what a Response may write is what the oldest Read asked for, and rdmap sees to
 * that.
 */
#include "soft/soft_region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/map.h"

#define TABLE_FIRST 8

static struct soft_regions *regions_of(struct rnic_regions *regions)
{
	return (struct soft_regions *)(void *)regions;
}

int soft_regions_create(struct soft_regions **out)
{
	struct soft_regions *r;
	int err = base_map_create(sizeof(*r), (void **)&r);

	if (err)
		return err;
	err = ddp_stag_table_init(&r->table, TABLE_FIRST);
	if (err)
		goto err_unmap;
	r->sink = (struct ddp_region){
		.to = 1,
		.len = ~0ull - 1,
		.addr = (__u8 *)1,
		.access = DDP_LOCAL_WRITE,
		.shared = true,
	};
	err = ddp_stag_insert(&r->table, &r->sink);
	if (err)
		goto err_uninit_table;
	r->regions.sink_stag = r->sink.stag;
	*out = r;
	return 0;
err_uninit_table:
	ddp_stag_table_uninit(&r->table);
err_unmap:
	base_map_destroy(r, sizeof(*r));
	return err;
}

/* Removal moves others about: from the beginning each time */
static struct ddp_region *region_first(const struct soft_regions *r)
{
	for (__u32 i = 0; i < r->table.size; i++)
		if (r->table.slots[i] && r->table.slots[i] != &r->sink)
			return r->table.slots[i];
	return NULL;
}

void soft_regions_close(struct rnic_regions *regions)
{
	struct soft_regions *r = regions_of(regions);
	struct ddp_region *region;

	r->closed = true;
	while ((region = region_first(r))) {
		ddp_stag_remove(&r->table, region);
		free(region);
	}
}

void soft_regions_destroy(struct rnic_regions *regions)
{
	struct soft_regions *r = regions_of(regions);

	if (!r)
		return;
	soft_regions_close(regions);
	ddp_stag_table_uninit(&r->table);
	base_map_destroy(r, sizeof(*r));
}

int soft_regions_add(struct rnic_regions *regions, void *addr, size_t len, unsigned int access,
		     uint32_t *stag)
{
	const unsigned int known = RNIC_REMOTE_WRITE | RNIC_REMOTE_READ | RNIC_REMOTE_ATOMIC;
	struct ddp_region *region;
	int err;

	if (!addr || !len || (uintptr_t)addr + len < len || access & ~known || !access)
		return -EINVAL;
	region = base_heap_array(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	*region = (struct ddp_region){
		.to = (uintptr_t)addr,
		.len = len,
		.addr = addr,
		.access = (__u8)access,
		.shared = true,
	};
	err = ddp_stag_insert(&regions_of(regions)->table, region);
	if (err)
		free(region);
	else
		*stag = region->stag;
	return err;
}

int soft_regions_remove(struct rnic_regions *regions, uint32_t stag)
{
	struct soft_regions *r = regions_of(regions);
	struct ddp_region *region = ddp_stag_lookup(&r->table, stag);

	if (!region || region == &r->sink)
		return -EINVAL;
	ddp_stag_remove(&r->table, region);
	free(region);
	return 0;
}

static enum ddp_stag_error source_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	const struct soft_regions *r = ctx;

	return ddp_stag_check(&r->table, stag, 0, to, len, access, addr);
}

static enum ddp_stag_error source_none(void *ctx, __u32 stag, __u64 to, __u64 len,
				       unsigned int access, __u8 **addr)
{
	return DDP_STAG_INVALID;
}

static const __u8 *source_hold(void *ctx, const __u8 *addr, size_t len)
{
	struct soft_regions *r = ctx;
	__u8 *copy = r->held + r->held_used;

	if (len > SOFT_REGION_HELD - r->held_used)
		return NULL;
	r->held_used += len;
	return memcpy(copy, addr, len);
}

struct rdmap_source soft_regions_source(struct soft_regions *r, bool crc)
{
	if (!r)
		return (struct rdmap_source){ .get = source_none };
	return (struct rdmap_source){
		.get = source_get,
		.hold = crc ? source_hold : NULL,
		.ctx = r,
	};
}

enum iwarp_fault soft_regions_place(const struct soft_regions *r, const struct ddp_seg *seg,
				    unsigned int access)
{
	enum ddp_stag_error e;
	__u8 *addr;

	e = ddp_stag_check(&r->table, seg->stag, 0, seg->to, seg->len, access, &addr);
	if (e)
		return ddp_stag_fault_tagged(e);
	if (!r->closed)
		memcpy(addr, seg->payload, seg->len);
	return IWARP_OK;
}
