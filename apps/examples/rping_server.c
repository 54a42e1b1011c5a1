/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The side that answers: reads what the client offers, and writes it to where the client wants
 * it. In persistent mode each client has a thread of its own, and nothing is shared between
 * them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rping.h"

#define CLIENTS_MAX 256

struct client {
	const struct rping_options *opt;
	struct warp_device *dev;
	struct warp_conn *conn;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int clients; /* threads that run; under lock */

static int pong(struct rping_side *s)
{
	struct rping_info there;
	uint32_t len;
	int ret = rping_side_hear(s, &there);

	if (ret)
		return ret;
	if (there.size > s->size)
		return -EMSGSIZE;
	len = there.size;
	ret = rping_side_move(s, WARP_WR_READ, &there, len);
	if (!ret && s->opt->verbose)
		printf("server ping data: %.*s\n", (int)len, s->data);
	if (!ret)
		ret = rping_side_tell(s, NULL, NULL, 0);
	if (!ret)
		ret = rping_side_hear(s, &there);
	if (!ret)
		ret = rping_side_move(s, WARP_WR_WRITE, &there,
				      len < there.size ? len : there.size);
	if (!ret)
		ret = rping_side_tell(s, NULL, NULL, 0);
	return ret;
}

/* Until the client leaves in order, which is the only good end. */
static int serve(struct rping_side *s, struct warp_conn *conn)
{
	struct warp_conn_param param = rping_side_param(s);
	int ret = endpoint_accept(&s->ep, conn, &param);

	if (ret) {
		endpoint_complain(&s->ep, "accept", ret);
		return ret;
	}
	do
		ret = pong(s);
	while (!ret);
	if (ret == -EPIPE || endpoint_stopped()) {
		if (s->opt->debug)
			fprintf(stderr, "warp-rping: the client has left\n");
		return 0;
	}
	endpoint_complain(&s->ep, "answer", ret);
	return ret;
}

static int serve_one(const struct rping_options *opt, struct warp_device *dev,
		     struct warp_conn *conn)
{
	struct rping_side s;
	int ret = rping_side_open(&s, opt, dev, opt->size ? opt->size : RPING_SIZE_MAX);

	if (ret) {
		endpoint_complain(NULL, "no resources", ret);
		warp_conn_destroy(conn);
		return ret;
	}
	ret = serve(&s, conn);
	rping_side_close(&s);
	return ret;
}

static void *client_thread(void *arg)
{
	struct client *c = arg;

	serve_one(c->opt, c->dev, c->conn);
	free(c);
	pthread_mutex_lock(&lock);
	clients--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static unsigned int client_count(int change)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	clients += (unsigned int)change;
	n = clients;
	pthread_mutex_unlock(&lock);
	return n;
}

static void client_begin(const struct rping_options *opt, struct warp_device *dev,
			 struct warp_conn *conn)
{
	static const char busy[] = "too many clients";
	struct client *c = malloc(sizeof(*c));
	pthread_t thread;

	if (c && client_count(1) <= CLIENTS_MAX) {
		*c = (struct client){ opt, dev, conn };
		if (!pthread_create(&thread, NULL, client_thread, c)) {
			pthread_detach(thread);
			return;
		}
	}
	if (c)
		client_count(-1);
	free(c);
	warp_conn_reject(conn, busy, sizeof(busy) - 1);
	warp_conn_destroy(conn);
}

/*
 * The threads look at the flag that a signal sets, at the latest when a wait of theirs is over.
 */
static void clients_finish(int timeout_ms)
{
	for (int i = 0; client_count(0) && i < timeout_ms / 10; i++)
		usleep(10000);
}

static int serve_all(const struct rping_options *opt, struct warp_device *dev,
		     struct warp_listener *l)
{
	struct warp_conn *conn;

	while (!endpoint_stopped()) {
		int ret = warp_listener_get(l, 1000, &conn);

		if (ret == -EINTR || ret == -ETIMEDOUT)
			continue;
		if (ret) {
			endpoint_complain(NULL, "listen", ret);
			return ret;
		}
		if (!opt->persistent)
			return serve_one(opt, dev, conn);
		client_begin(opt, dev, conn);
	}
	clients_finish(opt->timeout_ms);
	return 0;
}

int rping_server_run(const struct rping_options *opt, struct warp_device *dev)
{
	struct sockaddr_storage at;
	struct warp_listener *l;
	int ret = warp_listen(dev, (const struct sockaddr *)&opt->addr,
			      endpoint_addr_len(&opt->addr), 64, &l);

	if (ret) {
		endpoint_complain(NULL, "listen", ret);
		return 1;
	}
	if (!warp_listener_addr(l, &at) && (!opt->port || opt->debug)) {
		printf("port %u\n", endpoint_port(&at));
		fflush(stdout);
	}
	ret = serve_all(opt, dev, l);
	warp_listener_destroy(l);
	return ret ? 1 : 0;
}
