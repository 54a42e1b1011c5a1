/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains and memory regions.
 *
 * Whoever uses memory by an STag, to place bytes or to send them, holds dev.stags for reading
 * from the look-up to the last byte. Deregistration takes it for writing, so when that returns
 * nobody is in the memory and nobody finds it any more (RFC 5042 section 6.2). Writers go first,
 * or busy connections would hold deregistration up for ever.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "soft/soft_conn.h"

#define REMOTE (WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ | WARP_ACCESS_REMOTE_ATOMIC)

_Static_assert((int)WARP_ACCESS_LOCAL_WRITE == (int)DDP_LOCAL_WRITE, "access");
_Static_assert((int)WARP_ACCESS_REMOTE_WRITE == (int)DDP_REMOTE_WRITE, "access");
_Static_assert((int)WARP_ACCESS_REMOTE_READ == (int)DDP_REMOTE_READ, "access");
_Static_assert((int)WARP_ACCESS_REMOTE_ATOMIC == (int)DDP_REMOTE_ATOMIC, "access");

int soft_pd_create(struct warp_device *dev, struct warp_pd **out)
{
	struct soft_device *d = soft_device_of(dev);
	struct soft_pd *pd = base_heap_array(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->pd.dev = dev;
	pd->id = __atomic_add_fetch(&d->last_pd, 1, __ATOMIC_RELAXED);
	soft_device_get(d);
	*out = &pd->pd;
	return 0;
}

int soft_pd_destroy(struct warp_pd *pd)
{
	struct soft_pd *p = soft_pd_of(pd);

	if (__atomic_load_n(&p->users, __ATOMIC_ACQUIRE)) /* pairs with the put of an object */
		return -EBUSY;
	soft_device_put(soft_device_of(pd->dev));
	free(p);
	return 0;
}

int soft_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		     struct warp_mr **out)
{
	struct soft_device *d = soft_device_of(pd->dev);
	struct soft_pd *p = soft_pd_of(pd);
	struct soft_mr *mr = base_heap_array(1, sizeof(*mr));
	int err;

	if (!mr)
		return -ENOMEM;
	mr->mr.pd = pd;
	mr->region = (struct ddp_region){
		.to = (uintptr_t)addr,
		.len = length,
		.addr = addr,
		.pd = p->id,
		.access = (__u8)access,
	};
	pthread_rwlock_wrlock(&d->stag_lock);
	err = ddp_stag_insert(&d->stags, &mr->region);
	pthread_rwlock_unlock(&d->stag_lock);
	if (err) {
		free(mr);
		return err;
	}
	mr->mr.stag = mr->region.stag;
	__atomic_add_fetch(&p->users, 1, __ATOMIC_RELAXED);
	if ((access & REMOTE) && !__atomic_fetch_add(&p->remote, 1, __ATOMIC_RELAXED))
		soft_progress_update_all(d);
	*out = &mr->mr;
	return 0;
}

int soft_mr_deregister(struct warp_mr *mr)
{
	struct soft_mr *m = base_container_of(mr, struct soft_mr, mr);
	struct soft_device *d = soft_device_of(mr->pd->dev);
	struct soft_pd *p = soft_pd_of(mr->pd);

	pthread_rwlock_wrlock(&d->stag_lock);
	ddp_stag_remove(&d->stags, &m->region);
	pthread_rwlock_unlock(&d->stag_lock);
	if (m->region.access & REMOTE)
		__atomic_sub_fetch(&p->remote, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&p->users, 1, __ATOMIC_RELEASE); /* pairs with soft_pd_destroy() */
	free(m);
	return 0;
}

bool soft_mr_covers(const struct soft_device *d, __u32 pd, const struct iovec *iov,
		    const __u32 *stags, unsigned int n, unsigned int access)
{
	__u8 *addr;

	for (unsigned int i = 0; i < n; i++)
		if (iov[i].iov_len &&
		    ddp_stag_check(&d->stags, stags[i], pd, (uintptr_t)iov[i].iov_base,
				   iov[i].iov_len, access, &addr))
			return false;
	return true;
}
