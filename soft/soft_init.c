/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The software provider: RDMA over any TCP socket, by the threads that call it.
 *
 * A device is a table of STags and a progress thread; a program may open several, which know
 * nothing of each other.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "soft/soft_conn.h"
#include "soft/soft_stream.h"

#define STAGS_AT_FIRST 64

static const struct rnic_ops soft_ops;

void soft_device_get(struct soft_device *d)
{
	__atomic_add_fetch(&d->objects, 1, __ATOMIC_RELAXED);
}

void soft_device_put(struct soft_device *d)
{
	__atomic_sub_fetch(&d->objects, 1, __ATOMIC_RELEASE); /* pairs with device_close() */
}

/* Writers first: deregistration must not wait for connections to fall silent */
static void stag_lock_init(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(lock, &attr);
	pthread_rwlockattr_destroy(&attr);
}

/* It has no devices to choose from */
static int device_open(const char *name, struct warp_device **out)
{
	struct soft_device *d;
	int err;

	if (name)
		return -ENODEV;
	d = base_heap_array(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	err = ddp_stag_table_init(&d->stags, STAGS_AT_FIRST);
	if (err)
		goto err_free_device;
	err = soft_progress_init(&d->progress);
	if (err)
		goto err_uninit_stags;
	stag_lock_init(&d->stag_lock);
	d->dev.ops = &soft_ops;
	*out = &d->dev;
	return 0;

err_uninit_stags:
	ddp_stag_table_uninit(&d->stags);
err_free_device:
	free(d);
	return err;
}

static int device_close(struct warp_device *dev)
{
	struct soft_device *d = soft_device_of(dev);

	if (__atomic_load_n(&d->objects, __ATOMIC_ACQUIRE)) /* pairs with soft_device_put() */
		return -EBUSY;
	soft_progress_uninit(&d->progress);
	pthread_rwlock_destroy(&d->stag_lock);
	ddp_stag_table_uninit(&d->stags);
	free(d);
	return 0;
}

static const struct rnic_ops soft_ops = {
	.name = "soft",
	.stream = &soft_stream_ops,
	.device_open = device_open,
	.device_close = device_close,
	.device_query = soft_device_query,
	.pd_create = soft_pd_create,
	.pd_destroy = soft_pd_destroy,
	.mr_register = soft_mr_register,
	.mr_deregister = soft_mr_deregister,
	.cq_create = soft_cq_create,
	.cq_destroy = soft_cq_destroy,
	.cq_poll = soft_cq_poll,
	.cq_arm = soft_cq_arm,
	.cq_fd = soft_cq_fd,
	.cq_ack = soft_cq_ack,
	.cq_wait = soft_cq_wait,
	.qp_create = soft_qp_create,
	.qp_destroy = soft_qp_destroy,
	.qp_post_send = soft_qp_post_send,
	.qp_post_recv = soft_qp_post_recv,
	.listen = soft_listen,
	.listener_destroy = soft_listener_destroy,
	.listener_addr = soft_listener_addr,
	.listener_fd = soft_listener_fd,
	.listener_get = soft_listener_get,
	.connect = soft_connect,
	.connect_fd = soft_connect_fd,
	.accept_fd = soft_accept_fd,
	.conn_accept = soft_conn_accept,
	.conn_reject = soft_conn_reject,
	.conn_wait = soft_conn_wait,
	.conn_fd = soft_conn_fd,
	.conn_query = soft_conn_query,
	.conn_disconnect = soft_conn_disconnect,
	.conn_abort = soft_conn_abort,
	.conn_destroy = soft_conn_destroy,
};

/* Before constructors that take over streams which are there already */
__attribute__((constructor(101))) static void soft_register(void)
{
	rnic_register(&soft_ops);
}
