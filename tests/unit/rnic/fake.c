/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The recording provider: see fake.h.
 */
#include "tests/unit/rnic/fake.h"

struct fake_call fake_last;

struct warp_device fake_dev = { .ops = &fake_ops }, fake_other_dev = { .ops = &fake_ops };
struct warp_pd fake_pd = { .dev = &fake_dev }, fake_other_pd = { .dev = &fake_other_dev };
struct warp_mr fake_mr = { .pd = &fake_pd, .stag = 0x1234 };
struct warp_cq fake_cq = { .dev = &fake_dev }, fake_other_cq = { .dev = &fake_other_dev };
struct warp_qp fake_qp = { .pd = &fake_pd, .context = &fake_qp };
struct warp_qp fake_other_qp = { .pd = &fake_other_pd };
struct warp_listener fake_listener = { .dev = &fake_dev };
struct warp_conn fake_conn = { .dev = &fake_dev };

static int note(const char *name, const void *object, const void *arg, unsigned long number)
{
	fake_last =
		(struct fake_call){ .name = name, .object = object, .arg = arg, .number = number };
	return FAKE_ANSWER;
}

static int note_param(const char *name, const void *object, const void *arg, unsigned long number,
		      const struct warp_conn_param *param)
{
	note(name, object, arg, number);
	fake_last.param = *param;
	return FAKE_ANSWER;
}

/* A call that has nothing but its object */
#define FAKE_PLAIN(name, type)                       \
	static int fake_##name(type object)          \
	{                                            \
		return note(#name, object, NULL, 0); \
	}
FAKE_PLAIN(device_close, struct warp_device *)
FAKE_PLAIN(pd_destroy, struct warp_pd *)
FAKE_PLAIN(mr_deregister, struct warp_mr *)
FAKE_PLAIN(cq_destroy, struct warp_cq *)
FAKE_PLAIN(cq_fd, struct warp_cq *)
FAKE_PLAIN(cq_ack, struct warp_cq *)
FAKE_PLAIN(qp_destroy, struct warp_qp *)
FAKE_PLAIN(listener_destroy, struct warp_listener *)
FAKE_PLAIN(listener_fd, struct warp_listener *)
FAKE_PLAIN(conn_fd, struct warp_conn *)
FAKE_PLAIN(conn_disconnect, struct warp_conn *)
FAKE_PLAIN(conn_abort, struct warp_conn *)
FAKE_PLAIN(conn_destroy, struct warp_conn *)

static int fake_device_open(const char *name, struct warp_device **out)
{
	return note("device_open", name, out, 0);
}

static int fake_device_query(const struct warp_device *dev, struct warp_device_attr *attr)
{
	return note("device_query", dev, attr, 0);
}

static int fake_pd_create(struct warp_device *dev, struct warp_pd **out)
{
	return note("pd_create", dev, out, 0);
}

static int fake_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
			    struct warp_mr **out)
{
	return note("mr_register", pd, addr, length);
}

static int fake_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out)
{
	return note("cq_create", dev, out, entries);
}

static int fake_cq_poll(struct warp_cq *cq, struct warp_wc *wc, int n)
{
	return note("cq_poll", cq, wc, (unsigned long)n);
}

static int fake_cq_arm(struct warp_cq *cq, bool solicited_only)
{
	return note("cq_arm", cq, NULL, solicited_only);
}

static int fake_cq_wait(struct warp_cq *cq, int timeout_ms)
{
	return note("cq_wait", cq, NULL, (unsigned long)timeout_ms);
}

static int fake_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out)
{
	return note("qp_create", pd, attr, 0);
}

static int fake_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n)
{
	return note("qp_post_send", qp, wr, n);
}

static int fake_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n)
{
	return note("qp_post_recv", qp, wr, n);
}

static int fake_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len,
		       int backlog, struct warp_listener **out)
{
	return note("listen", dev, addr, (unsigned long)backlog);
}

static int fake_listener_addr(const struct warp_listener *l, struct sockaddr_storage *addr)
{
	return note("listener_addr", l, addr, 0);
}

static int fake_listener_get(struct warp_listener *l, int timeout_ms, struct warp_conn **out)
{
	return note("listener_get", l, out, (unsigned long)timeout_ms);
}

static int fake_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
			const struct warp_conn_param *param, struct warp_conn **out)
{
	return note_param("connect", qp, addr, len, param);
}

static int fake_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
			   struct warp_conn **out)
{
	return note_param("connect_fd", qp, out, (unsigned long)fd, param);
}

static int fake_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
			  struct warp_conn **out)
{
	return note_param("accept_fd", dev, out, (unsigned long)fd, param);
}

static int fake_conn_accept(struct warp_conn *c, struct warp_qp *qp,
			    const struct warp_conn_param *param)
{
	return note_param("conn_accept", c, qp, 0, param);
}

static int fake_conn_reject(struct warp_conn *c, const void *private_data, size_t len)
{
	return note("conn_reject", c, private_data, len);
}

static int fake_conn_wait(struct warp_conn *c, int timeout_ms)
{
	return note("conn_wait", c, NULL, (unsigned long)timeout_ms);
}

static int fake_conn_query(struct warp_conn *c, struct warp_conn_info *info)
{
	return note("conn_query", c, info, 0);
}

const struct rnic_ops fake_ops = {
	.name = "fake",
	.device_open = fake_device_open,
	.device_close = fake_device_close,
	.device_query = fake_device_query,
	.pd_create = fake_pd_create,
	.pd_destroy = fake_pd_destroy,
	.mr_register = fake_mr_register,
	.mr_deregister = fake_mr_deregister,
	.cq_create = fake_cq_create,
	.cq_destroy = fake_cq_destroy,
	.cq_poll = fake_cq_poll,
	.cq_arm = fake_cq_arm,
	.cq_fd = fake_cq_fd,
	.cq_ack = fake_cq_ack,
	.cq_wait = fake_cq_wait,
	.qp_create = fake_qp_create,
	.qp_destroy = fake_qp_destroy,
	.qp_post_send = fake_qp_post_send,
	.qp_post_recv = fake_qp_post_recv,
	.listen = fake_listen,
	.listener_destroy = fake_listener_destroy,
	.listener_addr = fake_listener_addr,
	.listener_fd = fake_listener_fd,
	.listener_get = fake_listener_get,
	.connect = fake_connect,
	.connect_fd = fake_connect_fd,
	.accept_fd = fake_accept_fd,
	.conn_accept = fake_conn_accept,
	.conn_reject = fake_conn_reject,
	.conn_wait = fake_conn_wait,
	.conn_fd = fake_conn_fd,
	.conn_query = fake_conn_query,
	.conn_disconnect = fake_conn_disconnect,
	.conn_abort = fake_conn_abort,
	.conn_destroy = fake_conn_destroy,
};
