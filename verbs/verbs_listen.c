/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners of the connection manager: Requests come in, and leave as connections that have an
 * event channel of their own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "verbs/verbs_conn.h"

#define RETRY_NS (10 * BASE_NS_PER_MS)

struct verbs_listener {
	struct warp_listener listener;
	struct verbs_device *dev;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	pthread_mutex_t lock;	 /* who takes events */
	struct verbs_conn *next; /* lock: of the next Request: one that is taken is there to stay */
};

static struct verbs_listener *listener_of(const struct warp_listener *l)
{
	return base_container_of(l, struct verbs_listener, listener);
}

static void listener_free(struct verbs_listener *l)
{
	if (l->next)
		verbs_conn_free(l->next);
	if (l->id)
		verbs_call(rdma_destroy_id)(l->id);
	if (l->channel)
		verbs_call(rdma_destroy_event_channel)(l->channel);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static int listener_open(struct verbs_listener *l, const struct sockaddr *addr, socklen_t len,
			 int backlog)
{
	struct sockaddr_storage at = { 0 };

	memcpy(&at, addr, base_min(len, (socklen_t)sizeof(at)));
	errno = 0;
	l->channel = verbs_call(rdma_create_event_channel)();
	if (!l->channel || base_fd_set_nonblock(l->channel->fd, true) ||
	    verbs_call(rdma_create_id)(l->channel, &l->id, l, RDMA_PS_TCP) ||
	    verbs_call(rdma_bind_addr)(l->id, (struct sockaddr *)&at))
		return errno == ENODEV ? -EADDRNOTAVAIL : verbs_error();
	/* To the connection manager 0 is as many as there can be */
	return verbs_call(rdma_listen)(l->id, base_max(backlog, 1)) ? verbs_error() : 0;
}

int verbs_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		 struct warp_listener **out)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->listener.dev = dev;
	l->dev = verbs_device_of(dev);
	pthread_mutex_init(&l->lock, NULL);
	err = listener_open(l, addr, len, backlog);
	if (err) {
		listener_free(l);
		return err;
	}
	verbs_device_get(l->dev);
	*out = &l->listener;
	return 0;
}

int verbs_listener_destroy(struct warp_listener *wl)
{
	struct verbs_listener *l = listener_of(wl);
	struct verbs_device *d = l->dev;

	listener_free(l);
	verbs_device_put(d);
	return 0;
}

int verbs_listener_addr(const struct warp_listener *wl, struct sockaddr_storage *addr)
{
	memcpy(addr, &listener_of(wl)->id->route.addr.src_storage, sizeof(*addr));
	return 0;
}

int verbs_listener_fd(struct warp_listener *l)
{
	return listener_of(l)->channel->fd;
}

/* An address of all devices brings connections of others, too */
static bool is_ours(const struct verbs_listener *l, const struct rdma_cm_id *id)
{
	return id->verbs && !strcmp(verbs_call(ibv_get_device_name)(id->verbs->device),
				    verbs_device_name(l->dev));
}

/* Its events come by its own channel from here on; those of the listener's are acknowledged */
static int conn_adopt(struct verbs_conn *c, struct rdma_cm_id *id)
{
	errno = 0;
	if (verbs_call(rdma_migrate_id)(id, c->channel))
		return verbs_error();
	c->id = id;
	id->context = c;
	verbs_cm_addresses(c);
	return 0;
}

/* Under listener.lock, with a connection at hand: 0, or why it is none of ours */
static int request_take(struct verbs_listener *l, struct rdma_cm_event *e, struct warp_conn **out)
{
	struct rdma_cm_id *id = e->id;
	int err = is_ours(l, id) ? 0 : -EXDEV;

	if (!err)
		verbs_cm_peer_param(l->next, &e->param.conn);
	verbs_call(rdma_ack_cm_event)(e);
	if (!err)
		err = conn_adopt(l->next, id);
	if (err) {
		base_warn("verbs: a Request is refused: %s", strerror(-err));
		verbs_call(rdma_reject)(id, NULL, 0);
		verbs_call(rdma_destroy_id)(id);
		return err;
	}
	verbs_device_get(l->dev);
	*out = &l->next->conn;
	l->next = NULL;
	return 0;
}

/* Under listener.lock: 0, -EAGAIN: none is there, or what a connection lacks */
static int next_request(struct verbs_listener *l, struct warp_conn **out)
{
	struct rdma_cm_event *e;
	int err = -EAGAIN;

	if (!l->next) {
		err = verbs_conn_create(l->dev, WARP_CONN_REQUEST, &l->next);
		if (err)
			return err;
		err = -EAGAIN;
	}
	while (err && (e = verbs_cm_next(l->channel))) {
		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			err = request_take(l, e, out);
		else
			verbs_call(rdma_ack_cm_event)(e);
	}
	return err ? -EAGAIN : 0;
}

/* Nothing tells when there are descriptors or memory again: then time is let pass */
static int listener_sleep(struct verbs_listener *l, int lack, uint64_t deadline)
{
	struct pollfd pfd = { .fd = l->channel->fd, .events = POLLIN };
	uint64_t again = base_deadline(base_now(), RETRY_NS);
	int err;

	if (lack == -EAGAIN)
		return base_poll_until(&pfd, 1, deadline);
	err = base_poll_until(NULL, 0, base_min(again, deadline));
	return err == -ETIMEDOUT && again < deadline ? 0 : err;
}

int verbs_listener_get(struct warp_listener *wl, int timeout_ms, struct warp_conn **out)
{
	struct verbs_listener *l = listener_of(wl);
	uint64_t deadline = base_deadline_ms(timeout_ms);
	int err = 0, got;

	for (;;) {
		pthread_mutex_lock(&l->lock);
		got = next_request(l, out);
		pthread_mutex_unlock(&l->lock);
		if (!got)
			return 0;
		if (err)
			return err;
		err = listener_sleep(l, got, deadline);
	}
}
