/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs provider: RDMA by a device of the host.
 *
 * A warp_device is one device and one port of it, for protection domains and queue pairs belong
 * to one. Which one is said by name, "verbs:siw0"; else it is the first in libibverbs' order that
 * can be opened and has an active port.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "verbs/verbs.h"
#include "verbs/verbs_stream.h"

static const struct rnic_ops verbs_ops;

int verbs_error(void)
{
	return errno ? -errno : -EIO;
}

void verbs_device_get(struct verbs_device *d)
{
	__atomic_add_fetch(&d->objects, 1, __ATOMIC_RELAXED);
}

void verbs_device_put(struct verbs_device *d)
{
	__atomic_sub_fetch(&d->objects, 1, __ATOMIC_RELEASE); /* pairs with device_close() */
}

static bool port_is_active(struct verbs_device *d, uint8_t port)
{
	struct ibv_port_attr attr = { .state = IBV_PORT_NOP };

	/* The call's declaration is of the struct's older, shorter form */
	return !verbs_call(ibv_query_port)(d->ctx, port, (struct _compat_ibv_port_attr *)&attr) &&
	       attr.state == IBV_PORT_ACTIVE;
}

static int port_choose(struct verbs_device *d)
{
	for (unsigned int i = 1; i <= d->attr.phys_port_cnt; i++) {
		d->port = (uint8_t)i;
		if (port_is_active(d, d->port))
			return 0;
	}
	return -ENETDOWN;
}

/* What is decided by opening: 0, or why this one cannot be used */
static int context_open(struct verbs_device *d, struct ibv_device *ibv)
{
	int err;

	errno = 0;
	d->ctx = verbs_call(ibv_open_device)(ibv);
	if (!d->ctx)
		return verbs_error();
	err = -verbs_call(ibv_query_device)(d->ctx, &d->attr);
	if (!err)
		err = port_choose(d);
	if (!err)
		err = base_fd_set_nonblock(d->ctx->async_fd, true);
	if (err)
		verbs_call(ibv_close_device)(d->ctx);
	d->iwarp = ibv->transport_type == IBV_TRANSPORT_IWARP;
	verbs_attr_ways(d);
	return err;
}

static int device_choose(struct verbs_device *d, const char *name)
{
	struct ibv_device **list;
	int n, err = -ENODEV;

	errno = 0;
	list = verbs_call(ibv_get_device_list)(&n);
	if (!list)
		return verbs_error();
	for (int i = 0; i < n && err; i++) {
		const char *this = verbs_call(ibv_get_device_name)(list[i]);

		if (name && strcmp(name, this))
			continue;
		err = context_open(d, list[i]);
		if (err)
			base_info("verbs: %s cannot be used: %s", this, strerror(-err));
	}
	verbs_call(ibv_free_device_list)(list);
	return err;
}

static int device_open(const char *name, struct warp_device **out)
{
	struct verbs_device *d;
	int err = verbs_lib_load();

	if (err)
		return err;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	err = device_choose(d, name);
	if (err) {
		free(d);
		return err;
	}
	for (unsigned int i = 0; i < VERBS_MR_BUCKETS; i++)
		base_list_init(&d->mrs[i]);
	pthread_rwlock_init(&d->mr_lock, NULL);
	pthread_mutex_init(&d->async, NULL);
	verbs_progress_init(&d->progress);
	d->dev.ops = &verbs_ops;
	*out = &d->dev;
	return 0;
}

static int device_close(struct warp_device *dev)
{
	struct verbs_device *d = verbs_device_of(dev);

	if (__atomic_load_n(&d->objects, __ATOMIC_ACQUIRE)) /* pairs with verbs_device_put() */
		return -EBUSY;
	verbs_progress_uninit(&d->progress);
	verbs_call(ibv_close_device)(d->ctx);
	pthread_mutex_destroy(&d->async);
	pthread_rwlock_destroy(&d->mr_lock);
	free(d);
	return 0;
}

static const struct rnic_ops verbs_ops = {
	.name = "verbs",
	.stream = &verbs_stream_ops,
	.device_open = device_open,
	.device_close = device_close,
	.device_query = verbs_device_query,
	.pd_create = verbs_pd_create,
	.pd_destroy = verbs_pd_destroy,
	.mr_register = verbs_mr_register,
	.mr_deregister = verbs_mr_deregister,
	.cq_create = verbs_cq_create,
	.cq_destroy = verbs_cq_destroy,
	.cq_poll = verbs_cq_poll,
	.cq_arm = verbs_cq_arm,
	.cq_fd = verbs_cq_fd,
	.cq_ack = verbs_cq_ack,
	.cq_wait = verbs_cq_wait,
	.qp_create = verbs_qp_create,
	.qp_destroy = verbs_qp_destroy,
	.qp_post_send = verbs_qp_post_send,
	.qp_post_recv = verbs_qp_post_recv,
	.listen = verbs_listen,
	.listener_destroy = verbs_listener_destroy,
	.listener_addr = verbs_listener_addr,
	.listener_fd = verbs_listener_fd,
	.listener_get = verbs_listener_get,
	.connect = verbs_connect,
	.connect_fd = verbs_connect_fd,
	.accept_fd = verbs_accept_fd,
	.conn_accept = verbs_conn_accept,
	.conn_reject = verbs_conn_reject,
	.conn_wait = verbs_conn_wait,
	.conn_fd = verbs_conn_fd,
	.conn_query = verbs_conn_query,
	.conn_disconnect = verbs_conn_disconnect,
	.conn_abort = verbs_conn_abort,
	.conn_destroy = verbs_conn_destroy,
};

/* After the software provider, which is the default */
__attribute__((constructor(102))) static void verbs_register(void)
{
	rnic_register(&verbs_ops);
}
