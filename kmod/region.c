/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory: pages of the program that the peer may write to and read from while the
 * program does something else, or is stopped.
 *
 * A region's pages are pinned for long and counted against RLIMIT_MEMLOCK of the process that
 * registers it. The STag table and the regions are under the socket's lock, so a region that
 * conn_region_remove() has taken out is reached by nobody. The address that ddp_stag_check()
 * gives is the program's; here it is only a place among the pages.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/region.h"

#define LENGTH_MAX (1ull << 30)
#define ACCESS_KNOWN (DDP_REMOTE_WRITE | DDP_REMOTE_READ)

struct conn_region {
	struct ddp_region r;
	struct list_head list;
	struct page **pages;
	unsigned long npages;
	struct mm_struct *mm; /* it is counted there */
};

/* --- copies ----------------------------------------------------------------------------------- */

static struct conn_region *region_of(const struct conn *c, __u32 stag)
{
	return container_of(ddp_stag_lookup(&c->stags, stag), struct conn_region, r);
}

/* Octets between @p and the @n at @addr, which are known to be the region's */
static void region_copy(const struct conn_region *region, const __u8 *addr, __u8 *p, size_t n,
			bool in)
{
	size_t at = addr - region->r.addr + offset_in_page(region->r.addr);

	while (n) {
		size_t off = offset_in_page(at), part = min_t(size_t, n, PAGE_SIZE - off);
		__u8 *page = kmap_local_page(region->pages[at >> PAGE_SHIFT]);

		if (in)
			memcpy(page + off, p, part);
		else
			memcpy(p, page + off, part);
		kunmap_local(page);
		at += part;
		p += part;
		n -= part;
	}
}

enum ddp_stag_error conn_region_check(const struct conn *c, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	if (!c->stags.slots)
		return DDP_STAG_INVALID;
	return ddp_stag_check(&c->stags, stag, 0, to, len, access, addr);
}

enum iwarp_fault conn_region_place(struct conn *c, const struct ddp_seg *seg, unsigned int access)
{
	enum ddp_stag_error e;
	__u8 *addr;

	e = conn_region_check(c, seg->stag, seg->to, seg->len, access, &addr);
	if (!e)
		region_copy(region_of(c, seg->stag), addr, (__u8 *)seg->payload, seg->len, true);
	return ddp_stag_fault_tagged(e);
}

void conn_region_read(const struct conn *c, __u32 stag, const __u8 *addr, __u8 *to, size_t n)
{
	region_copy(region_of(c, stag), addr, to, n, false);
}

/* --- life ------------------------------------------------------------------------------------- */

static void region_free(struct conn_region *region, unsigned long pinned)
{
	unpin_user_pages_dirty_lock(region->pages, pinned, true);
	account_locked_vm(region->mm, region->npages, false);
	mmdrop(region->mm);
	kvfree(region->pages);
	kfree(region);
}

static bool reg_good(const struct ddp_reg_mr *reg)
{
	return !reg->reserved && reg->access && !(reg->access & ~ACCESS_KNOWN) && reg->length &&
	       reg->length <= LENGTH_MAX && reg->addr + reg->length > reg->addr;
}

/* The pages are counted; which are not pinned yet */
static int region_get(const struct ddp_reg_mr *reg, struct conn_region **out)
{
	struct conn_region *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	int rc = -ENOMEM;

	if (!region)
		return rc;
	region->r = (struct ddp_region){
		.to = reg->addr,
		.len = reg->length,
		.addr = (__u8 *)(uintptr_t)reg->addr,
		.access = reg->access,
	};
	region->npages = DIV_ROUND_UP(offset_in_page(reg->addr) + reg->length, PAGE_SIZE);
	region->pages = kvmalloc_array(region->npages, sizeof(*region->pages), GFP_KERNEL_ACCOUNT);
	if (!region->pages)
		goto err_free;
	rc = account_locked_vm(current->mm, region->npages, true);
	if (rc)
		goto err_free_pages;
	region->mm = current->mm;
	mmgrab(region->mm);
	*out = region;
	return 0;
err_free_pages:
	kvfree(region->pages);
err_free:
	kfree(region);
	return rc;
}

static int region_pin(struct conn_region *region)
{
	unsigned long start = (unsigned long)region->r.addr & PAGE_MASK, done = 0;
	int n = 0;

	while (done < region->npages) {
		n = pin_user_pages_fast(start + done * PAGE_SIZE,
					min(region->npages - done, 1024ul),
					FOLL_WRITE | FOLL_LONGTERM, region->pages + done);
		if (n <= 0)
			break;
		done += n;
	}
	if (done == region->npages)
		return 0;
	region_free(region, done);
	return n < 0 ? n : -EFAULT;
}

static int region_enter(struct conn *c, struct conn_region *region)
{
	int rc = 0;

	if (c->state != CONN_DDP)
		return -ENOTCONN;
	if (!c->stags.slots)
		rc = ddp_stag_table_init(&c->stags, 1);
	if (!rc)
		rc = ddp_stag_insert(&c->stags, &region->r);
	if (!rc)
		list_add(&region->list, &c->regions);
	return rc;
}

int conn_region_add(struct conn *c, const struct ddp_reg_mr *reg, __u32 *stag)
{
	struct conn_region *region;
	int rc;

	if (!reg_good(reg))
		return -EINVAL;
	rc = region_get(reg, &region);
	if (rc)
		return rc;
	rc = region_pin(region);
	if (rc)
		return rc;
	lock_sock(c->sk);
	rc = region_enter(c, region);
	*stag = region->r.stag;
	release_sock(c->sk);
	if (rc)
		region_free(region, region->npages);
	return rc;
}

int conn_region_remove(struct conn *c, __u32 stag)
{
	struct conn_region *region, *found = NULL;

	lock_sock(c->sk);
	list_for_each_entry(region, &c->regions, list)
	{
		if (region->r.stag == stag)
			found = region;
	}
	if (found) {
		ddp_stag_remove(&c->stags, &found->r);
		list_del(&found->list);
	}
	release_sock(c->sk);
	if (!found)
		return -EINVAL;
	region_free(found, found->npages);
	return 0;
}

void conn_regions_uninit(struct conn *c)
{
	struct conn_region *region, *next;

	list_for_each_entry_safe(region, next, &c->regions, list)
		region_free(region, region->npages);
	INIT_LIST_HEAD(&c->regions);
	ddp_stag_table_uninit(&c->stags);
}
