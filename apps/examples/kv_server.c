/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-kv's server: registers the table for peers to read, tells each client where it is, and
 * then only works when a client wants something changed. Each client has a thread, which sleeps
 * meanwhile.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kv.h"

#define CLIENTS_MAX 256
#define IDLE_MS \
	1000 /* how often a thread that has nothing to do looks whether the program shall end */

struct server {
	const struct kv_options *opt;
	struct warp_device *dev;
	struct warp_pd *pd;
	struct kv_table table;
	struct warp_mr *mr;
	unsigned int clients; /* threads that run; atomic */
};

struct client {
	struct server *server;
	struct warp_conn *conn;
	struct {
		struct kv_request req;
		uint8_t answer;
	} mem;
};

static int answer_one(struct client *c, struct endpoint *ep, const struct warp_mr *mr)
{
	struct warp_wc wc;
	int ret;

	do
		ret = endpoint_await(ep, WARP_WC_RECV, &wc);
	while (ret == -ETIMEDOUT && !endpoint_stopped());
	if (ret)
		return ret;
	c->mem.answer = wc.byte_len == sizeof(c->mem.req)
				? kv_table_apply(&c->server->table, &c->mem.req)
				: KV_BAD;
	ret = endpoint_recv(ep, &c->mem.req, sizeof(c->mem.req), mr);
	return ret ? ret : endpoint_send(ep, &c->mem.answer, 1, mr);
}

static int client_serve(struct client *c, struct endpoint *ep, const struct warp_mr *mr)
{
	const struct server *s = c->server;
	struct kv_geometry at = { .magic = htobe32(KV_MAGIC),
				  .stag = htobe32(warp_mr_stag(s->mr)),
				  .to = htobe64((uintptr_t)s->table.slots),
				  .slots = htobe32(s->table.count),
				  .slot_size = htobe32(sizeof(struct kv_slot)) };
	struct warp_conn_param param = { .private_data = &at,
					 .private_data_len = sizeof(at),
					 .ird = 8,
					 .ord = 0,
					 .timeout_ms = s->opt->timeout_ms };
	int ret = endpoint_recv(ep, &c->mem.req, sizeof(c->mem.req), mr);

	if (!ret)
		ret = endpoint_accept(ep, c->conn, &param);
	ep->timeout_ms = IDLE_MS;
	while (!ret)
		ret = answer_one(c, ep, mr);
	return ret == -EPIPE || endpoint_stopped() ? 0 : ret;
}

static void *client_thread(void *arg)
{
	struct client *c = arg;
	struct server *s = c->server;
	struct endpoint ep;
	struct warp_mr *mr = NULL;
	int ret = endpoint_open(&ep, s->dev, s->pd, 4, s->opt->timeout_ms);

	ep.conn = c->conn;
	if (!ret)
		ret = warp_mr_register(s->pd, &c->mem, sizeof(c->mem), WARP_ACCESS_LOCAL_WRITE,
				       &mr);
	if (!ret)
		ret = client_serve(c, &ep, mr);
	if (ret)
		endpoint_complain(&ep, "a client", ret);
	endpoint_detach(&ep);
	warp_mr_deregister(mr);
	endpoint_close(&ep);
	free(c);
	__atomic_sub_fetch(&s->clients, 1, __ATOMIC_RELEASE); /* pairs with server_drain() */
	return NULL;
}

static void client_begin(struct server *s, struct warp_conn *conn)
{
	static const char busy[] = "too many clients";
	struct client *c = calloc(1, sizeof(*c));
	pthread_t thread;

	if (c && __atomic_add_fetch(&s->clients, 1, __ATOMIC_RELAXED) <= CLIENTS_MAX) {
		c->server = s;
		c->conn = conn;
		if (!pthread_create(&thread, NULL, client_thread, c)) {
			pthread_detach(thread);
			return;
		}
	}
	if (c)
		__atomic_sub_fetch(&s->clients, 1, __ATOMIC_RELAXED);
	free(c);
	warp_conn_reject(conn, busy, sizeof(busy) - 1);
	warp_conn_destroy(conn);
}

static int server_accept(struct server *s, struct warp_listener *l)
{
	struct warp_conn *conn;

	while (!endpoint_stopped()) {
		int ret = warp_listener_get(l, IDLE_MS, &conn);

		if (!ret)
			client_begin(s, conn);
		else if (ret != -EINTR && ret != -ETIMEDOUT)
			return ret;
	}
	return 0;
}

/* The table may go when no thread is left that a peer could read it through. */
static bool server_drain(struct server *s)
{
	for (int i = 0; i < 500; i++) {
		if (!__atomic_load_n(&s->clients, __ATOMIC_ACQUIRE))
			return true;
		usleep(10000);
	}
	return false;
}

static int server_listen(struct server *s)
{
	const struct kv_options *opt = s->opt;
	struct sockaddr_storage at;
	struct warp_listener *l;
	int ret = warp_listen(s->dev, (const struct sockaddr *)&opt->addr,
			      endpoint_addr_len(&opt->addr), 64, &l);

	if (ret)
		return ret;
	ret = warp_listener_addr(l, &at);
	if (!ret) {
		printf("port %u, %u slots\n", endpoint_port(&at), s->table.count);
		fflush(stdout);
		ret = server_accept(s, l);
	}
	warp_listener_destroy(l);
	return ret;
}

enum kv_status kv_server_run(const struct kv_options *opt, struct warp_device *dev)
{
	struct server s = { .opt = opt, .dev = dev, .table.tear_ms = opt->tear_ms };
	int ret = warp_pd_create(dev, &s.pd);

	if (!ret)
		ret = kv_table_init(&s.table, opt->slots);
	if (!ret)
		ret = warp_mr_register(s.pd, s.table.slots, kv_table_size(&s.table),
				       WARP_ACCESS_REMOTE_READ, &s.mr);
	if (!ret)
		ret = server_listen(&s);
	if (ret)
		endpoint_complain(NULL, "serve", ret);
	if (!server_drain(&s))
		return KV_FAILED; /* with all that the threads still use */
	warp_mr_deregister(s.mr);
	kv_table_uninit(&s.table);
	warp_pd_destroy(s.pd);
	return ret ? KV_FAILED : KV_OK;
}
