/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How connections of a device come and go: librdmacm, without a wait.
 *
 *	RESOLVING --address, route--> RESOLVED --connect--> CONNECTING --established--> OPEN
 *	REQUEST --accept--> ACCEPTED --established--> OPEN --disconnected--> ENDED
 *	CONNECTING --rejected--> REJECTED;  any --error--> FAILED
 *
 * Each connection has a channel of its own. Its descriptor and that of the completion channel
 * stand in one epoll set, so that a waiter has one thing to wait on.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/process.h"
#include "verbs/verbs_stream.h"

#define RESOLVE_MS 100
#define RESOLVE_MAX_MS 800
#define ROUTE_MS 2000

static bool is_ours(uint32_t owner)
{
	return owner == base_process_self().pid;
}

int verbs_stream_library_get(void)
{
	static uint32_t owner; /* atomic: who came first */
	uint32_t self = base_process_self().pid, first = 0;

	if (verbs_lib_load())
		return -ENODEV;
	__atomic_compare_exchange_n(&owner, &first, self, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	return first && first != self ? -EXDEV : 0;
}

void verbs_stream_fail(struct verbs_stream *s, int err)
{
	if (verbs_load(&s->phase) >= VERBS_REJECTED)
		return;
	base_debug("verbs: a connection is over: %s", strerror(-err));
	s->error = err;
	if (s->id->qp)
		verbs_call(rdma_disconnect)(s->id);
	verbs_store(&s->phase, VERBS_FAILED);
}

/* --- what the connection manager tells --- */

void verbs_stream_data_keep(struct verbs_stream *s, const struct rdma_conn_param *conn)
{
	s->data_len = conn->private_data ? conn->private_data_len : 0;
	if (s->data_len)
		memcpy(s->data, conn->private_data, s->data_len);
}

static void established(struct verbs_stream *s, const struct rdma_cm_event *event)
{
	bool initiator = verbs_load(&s->phase) == VERBS_CONNECTING;

	if (initiator)
		verbs_stream_data_keep(s, &event->param.conn);
	verbs_stream_write_retry_init(s, initiator);
	verbs_store(&s->phase, VERBS_OPEN);
}

/* The kernel overlooks an answer that comes before it waits: so it is asked again, for longer */
static int resolve(struct verbs_stream *s, struct sockaddr *to)
{
	s->resolve_ms = s->resolve_ms ? 2 * s->resolve_ms : RESOLVE_MS;
	errno = 0;
	return verbs_error_of(verbs_call(rdma_resolve_addr)(s->id, NULL, to, s->resolve_ms));
}

static int status_of(const struct rdma_cm_event *event, int other)
{
	return event->status < 0 ? event->status : event->status > 0 ? -event->status : other;
}

/*
 * siw says EINVAL of an answer that it cannot use, cxgb4 EPROTO. It may be no Reply, or one whose
 * sender spoke at once: bytes behind a Reply are a fault to both, if they are there by the time
 * that it is read
 */
static int connect_error(const struct verbs_stream *s, int err)
{
	bool unread = err == -EINVAL || err == -EPROTO;

	return unread && verbs_load(&s->phase) == VERBS_CONNECTING ? -EBADMSG : err;
}

static void event_take(struct verbs_stream *s, const struct rdma_cm_event *event)
{
	int err;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = verbs_error_of(verbs_call(rdma_resolve_route)(s->id, ROUTE_MS));
		if (err)
			verbs_stream_fail(s, err);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		s->native.apart = s->id->verbs->device->transport_type != IBV_TRANSPORT_IWARP;
		verbs_store(&s->phase, VERBS_RESOLVED);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		err = status_of(event, -EHOSTUNREACH);
		if (err == -ETIMEDOUT && s->resolve_ms < RESOLVE_MAX_MS)
			err = resolve(s, &s->id->route.addr.dst_addr);
		if (err)
			verbs_stream_fail(s, err);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		verbs_stream_fail(s, status_of(event, -EHOSTUNREACH));
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		verbs_stream_fail(s, connect_error(s, status_of(event, -ETIMEDOUT)));
		break;
	case RDMA_CM_EVENT_REJECTED:
		verbs_store(&s->phase, VERBS_REJECTED);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(s, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (verbs_load(&s->phase) <= VERBS_OPEN)
			verbs_store(&s->phase, VERBS_ENDED);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		verbs_stream_fail(s, -ENODEV);
		break;
	default:
		break;
	}
}

/* No further than the next phase: a peer that is up may have spoken and gone by now */
bool verbs_stream_look(struct verbs_stream *s)
{
	uint32_t before = verbs_load(&s->phase);
	struct rdma_cm_event *event;
	bool any = false;

	while (verbs_load(&s->phase) == before &&
	       !verbs_call(rdma_get_cm_event)(s->events, &event)) {
		base_debug("verbs: event %d, status %d", event->event, event->status);
		event_take(s, event);
		verbs_call(rdma_ack_cm_event)(event);
		any = true;
	}
	return any;
}

/* --- made, and taken down --- */

int verbs_events_create(struct rdma_event_channel **out)
{
	struct rdma_event_channel *events;
	int err;

	errno = 0;
	events = verbs_call(rdma_create_event_channel)();
	if (!events)
		return verbs_error_of(-1);
	err = base_fd_set_nonblock(events->fd, true);
	if (err) {
		verbs_call(rdma_destroy_event_channel)(events);
		return err;
	}
	events->fd = base_fd_keep(events->fd);
	*out = events;
	return 0;
}

void verbs_events_destroy(struct rdma_event_channel *events)
{
	base_fd_drop(events->fd);
	verbs_call(rdma_destroy_event_channel)(events);
}

static int set_create(struct rdma_event_channel *events, int *out)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = events };
	long fd = syscall(SYS_epoll_create1, EPOLL_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (syscall(SYS_epoll_ctl, fd, EPOLL_CTL_ADD, events->fd, &event)) {
		base_fd_close((int)fd);
		return -errno;
	}
	*out = base_fd_keep((int)fd);
	return 0;
}

int verbs_stream_create(enum verbs_phase phase, struct verbs_stream **out)
{
	struct verbs_stream *s;
	int err = base_map_create(sizeof(*s), (void **)&s);

	if (err)
		return err;
	s->owner = base_process_self().pid;
	s->phase = phase;
	s->spare = s->timer = s->keep_timer = -1;
	err = verbs_events_create(&s->events);
	if (err)
		goto err_free;
	err = set_create(s->events, &s->native.fd);
	if (err)
		goto err_destroy_events;
	*out = s;
	return 0;
err_destroy_events:
	verbs_events_destroy(s->events);
err_free:
	base_map_destroy(s, sizeof(*s));
	return err;
}

/* Its descriptor is another's from now on, or nobody's */
void verbs_stream_spare_drop(struct verbs_stream *s)
{
	if (s->spare < 0)
		return;
	base_fd_drop(s->spare);
	base_fd_close(s->spare);
	s->spare = -1;
}

void verbs_stream_destroy(struct rnic_native *n)
{
	struct verbs_stream *s = base_container_of(n, struct verbs_stream, native);

	if (!n || !is_ours(s->owner))
		return;
	verbs_stream_write_retry_end(s);
	verbs_stream_keep_end(s);
	verbs_stream_spare_drop(s);
	verbs_stream_uninit(s);
	if (s->id)
		verbs_call(rdma_destroy_id)(s->id);
	verbs_events_destroy(s->events);
	base_fd_drop(s->native.fd);
	base_fd_close(s->native.fd);
	base_map_destroy(s, sizeof(*s));
}

/* --- to a peer --- */

/* The address that this host has towards @peer */
static int source_find(const struct sockaddr *peer, socklen_t len, struct sockaddr_storage *out)
{
	long fd = syscall(SYS_socket, peer->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t room = sizeof(*out);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (syscall(SYS_connect, fd, peer, len) || syscall(SYS_getsockname, fd, out, &room))
		err = -errno;
	base_fd_close((int)fd);
	base_address_set_port(out, 0); /* it is another kind of port */
	return err;
}

/* Only a device's own address can be bound to one */
static int peer_resolve(struct verbs_stream *s, const struct sockaddr *peer, socklen_t len)
{
	struct sockaddr_storage source, to = { 0 };
	int err = source_find(peer, len, &source);

	if (err)
		return -ENODEV;
	memcpy(&to, peer, base_min((size_t)len, sizeof(to)));
	err = verbs_error_of(verbs_call(rdma_create_id)(s->events, &s->id, NULL, RDMA_PS_TCP));
	if (err)
		return err;
	if (verbs_call(rdma_bind_addr)(s->id, (struct sockaddr *)&source) || !s->id->verbs)
		return -ENODEV;
	return resolve(s, (struct sockaddr *)&to);
}

static int native_reach(const struct sockaddr *peer, socklen_t len, struct rnic_native **out)
{
	struct verbs_stream *s;
	int err = verbs_stream_library_get();

	if (err)
		return err;
	err = verbs_stream_create(VERBS_RESOLVING, &s);
	if (err)
		return err;
	err = peer_resolve(s, peer, len);
	if (err)
		verbs_stream_destroy(&s->native);
	else
		*out = &s->native;
	return err;
}

static int native_name(const struct rnic_native *n, bool peer, struct sockaddr_storage *out)
{
	const struct verbs_stream *s = base_container_of(n, struct verbs_stream, native);
	const struct rdma_addr *addr = &s->id->route.addr;

	*out = peer ? addr->dst_storage : addr->src_storage;
	return 0;
}

static void *native_memory(const struct rnic_native *n, unsigned int i)
{
	return base_container_of(n, struct verbs_stream, native)->window[i].p;
}

static uint32_t native_messages(const struct rnic_native *n)
{
	const struct verbs_stream *s = base_container_of(n, struct verbs_stream, native);
	struct ibv_device_attr attr;

	if (verbs_call(ibv_query_device)(s->id->verbs, &attr))
		return 0;
	return (uint32_t)base_min(attr.max_qp_wr,
				  attr.max_cqe - (int)VERBS_STREAM_SENDS - VERBS_STREAM_OWN);
}

static void native_follow(struct rnic_native *n, int fd)
{
	struct epoll_event event = { .events = EPOLLOUT };

	syscall(SYS_epoll_ctl, n->fd, EPOLL_CTL_ADD, fd, &event);
}

const struct rnic_native_ops verbs_native_ops = {
	.reach = native_reach,
	.name = native_name,
	.memory = native_memory,
	.messages = native_messages,
	.follow = native_follow,
	.keepalive = verbs_stream_keepalive,
	.destroy = verbs_stream_destroy,
	.listens = verbs_stream_listens,
	.listen = verbs_stream_listen,
	.get = verbs_stream_get,
	.unlisten = verbs_stream_unlisten,
};
