/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An end that is the software provider, through the native API, over a TCP connection that the
 * suite made.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

enum { MRS = 64, WRS = 256, CQES = 4096 };

struct soft {
	struct end end;
	struct setup setup;
	struct warp_device *dev;
	struct warp_pd *pd, *foreign;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	int error; /* of the call that should have made conn */
	struct warp_mr *mrs[MRS];
	unsigned int nmrs;
};

static struct soft *of(struct end *e)
{
	return (struct soft *)e;
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

static struct end *soft_create(struct llp *l, int fd, const struct setup *s)
{
	struct soft *e = calloc(1, sizeof(*e));
	struct warp_conn_param param = param_of(s);
	struct warp_qp_attr attr = { .max_send_wr = WRS,
				     .max_recv_wr = WRS,
				     .max_send_sge = 4,
				     .max_recv_sge = 4,
				     .signal_all = true };

	check(e, "no memory");
	e->end.ops = &end_soft_ops;
	e->setup = *s;
	check_eq(warp_device_open("soft", &e->dev), 0);
	check_eq(warp_pd_create(e->dev, &e->pd), 0);
	check_eq(warp_pd_create(e->dev, &e->foreign), 0);
	check_eq(warp_cq_create(e->dev, CQES, &e->cq), 0);
	attr.send_cq = attr.recv_cq = e->cq;
	check_eq(warp_qp_create(e->pd, &attr, &e->qp), 0);
	if (s->initiator)
		e->error = warp_connect_fd(e->qp, fd, &param, &e->conn);
	else
		e->error = warp_accept_fd(e->dev, fd, &param, &e->conn);
	return &e->end;
}

static void soft_destroy(struct end *end)
{
	struct soft *e = of(end);

	check_eq(warp_conn_destroy(e->conn), 0);
	check_eq(warp_qp_destroy(e->qp), 0);
	check_eq(warp_cq_destroy(e->cq), 0);
	for (unsigned int i = 0; i < e->nmrs; i++)
		check_eq(warp_mr_deregister(e->mrs[i]), 0);
	check_eq(warp_pd_destroy(e->foreign), 0);
	check_eq(warp_pd_destroy(e->pd), 0);
	check_eq(warp_device_close(e->dev), 0);
	free(e);
}

static void soft_info(struct end *end, struct warp_conn_info *info)
{
	struct soft *e = of(end);

	*info = (struct warp_conn_info){ .state = WARP_CONN_ERROR, .error = e->error };
	if (e->conn)
		check_eq(warp_conn_query(e->conn, info), 0);
}

static int soft_accept(struct end *end, const struct setup *s)
{
	struct soft *e = of(end);
	struct warp_conn_param param = param_of(s);

	return warp_conn_accept(e->conn, e->qp, &param);
}

static int soft_reject(struct end *end, const void *pd, size_t len)
{
	return warp_conn_reject(of(end)->conn, pd, len);
}

static void soft_progress(struct end *end)
{
	struct soft *e = of(end);
	struct warp_conn_info info;

	soft_info(end, &info);
	if (info.state == WARP_CONN_CONNECTING)
		warp_conn_wait(e->conn, 0);
	if (info.state == WARP_CONN_REQUEST && !e->setup.hold)
		soft_accept(end, &e->setup);
	warp_cq_poll(e->cq, NULL, 0);
}

static uint32_t soft_mr(struct end *end, void *addr, size_t len, unsigned int access, bool foreign)
{
	struct soft *e = of(end);
	struct warp_mr **mr = &e->mrs[e->nmrs];

	check(e->nmrs < MRS, "too many regions");
	if (warp_mr_register(foreign ? e->foreign : e->pd, addr, len, access, mr))
		return 0;
	e->nmrs++;
	return warp_mr_stag(*mr);
}

static void soft_mr_remove(struct end *end, uint32_t stag)
{
	struct soft *e = of(end);

	for (unsigned int i = 0; i < e->nmrs; i++) {
		if (warp_mr_stag(e->mrs[i]) == stag) {
			check_eq(warp_mr_deregister(e->mrs[i]), 0);
			e->mrs[i] = e->mrs[--e->nmrs];
			return;
		}
	}
}

static int soft_post_recv(struct end *end, const struct warp_recv_wr *wr)
{
	int rc = warp_qp_post_recv(of(end)->qp, wr, 1);

	return rc < 0 ? rc : 0;
}

static int soft_post_send(struct end *end, const struct warp_send_wr *wr)
{
	int rc = warp_qp_post_send(of(end)->qp, wr, 1);

	return rc < 0 ? rc : 0;
}

static int soft_poll(struct end *end, struct warp_wc *wc, int n)
{
	return warp_cq_poll(of(end)->cq, wc, n);
}

static void soft_disconnect(struct end *end)
{
	warp_conn_disconnect(of(end)->conn);
}

static struct rdmap_stream *soft_stream(struct end *end)
{
	return NULL;
}

struct warp_cq *end_soft_cq(struct end *end)
{
	return of(end)->cq;
}

const struct end_ops end_soft_ops = {
	.create = soft_create,
	.destroy = soft_destroy,
	.progress = soft_progress,
	.accept = soft_accept,
	.reject = soft_reject,
	.mr = soft_mr,
	.mr_remove = soft_mr_remove,
	.post_recv = soft_post_recv,
	.post_send = soft_post_send,
	.poll = soft_poll,
	.info = soft_info,
	.disconnect = soft_disconnect,
	.stream = soft_stream,
};
