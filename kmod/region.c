/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pinned memory: pages of the program that the peer may write to and read from while the program
 * does something else, or is stopped; and those of an operation of ours, as long as it lasts.
 *
 * A region's pages are pinned for long and counted against RLIMIT_MEMLOCK of the process that
 * brings it, as those of RDMA devices (VmPin). The STag table and the regions are under the
 * socket's lock, so a region that conn_region_remove() has taken out is reached by nobody. To unpin
 * sleeps, so a softirq only buries a region. It counts no longer then, for a program that is told
 * of a completion may use the room at once. The address that ddp_stag_check() gives is the
 * program's; here it is only a place among the pages.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/region.h"

#define WRITES (DDP_LOCAL_WRITE | DDP_REMOTE_WRITE | DDP_REMOTE_ATOMIC) /* dirty the pages */
#define LENGTH_MAX (1ull << 30)
#define ACCESS_KNOWN (DDP_REMOTE_WRITE | DDP_REMOTE_READ | DDP_REMOTE_ATOMIC)

struct conn_region {
	struct ddp_region r;
	struct list_head list; /* conn->regions, or ->dead */
	struct page **pages;
	unsigned long npages;
	struct mm_struct *mm; /* it is counted there */
	bool counted;
};

/* --- copies ----------------------------------------------------------------------------------- */

static struct conn_region *region_of(const struct conn *c, __u32 stag)
{
	return container_of(ddp_stag_lookup(&c->stags, stag), struct conn_region, r);
}

void conn_region_copy(const struct conn_region *region, __u64 off, __u8 *p, size_t n, bool in)
{
	size_t at = off + offset_in_page(region->r.addr);

	while (n) {
		size_t begin = offset_in_page(at), part = min_t(size_t, n, PAGE_SIZE - begin);
		__u8 *page = kmap_local_page(region->pages[at >> PAGE_SHIFT]);

		if (in)
			memcpy(page + begin, p, part);
		else
			memcpy(p, page + begin, part);
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

enum iwarp_fault conn_region_place(struct conn *c, const struct ddp_seg *seg, unsigned int access,
				   bool copy)
{
	enum ddp_stag_error e;
	struct conn_region *region;
	__u8 *addr;

	e = conn_region_check(c, seg->stag, seg->to, seg->len, access, &addr);
	if (!e && copy) {
		region = region_of(c, seg->stag);
		conn_region_copy(region, addr - region->r.addr, (__u8 *)seg->payload, seg->len,
				 true);
	}
	return ddp_stag_fault_tagged(e);
}

void conn_region_read(const struct conn *c, __u32 stag, const __u8 *addr, __u8 *to, size_t n)
{
	const struct conn_region *region = region_of(c, stag);

	conn_region_copy(region, addr - region->r.addr, to, n, false);
}

__u8 *conn_region_map(const struct conn *c, __u32 stag, const __u8 *addr)
{
	const struct conn_region *region = region_of(c, stag);
	size_t at = addr - region->r.addr + offset_in_page(region->r.addr);
	__u8 *page = kmap_local_page(region->pages[at >> PAGE_SHIFT]);

	return page + offset_in_page(at);
}

void conn_region_unmap(__u8 *number)
{
	kunmap_local(number);
}

/* --- life ------------------------------------------------------------------------------------- */

static int region_count(struct conn_region *region)
{
	atomic64_t *sum = &current->mm->pinned_vm;
	s64 most = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (atomic64_add_return(region->npages, sum) > most && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(region->npages, sum);
		return -ENOMEM;
	}
	region->mm = current->mm;
	mmgrab(region->mm);
	region->counted = true;
	return 0;
}

static void region_uncount(struct conn_region *region)
{
	if (region->counted)
		atomic64_sub(region->npages, &region->mm->pinned_vm);
	region->counted = false;
}

static void region_drop(struct conn_region *region, unsigned long pinned)
{
	unpin_user_pages_dirty_lock(region->pages, pinned, region->r.access & WRITES);
	region_uncount(region);
	mmdrop(region->mm);
	kvfree(region->pages);
	kfree(region);
}

void conn_region_free(struct conn_region *region)
{
	region_drop(region, region->npages);
}

void conn_regions_free(struct list_head *list)
{
	struct conn_region *region, *next;

	list_for_each_entry_safe(region, next, list, list) conn_region_free(region);
	INIT_LIST_HEAD(list);
}

/* The pages are counted; which are not pinned yet */
static int region_get(__u64 addr, __u64 len, unsigned int access, struct conn_region **out)
{
	struct conn_region *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	int rc = -ENOMEM;

	if (!region)
		return rc;
	region->r = (struct ddp_region){
		.to = addr,
		.len = len,
		.addr = (__u8 *)(uintptr_t)addr,
		.access = access,
	};
	INIT_LIST_HEAD(&region->list);
	region->npages = DIV_ROUND_UP(offset_in_page(addr) + len, PAGE_SIZE);
	region->pages = kvmalloc_array(region->npages, sizeof(*region->pages), GFP_KERNEL_ACCOUNT);
	if (!region->pages)
		goto err_free;
	rc = region_count(region);
	if (rc)
		goto err_free_pages;
	*out = region;
	return 0;
err_free_pages:
	kvfree(region->pages);
err_free:
	kfree(region);
	return rc;
}

/*
 * What the peer reads is pinned as if it were written to: else a private page would be replaced
 * when the program writes, and the peer would read the old one
 */
static unsigned int pin_flags(const struct conn_region *region)
{
	return FOLL_LONGTERM | (region->r.access ? FOLL_WRITE : 0);
}

int conn_region_pin(__u64 addr, __u64 len, unsigned int access, struct conn_region **out)
{
	struct conn_region *region;
	unsigned long done = 0;
	int n;

	n = region_get(addr, len, access, &region);
	if (n)
		return n;
	while (done < region->npages) {
		n = pin_user_pages_fast((addr & PAGE_MASK) + done * PAGE_SIZE,
					min(region->npages - done, 1024ul), pin_flags(region),
					region->pages + done);
		if (n <= 0) {
			region_drop(region, done);
			return n < 0 ? n : -EFAULT;
		}
		done += n;
	}
	*out = region;
	return 0;
}

static int stag_get(struct conn *c, struct conn_region *region)
{
	int rc = c->stags.slots ? 0 : ddp_stag_table_init(&c->stags, 1);

	return rc ? rc : ddp_stag_insert(&c->stags, &region->r);
}

int conn_region_enter(struct conn *c, struct conn_region *region, __u32 *stag)
{
	int rc = stag_get(c, region);

	region->r.shared = true;
	if (!rc)
		*stag = region->r.stag;
	return rc;
}

void conn_region_bury(struct conn *c, struct conn_region *region)
{
	if (region->r.stag)
		ddp_stag_remove(&c->stags, &region->r);
	region_uncount(region);
	list_add(&region->list, &c->dead);
	conn_kick(c);
}

void conn_regions_reap(struct conn *c)
{
	LIST_HEAD(dead);

	if (list_empty_careful(&c->dead))
		return;
	lock_sock(c->sk);
	list_splice_init(&c->dead, &dead);
	release_sock(c->sk);
	conn_regions_free(&dead);
}

/* --- registered by the program ---------------------------------------------------------------- */

static bool reg_good(const struct ddp_reg_mr *reg)
{
	return !reg->reserved && reg->access && !(reg->access & ~ACCESS_KNOWN) && reg->length &&
	       reg->length <= LENGTH_MAX && reg->addr + reg->length > reg->addr;
}

static int region_register(struct conn *c, struct conn_region *region)
{
	bool live = c->state == CONN_START || c->state == CONN_DDP;
	int rc = live ? stag_get(c, region) : -ENOTCONN;

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
	rc = conn_region_pin(reg->addr, reg->length, reg->access, &region);
	if (rc)
		return rc;
	lock_sock(c->sk);
	rc = region_register(c, region);
	*stag = region->r.stag;
	release_sock(c->sk);
	if (rc)
		conn_region_free(region);
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
	conn_region_free(found);
	return 0;
}

void conn_regions_uninit(struct conn *c)
{
	conn_regions_free(&c->regions);
	conn_regions_free(&c->dead);
	ddp_stag_table_uninit(&c->stags);
}
