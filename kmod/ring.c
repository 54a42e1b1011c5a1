/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring of completions that a program maps, and on which it can spin without a system call
 * (struct ddp_completion_ring).
 *
 * The program can write to all of it. So the kernel reads of it only head, and believes of that
 * only what keeps it within the entries; tail and the mask it has of its own.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kmod/conn.h"
#include "kmod/op.h"

struct conn_ring {
	struct ddp_completion_ring *shared;
	__u32 tail, entries;
};

static size_t ring_octets(__u32 entries)
{
	return offsetof(struct ddp_completion_ring, entry[entries]);
}

int conn_ring_create(struct conn *c, __u32 entries)
{
	struct conn_ring *ring;

	if (!is_power_of_2(entries) || entries > DDP_KERNEL_OPS_MAX)
		return -EINVAL;
	if (c->ring || c->ops)
		return -EBUSY;
	ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return -ENOMEM;
	ring->shared = vmalloc_user(PAGE_ALIGN(ring_octets(entries)));
	if (!ring->shared) {
		kfree(ring);
		return -ENOMEM;
	}
	ring->entries = entries;
	ring->shared->entries = entries;
	ring->shared->messages = c->rx_messages;
	smp_store_release(&c->ring, ring); /* pairs with those who look without the lock */
	return 0;
}

void conn_ring_destroy(struct conn_ring *ring)
{
	if (!ring)
		return;
	vfree(ring->shared);
	kfree(ring);
}

/* A mapping holds the file, so the ring outlives it */
int conn_ring_mmap(struct conn_ring *ring, struct vm_area_struct *vma)
{
	if (!ring)
		return -ENODEV;
	return remap_vmalloc_range(vma, ring->shared, vma->vm_pgoff);
}

__u32 conn_ring_entries(const struct conn_ring *ring)
{
	return ring->entries;
}

__u32 conn_ring_used(const struct conn_ring *ring)
{
	__u32 used = READ_ONCE(ring->tail) - READ_ONCE(ring->shared->head);

	return min(used, ring->entries);
}

bool conn_ring_put(struct conn_ring *ring, const struct ddp_completion *completion)
{
	if (conn_ring_used(ring) == ring->entries)
		return false;
	ring->shared->entry[ring->tail & (ring->entries - 1)] = *completion;
	WRITE_ONCE(ring->tail, ring->tail + 1);
	smp_store_release(&ring->shared->tail, ring->tail); /* the program reads it first */
	return true;
}

void conn_ring_message(struct conn_ring *ring, __u64 count)
{
	smp_store_release(&ring->shared->messages, count);
}
