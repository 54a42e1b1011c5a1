/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that peers ask a device for.
 *
 * A device of iWARP speaks TCP, and its listener takes the kernel's port. One of RoCE or
 * InfiniBand does not: its ports are the connection manager's, and the kernel's listener may be
 * beside it. A listener for all addresses is one of all devices; where some are of iWARP and the
 * kernel is to have its port, it is one for each address of the others.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "base/address.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/process.h"
#include "base/sockutil.h"
#include "verbs/verbs_stream.h"

#define IDS 16

struct listener {
	struct rnic_native_listener native;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id[IDS];
	unsigned int n;
	/* Of the next Request, before it is taken: what was taken cannot be put back */
	struct verbs_stream *next;
};

/* --- which devices --- */

static unsigned int listens_as(const struct ibv_device *device)
{
	switch (device->transport_type) {
	case IBV_TRANSPORT_IWARP:
		return RNIC_LISTENS_ALONE;
	case IBV_TRANSPORT_IB:
		return RNIC_LISTENS_BESIDE;
	default:
		return 0;
	}
}

static unsigned int all_listen(void)
{
	struct ibv_device **list;
	unsigned int how = 0;
	int n;

	list = verbs_call(ibv_get_device_list)(&n);
	for (int i = 0; list && i < n; i++)
		how |= listens_as(list[i]);
	if (list)
		verbs_call(ibv_free_device_list)(list);
	return how;
}

struct own {
	struct sockaddr_storage addr;
	bool only_six; /* or its address stands for IPv4, too */
};

static struct own own_address(const struct sockaddr *addr, socklen_t len, in_port_t port)
{
	struct own own = { 0 };

	memcpy(&own.addr, addr, base_min((size_t)len, sizeof(own.addr)));
	base_address_unmap(&own.addr); /* a device knows of no mapped ones */
	base_address_set_port(&own.addr, port);
	return own;
}

/* An id that is bound there */
static int id_bind(struct rdma_event_channel *events, struct own *own, struct rdma_cm_id **out)
{
	int on = 1, err;

	errno = 0;
	err = verbs_error_of(verbs_call(rdma_create_id)(events, out, NULL, RDMA_PS_TCP));
	if (err)
		return err;
	if (own->only_six)
		err = verbs_error_of(verbs_call(rdma_set_option)(
			*out, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)));
	if (!err)
		err = verbs_error_of(
			verbs_call(rdma_bind_addr)(*out, (struct sockaddr *)&own->addr));
	if (err)
		verbs_call(rdma_destroy_id)(*out);
	return err;
}

static unsigned int one_listens(const struct sockaddr *addr, socklen_t len)
{
	struct own own = own_address(addr, len, 0);
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	unsigned int how = 0;

	if (verbs_events_create(&events))
		return 0;
	if (!id_bind(events, &own, &id)) {
		how = id->verbs ? listens_as(id->verbs->device) : 0;
		verbs_call(rdma_destroy_id)(id);
	}
	verbs_events_destroy(events);
	return how;
}

int verbs_stream_listens(const struct sockaddr *addr, socklen_t len)
{
	int err = verbs_stream_library_get();
	unsigned int how;

	if (err)
		return err;
	how = base_address_is_any(addr) ? all_listen() : one_listens(addr, len);
	return how ? (int)how : -ENODEV;
}

/* --- listening --- */

void verbs_stream_unlisten(struct rnic_native_listener *n)
{
	struct listener *l = base_container_of(n, struct listener, native);

	if (!n || n->owner != base_process_self().pid)
		return;
	if (l->next)
		verbs_stream_destroy(&l->next->native);
	while (l->n)
		verbs_call(rdma_destroy_id)(l->id[--l->n]);
	verbs_events_destroy(l->events);
	base_map_destroy(l, sizeof(*l));
}

/* To the connection manager a backlog of 0 is as many as there can be */
static int id_listen(struct listener *l, const struct rnic_native_address *at,
		     const struct sockaddr *addr, socklen_t len)
{
	struct own own = own_address(addr, len, base_address_port(at->addr));
	struct rdma_cm_id *id;
	int err;

	if (l->n == IDS)
		return -ENOSPC;
	own.only_six = at->only_six;
	err = id_bind(l->events, &own, &id);
	if (err)
		return err;
	if (at->beside && id->verbs && listens_as(id->verbs->device) != RNIC_LISTENS_BESIDE)
		err = -ENODEV;
	if (!err)
		err = verbs_error_of(verbs_call(rdma_listen)(id, base_max(at->backlog, 1)));
	if (err)
		verbs_call(rdma_destroy_id)(id);
	else
		l->id[l->n++] = id;
	return err;
}

static bool is_of(const struct sockaddr *addr, const struct rnic_native_address *at)
{
	if (!addr || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return false;
	return addr->sa_family == at->addr->sa_family ||
	       (at->addr->sa_family == AF_INET6 && !at->only_six);
}

static int each_listen(struct listener *l, const struct rnic_native_address *at)
{
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return -errno;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		int err = -ENODEV;

		if (is_of(a->ifa_addr, at))
			err = id_listen(l, at, a->ifa_addr, base_address_len(a->ifa_addr));
		if (err && err != -ENODEV)
			base_debug("verbs: no listener at %s: %s", a->ifa_name, strerror(-err));
	}
	freeifaddrs(all);
	return l->n ? 0 : -ENODEV;
}

static int ids_listen(struct listener *l, const struct rnic_native_address *at)
{
	if (base_address_is_any(at->addr) && at->beside && all_listen() & RNIC_LISTENS_ALONE)
		return each_listen(l, at);
	return id_listen(l, at, at->addr, at->len);
}

int verbs_stream_listen(const struct rnic_native_address *at, struct rnic_native_listener **out)
{
	struct listener *l;
	int err = verbs_stream_library_get();

	if (err)
		return err;
	err = base_map_create(sizeof(*l), (void **)&l);
	if (err)
		return err;
	l->native.owner = base_process_self().pid;
	err = verbs_events_create(&l->events);
	if (err) {
		base_map_destroy(l, sizeof(*l));
		return err;
	}
	err = ids_listen(l, at);
	if (err) {
		verbs_stream_unlisten(&l->native);
		return err;
	}
	l->native.fd = l->events->fd;
	*out = &l->native;
	return 0;
}

/* --- who asks --- */

/*
 * Takes over event->id, and acknowledges the event: from here on its own are its own channel's.
 * NULL: it is refused
 */
static struct rnic_native *request_take(struct listener *l, struct rdma_cm_event *event)
{
	struct verbs_stream *s = l->next;
	struct rdma_cm_id *id = event->id;
	int err;

	verbs_stream_data_keep(s, &event->param.conn);
	verbs_call(rdma_ack_cm_event)(event);
	errno = 0;
	err = verbs_error_of(verbs_call(rdma_migrate_id)(id, s->events));
	if (err) {
		base_warn("verbs: a Request is refused: %s", strerror(-err));
		verbs_call(rdma_destroy_id)(id);
		return NULL;
	}
	s->id = id;
	l->next = NULL;
	return &s->native;
}

/* With a descriptor for its completion channel, which it can have only when it has a device */
static int next_create(struct listener *l)
{
	struct verbs_stream *s;
	int err = verbs_stream_create(VERBS_REQUEST, &s);

	if (err)
		return err;
	err = base_eventfd_create(&s->spare);
	if (err) {
		verbs_stream_destroy(&s->native);
		return err;
	}
	s->spare = base_fd_keep(s->spare);
	l->next = s;
	return 0;
}

/* One event; it may be nobody's who is to be served */
static int next_take(struct listener *l, struct rnic_native **out)
{
	struct rdma_cm_event *event;
	int err;

	errno = 0;
	err = verbs_error_of(verbs_call(rdma_get_cm_event)(l->events, &event));
	if (err)
		return err;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		*out = request_take(l, event);
	else
		verbs_call(rdma_ack_cm_event)(event);
	return 0;
}

int verbs_stream_get(struct rnic_native_listener *n, struct rnic_native **out)
{
	struct listener *l = base_container_of(n, struct listener, native);
	struct rnic_native *got = NULL;
	int err = 0;

	if (n->owner != base_process_self().pid)
		return -EXDEV;
	/* It may be readable and nothing is to be had: to another user the kernel gives no event */
	while (!err && !got && base_sock_ready(n->fd, POLLIN)) {
		err = l->next ? 0 : next_create(l);
		if (!err)
			err = next_take(l, &got);
	}
	if (!err && !got)
		err = -EAGAIN;
	if (!err)
		*out = got;
	return err;
}
