/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An end that is a provider, through the native API: the software provider, over a TCP connection
 * that the suite made, or a device, whose connections are its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

enum { MRS = 64, WRS = 256, CQES = 4096, TRIES = 20 };

struct provider {
	struct end end;
	struct setup setup;
	struct warp_device *dev;
	struct warp_pd *pd, *foreign;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_listener *listener; /* of a device: conn comes from it */
	struct warp_conn *conn;
	int error; /* of the call that should have made conn */
	struct warp_mr *mrs[MRS];
	unsigned int nmrs;
};

static struct provider *of(struct end *e)
{
	return (struct provider *)e;
}

static struct warp_conn_param param_of(const struct setup *s)
{
	struct warp_conn_param p = {
		.private_data = s->pd,
		.private_data_len = s->pd_len,
		.ird = s->ird ? s->ird : 8,
		.ord = s->ord ? s->ord : 8,
		.flags = s->rtr | (s->no_crc ? WARP_CONN_NO_CRC : 0) |
			 (s->markers ? WARP_CONN_MARKERS : 0) | (s->rev == 2 ? 0 : WARP_CONN_REV1) |
			 (s->rtr ? 0 : WARP_CONN_NO_P2P),
		.timeout_ms = s->timeout_ms,
	};

	return p;
}

static struct provider *create_on(const char *device, const struct setup *s)
{
	struct provider *e = calloc(1, sizeof(*e));
	struct warp_qp_attr attr = { .max_send_wr = WRS,
				     .max_recv_wr = WRS,
				     .max_send_sge = 4,
				     .max_recv_sge = 4,
				     .signal_all = true };

	check(e, "no memory");
	e->end.ops = &end_provider_ops;
	e->setup = *s;
	check_eq(warp_device_open(device, &e->dev), 0);
	check_eq(warp_pd_create(e->dev, &e->pd), 0);
	check_eq(warp_pd_create(e->dev, &e->foreign), 0);
	check_eq(warp_cq_create(e->dev, CQES, &e->cq), 0);
	attr.send_cq = attr.recv_cq = e->cq;
	check_eq(warp_qp_create(e->pd, &attr, &e->qp), 0);
	return e;
}

static struct end *provider_create(struct llp *l, int fd, const struct setup *s)
{
	struct provider *e = create_on("soft", s);
	struct warp_conn_param param = param_of(s);

	if (s->initiator)
		e->error = warp_connect_fd(e->qp, fd, &param, &e->conn);
	else
		e->error = warp_accept_fd(e->dev, fd, &param, &e->conn);
	return &e->end;
}

/* The connection manager may choose a port that the kernel, which siw asks, has given away */
static void listen_somewhere(struct provider *e, const struct sockaddr_in *at)
{
	int err = -EADDRINUSE;

	for (int i = 0; i < TRIES && err == -EADDRINUSE; i++)
		err = warp_listen(e->dev, (const struct sockaddr *)at, sizeof(*at), 4,
				  &e->listener);
	check_eq(err, 0);
}

struct end *end_device_create(const struct setup *s, struct sockaddr_in *at)
{
	struct provider *e = create_on(getenv("CONFORMANCE_DEVICE"), s);
	struct warp_conn_param param;
	struct sockaddr_storage bound;

	/* Revisions are the device's affair */
	e->setup.rev = 2;
	param = param_of(&e->setup);
	if (s->initiator) {
		e->error =
			warp_connect(e->qp, (struct sockaddr *)at, sizeof(*at), &param, &e->conn);
		return &e->end;
	}
	listen_somewhere(e, at);
	check_eq(warp_listener_addr(e->listener, &bound), 0);
	memcpy(at, &bound, sizeof(*at));
	return &e->end;
}

static void provider_destroy(struct end *end)
{
	struct provider *e = of(end);

	check_eq(warp_conn_destroy(e->conn), 0);
	check_eq(warp_listener_destroy(e->listener), 0);
	check_eq(warp_qp_destroy(e->qp), 0);
	check_eq(warp_cq_destroy(e->cq), 0);
	for (unsigned int i = 0; i < e->nmrs; i++)
		check_eq(warp_mr_deregister(e->mrs[i]), 0);
	check_eq(warp_pd_destroy(e->foreign), 0);
	check_eq(warp_pd_destroy(e->pd), 0);
	check_eq(warp_device_close(e->dev), 0);
	free(e);
}

static void provider_info(struct end *end, struct warp_conn_info *info)
{
	struct provider *e = of(end);

	*info = (struct warp_conn_info){ .state = e->listener ? WARP_CONN_CONNECTING
							      : WARP_CONN_ERROR,
					 .error = e->error };
	if (e->conn)
		check_eq(warp_conn_query(e->conn, info), 0);
}

static int provider_accept(struct end *end, const struct setup *s)
{
	struct provider *e = of(end);
	struct warp_conn_param param = param_of(s);

	return warp_conn_accept(e->conn, e->qp, &param);
}

static int provider_reject(struct end *end, const void *pd, size_t len)
{
	return warp_conn_reject(of(end)->conn, pd, len);
}

static void provider_progress(struct end *end)
{
	struct provider *e = of(end);
	struct warp_conn_info info;

	if (e->listener && !e->conn)
		warp_listener_get(e->listener, 0, &e->conn);
	provider_info(end, &info);
	if (e->conn && info.state == WARP_CONN_CONNECTING)
		warp_conn_wait(e->conn, 0);
	if (info.state == WARP_CONN_REQUEST && !e->setup.hold)
		e->error = provider_accept(end, &e->setup);
	warp_cq_poll(e->cq, NULL, 0);
}

static uint32_t provider_mr(struct end *end, void *addr, size_t len, unsigned int access,
			    bool foreign)
{
	struct provider *e = of(end);
	struct warp_mr **mr = &e->mrs[e->nmrs];

	check(e->nmrs < MRS, "too many regions");
	if (warp_mr_register(foreign ? e->foreign : e->pd, addr, len, access, mr))
		return 0;
	e->nmrs++;
	return warp_mr_stag(*mr);
}

static void provider_mr_remove(struct end *end, uint32_t stag)
{
	struct provider *e = of(end);

	for (unsigned int i = 0; i < e->nmrs; i++) {
		if (warp_mr_stag(e->mrs[i]) == stag) {
			check_eq(warp_mr_deregister(e->mrs[i]), 0);
			e->mrs[i] = e->mrs[--e->nmrs];
			return;
		}
	}
}

static int provider_post_recv(struct end *end, const struct warp_recv_wr *wr)
{
	int rc = warp_qp_post_recv(of(end)->qp, wr, 1);

	return rc < 0 ? rc : 0;
}

static int provider_post_send(struct end *end, const struct warp_send_wr *wr)
{
	int rc = warp_qp_post_send(of(end)->qp, wr, 1);

	return rc < 0 ? rc : 0;
}

static int provider_poll(struct end *end, struct warp_wc *wc, int n)
{
	return warp_cq_poll(of(end)->cq, wc, n);
}

static void provider_disconnect(struct end *end)
{
	warp_conn_disconnect(of(end)->conn);
}

static struct rdmap_stream *provider_stream(struct end *end)
{
	return NULL;
}

struct warp_cq *end_provider_cq(struct end *end)
{
	return of(end)->cq;
}

const struct end_ops end_provider_ops = {
	.create = provider_create,
	.destroy = provider_destroy,
	.progress = provider_progress,
	.accept = provider_accept,
	.reject = provider_reject,
	.mr = provider_mr,
	.mr_remove = provider_mr_remove,
	.post_recv = provider_post_recv,
	.post_send = provider_post_send,
	.poll = provider_poll,
	.info = provider_info,
	.disconnect = provider_disconnect,
	.stream = provider_stream,
};
