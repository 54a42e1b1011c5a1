/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server of Active RDMA: its making, its end, and what it counts.
 *
 *    clients      door.c: admits                session.c: protection domain, regions, queue pair
 *       |            |
 *       |  Sends     v
 *       +------> lane.c -> request.c -> pool.c -> run.c -> bpf/ -> the regions' memory
 *       |                     |           |  ^                          ^
 *       |  <--- answer.c <----+-----------+  +- workers                 |
 *       |                                                               |
 *       +----------- Read, Write, atomics: RDMA's own ------------------+
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "active/kernel.h"
#include "active/pool.h"
#include "active/session.h"
#include "base/bits.h"
#include "base/log.h"

static bool attr_good(const struct warp_active_server_attr *a)
{
	return a->clients <= 65536 && a->window && a->window <= 256 && a->at_once &&
	       a->at_once <= a->window && a->workers <= ACTIVE_WORKERS_MAX && a->time_ms &&
	       a->object_max <= ACTIVE_WIRE_OBJECT_MAX;
}

static unsigned int processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (unsigned int)base_min(n, 8L);
}

#define DEFAULT(member, value)             \
	do {                               \
		if (!a->member)            \
			a->member = value; \
	} while (0)

static void attr_fill(struct warp_active_server_attr *a)
{
	DEFAULT(clients, 256);
	DEFAULT(per_host, a->clients);
	DEFAULT(window, 16);
	DEFAULT(at_once, base_min(4u, a->window));
	DEFAULT(queue, 1024);
	DEFAULT(workers, processors());
	DEFAULT(time_ms, 10000);
	DEFAULT(fuel, 10000000000ull);
	DEFAULT(cache, 64 << 20);
	DEFAULT(object_max, 1 << 20);
	DEFAULT(heap_max, SIZE_MAX);
}

static int device_open(struct warp_active_server *server)
{
	const struct warp_active_server_attr *a = &server->attr;
	struct warp_device_attr device;
	uint64_t entries;
	int ret = warp_device_open(a->provider, &server->dev);

	if (!ret)
		ret = warp_device_query(server->dev, &device);
	if (ret)
		return ret;
	/* of each client: its receives, and Sends that they lead to, at most twice as many */
	entries = (uint64_t)a->clients * (a->window + 3 + a->workers) * 3;
	server->inline_max = base_min(device.max_inline, (unsigned int)ACTIVE_INLINE);
	if (server->inline_max < 128)
		return -EOPNOTSUPP;
	if (entries > device.max_cqe)
		return -EINVAL;
	return warp_cq_create(server->dev, (unsigned int)entries, &server->cq);
}

int warp_active_server_create(const struct warp_active_server_attr *attr,
			      struct warp_active_server **out)
{
	static const struct warp_active_server_attr none;
	struct warp_active_server *server;
	int ret;

	if (!out)
		return -EINVAL;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->attr = attr ? *attr : none;
	attr_fill(&server->attr);
	base_list_init(&server->regions);
	base_list_init(&server->sessions);
	pthread_mutex_init(&server->lock, NULL);
	active_pool_init(&server->pool);
	ret = attr_good(&server->attr) ? device_open(server) : -EINVAL;
	if (!ret)
		ret = active_cache_create(server->attr.cache, &active_helpers, &server->cache);
	if (ret)
		warp_active_server_destroy(server);
	else
		*out = server;
	return ret;
}

static void threads_stop(struct warp_active_server *server)
{
	/* pairs with the loops of active/door.c and active/lane.c */
	__atomic_store_n(&server->stop, true, __ATOMIC_RELEASE);
	if (server->door_runs)
		pthread_join(server->door_thread, NULL);
	if (server->lane_runs)
		pthread_join(server->lane_thread, NULL);
	active_pool_uninit(&server->pool);
}

void warp_active_server_destroy(struct warp_active_server *server)
{
	struct base_list *node;

	if (!server)
		return;
	threads_stop(server);
	active_udp_destroy(server->udp);
	warp_listener_destroy(server->listener);
	warp_cq_destroy(server->cq);
	warp_device_close(server->dev);
	active_cache_destroy(server->cache);
	while ((node = base_list_pop_front(&server->regions)))
		active_region_destroy(base_list_entry(node, struct warp_active_region, link));
	active_kernel_destroy(server->kernel);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

int warp_active_server_listen(struct warp_active_server *server, const struct sockaddr *addr,
			      socklen_t len)
{
	int ret;

	if (!server || !addr)
		return -EINVAL;
	if (server->listener)
		return -EALREADY;
	ret = warp_listen(server->dev, addr, len, 128, &server->listener);
	if (ret)
		return ret;
	ret = active_pool_start(&server->pool, server->attr.workers);
	if (!ret && !server->lane_runs)
		ret = active_lane_start(server);
	if (!ret)
		ret = active_door_start(server);
	if (ret) {
		base_err("active: no thread to serve with: %s", strerror(-ret));
		/* Clients are refused, and it may be tried again */
		warp_listener_destroy(server->listener);
		server->listener = NULL;
	}
	return ret;
}

int warp_active_server_addr(const struct warp_active_server *server, struct sockaddr_storage *addr)
{
	if (!server || !addr)
		return -EINVAL;
	return server->listener ? warp_listener_addr(server->listener, addr) : -ENOTCONN;
}

static size_t list_used(const struct base_list *regions)
{
	struct base_list *at, *next;
	size_t used = 0;

	base_list_foreach(at, next, regions) {
		struct warp_active_region *r = base_list_entry(at, struct warp_active_region, link);

		used += r->heap ? active_heap_used(r->heap) : 0;
	}
	return used;
}

static size_t heaps_used(struct warp_active_server *server)
{
	struct base_list *at, *next;
	size_t used;

	pthread_mutex_lock(&server->lock);
	used = list_used(&server->regions);
	base_list_foreach(at, next, &server->sessions)
		used += list_used(&base_list_entry(at, struct active_session, link)->own);
	pthread_mutex_unlock(&server->lock);
	return used;
}

void warp_active_server_query(struct warp_active_server *server, struct warp_active_stats *stats)
{
	struct active_cache_stats cache;

	active_cache_query(server->cache, &cache);
	*stats = (struct warp_active_stats){
		.clients = base_once(server->stats.clients),
		.runs = base_once(server->stats.runs),
		.loads = base_once(server->stats.loads),
		.refused = base_once(server->stats.refused),
		.broken = base_once(server->stats.broken),
		.fuel = base_once(server->stats.fuel),
		.objects = cache.objects,
		.object_bytes = cache.bytes,
		.heap_bytes = heaps_used(server),
	};
	if (server->kernel)
		active_kernel_query(server->kernel, stats);
	pthread_mutex_lock(&server->pool.lock);
	stats->waiting = server->pool.waiting;
	pthread_mutex_unlock(&server->pool.lock);
}

_Static_assert((int)WARP_ACTIVE_OK == (int)ACTIVE_OK, "codes");
_Static_assert((int)WARP_ACTIVE_UNKNOWN == (int)ACTIVE_UNKNOWN, "codes");
_Static_assert((int)WARP_ACTIVE_NO_FUNCTION == (int)ACTIVE_NO_FUNCTION, "codes");

const char *warp_active_code_text(enum warp_active_code code)
{
	return active_code_text((enum active_code)code);
}
