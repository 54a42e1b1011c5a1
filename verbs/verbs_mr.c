/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains and memory regions.
 *
 * The STag that programs and peers know is the device's rkey; a device may want another number
 * for local use, so a table leads from the one to the other, and says what a program may do with
 * its own memory before the device is asked. Whoever looks holds mr_lock for reading.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs.h"

#define WRITES (WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_ATOMIC)

static struct base_list *bucket(struct verbs_device *d, uint32_t stag)
{
	/* Devices count in the upper bits and keep a key in the low eight */
	return &d->mrs[(stag ^ stag >> 8) % VERBS_MR_BUCKETS];
}

int verbs_pd_create(struct warp_device *dev, struct warp_pd **out)
{
	struct verbs_device *d = verbs_device_of(dev);
	struct verbs_pd *pd = calloc(1, sizeof(*pd));
	int err;

	if (!pd)
		return -ENOMEM;
	errno = 0;
	pd->ibv = verbs_call(ibv_alloc_pd)(d->ctx);
	if (!pd->ibv) {
		err = verbs_error();
		free(pd);
		return err;
	}
	pd->pd.dev = dev;
	verbs_device_get(d);
	*out = &pd->pd;
	return 0;
}

int verbs_pd_destroy(struct warp_pd *pd)
{
	struct verbs_pd *p = verbs_pd_of(pd);

	if (__atomic_load_n(&p->users, __ATOMIC_ACQUIRE)) /* pairs with the put of an object */
		return -EBUSY;
	verbs_call(ibv_dealloc_pd)(p->ibv);
	verbs_device_put(verbs_device_of(pd->dev));
	free(p);
	return 0;
}

/*
 * To a device every writer from outside is one from inside, too. What iWARP answers a Read with
 * is a tagged message to its sink, so an RNIC wants the peer to have the right; siw does not.
 */
static int access_of(const struct verbs_device *d, unsigned int access)
{
	int flags = 0;

	if (access & WRITES)
		flags |= IBV_ACCESS_LOCAL_WRITE;
	if (access & WARP_ACCESS_REMOTE_WRITE ||
	    (access & WARP_ACCESS_LOCAL_WRITE && d->iwarp && !d->siw))
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & WARP_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & WARP_ACCESS_REMOTE_ATOMIC && verbs_attr_atomics(d))
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return flags;
}

static void mr_list(struct verbs_device *d, struct verbs_mr *mr, bool add)
{
	pthread_rwlock_wrlock(&d->mr_lock);
	if (add)
		base_list_push_back(bucket(d, mr->mr.stag), &mr->link);
	else
		base_list_remove(&mr->link);
	pthread_rwlock_unlock(&d->mr_lock);
}

int verbs_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		      struct warp_mr **out)
{
	struct verbs_device *d = verbs_device_of(pd->dev);
	struct verbs_pd *p = verbs_pd_of(pd);
	struct verbs_mr *mr;
	int err;

	if (length > d->attr.max_mr_size)
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	errno = 0;
	mr->ibv = verbs_call(ibv_reg_mr)(p->ibv, addr, length, access_of(d, access));
	if (!mr->ibv) {
		err = verbs_error();
		free(mr);
		return err;
	}
	mr->mr.pd = pd;
	/* What no peer may use has no rkey on some devices */
	mr->mr.stag = mr->ibv->rkey ? mr->ibv->rkey : mr->ibv->lkey;
	mr->access = access;
	mr_list(d, mr, true);
	__atomic_add_fetch(&p->users, 1, __ATOMIC_RELAXED);
	*out = &mr->mr;
	return 0;
}

int verbs_mr_deregister(struct warp_mr *wmr)
{
	struct verbs_mr *mr = base_container_of(wmr, struct verbs_mr, mr);
	struct verbs_device *d = verbs_device_of(wmr->pd->dev);
	int err;

	/* First out of the table: the device may give the number to another one at once */
	mr_list(d, mr, false);
	err = -verbs_call(ibv_dereg_mr)(mr->ibv);
	if (err) {
		mr_list(d, mr, true);
		return err;
	}
	/* Pairs with verbs_pd_destroy() */
	__atomic_sub_fetch(&verbs_pd_of(wmr->pd)->users, 1, __ATOMIC_RELEASE);
	free(mr);
	return 0;
}

/* Under mr_lock */
static const struct verbs_mr *mr_find(struct verbs_device *d, uint32_t stag)
{
	struct base_list *head = bucket(d, stag), *at, *next;

	base_list_foreach(at, next, head) {
		const struct verbs_mr *mr = base_list_entry(at, struct verbs_mr, link);

		if (mr->mr.stag == stag)
			return mr;
	}
	return NULL;
}

static bool covers(const struct verbs_mr *mr, const struct warp_pd *pd, const struct warp_sge *sg,
		   unsigned int access)
{
	uintptr_t at = (uintptr_t)sg->addr, begin = (uintptr_t)mr->ibv->addr;

	return mr->mr.pd == pd && !(access & ~mr->access) && at >= begin &&
	       sg->length <= mr->ibv->length && at - begin <= mr->ibv->length - sg->length;
}

int verbs_mr_pieces(struct verbs_device *d, const struct warp_pd *pd, const struct warp_sge *sg,
		    unsigned int n, unsigned int access, struct ibv_sge *out)
{
	int count = 0;

	pthread_rwlock_rdlock(&d->mr_lock);
	for (unsigned int i = 0; i < n; i++) {
		const struct verbs_mr *mr;

		if (!sg[i].length)
			continue; /* siw falls over one that is gathered from */
		mr = mr_find(d, sg[i].stag);
		if (!mr || !covers(mr, pd, &sg[i], access)) {
			count = -EACCES;
			break;
		}
		out[count++] =
			(struct ibv_sge){ (uintptr_t)sg[i].addr, sg[i].length, mr->ibv->lkey };
	}
	pthread_rwlock_unlock(&d->mr_lock);
	return count;
}
