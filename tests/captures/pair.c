/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of a connection in one thread: see pair.h.
 */
#include "pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 32

void pair_fail(const struct pair *p, const char *what, int err)
{
	fprintf(stderr, "%s: %s: %s\n", p->name, what, err ? strerror(-err) : "not so");
	exit(1);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- objects ------------------------------------------------------------------------------ */

static void side_open(struct pair *p, struct side *s, struct warp_device *dev)
{
	const unsigned int all = WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_WRITE |
				 WARP_ACCESS_REMOTE_READ | WARP_ACCESS_REMOTE_ATOMIC;
	struct warp_qp_attr attr = { .max_send_wr = DEPTH,
				     .max_recv_wr = DEPTH,
				     .max_send_sge = 2,
				     .max_recv_sge = 1,
				     .signal_all = true };

	s->dev = dev;
	s->buf = calloc(1, PAIR_BUF);
	PAIR_CHECK(p, s->buf);
	PAIR_TRY(p, warp_pd_create(dev, &s->pd));
	PAIR_TRY(p, warp_pd_create(dev, &s->other_pd));
	PAIR_TRY(p, warp_cq_create(dev, 2 * DEPTH, &s->cq));
	attr.send_cq = attr.recv_cq = s->cq;
	PAIR_TRY(p, warp_qp_create(s->pd, &attr, &s->qp));
	PAIR_TRY(p, warp_mr_register(s->pd, s->buf, PAIR_BUF, all, &s->mr));
	PAIR_TRY(p,
		 warp_mr_register(s->pd, s->buf, PAIR_BUF, WARP_ACCESS_LOCAL_WRITE, &s->local_mr));
	PAIR_TRY(p, warp_mr_register(s->other_pd, s->buf, PAIR_BUF, all, &s->other_mr));
	for (int i = 0; i < 2; i++)
		PAIR_TRY(p, warp_mr_register(s->pd, s->small[i], PAIR_SMALL, all, &s->small_mr[i]));
}

static void side_close(struct pair *p, struct side *s)
{
	PAIR_TRY(p, warp_conn_destroy(s->conn));
	PAIR_TRY(p, warp_qp_destroy(s->qp));
	PAIR_TRY(p, warp_cq_destroy(s->cq));
	PAIR_TRY(p, warp_mr_deregister(s->mr));
	PAIR_TRY(p, warp_mr_deregister(s->local_mr));
	PAIR_TRY(p, warp_mr_deregister(s->other_mr));
	for (int i = 0; i < 2; i++)
		PAIR_TRY(p, warp_mr_deregister(s->small_mr[i]));
	PAIR_TRY(p, warp_pd_destroy(s->pd));
	PAIR_TRY(p, warp_pd_destroy(s->other_pd));
	free(s->buf);
}

void pair_open(struct pair *p, const char *name, struct warp_listener *listener,
	       struct warp_device *a, struct warp_device *b)
{
	*p = (struct pair){ .name = name, .listener = listener };
	side_open(p, &p->a, a);
	side_open(p, &p->b, b);
}

void pair_close(struct pair *p)
{
	side_close(p, &p->a);
	side_close(p, &p->b);
}

/* --- connections -------------------------------------------------------------------------- */

static struct warp_conn_param param_of(const struct pair_mode *m, unsigned int flags)
{
	static const char octets[512] = "private";

	return (struct warp_conn_param){ .private_data = octets,
					 .private_data_len = m->private_len,
					 .ird = m->depth,
					 .ord = m->depth,
					 .flags = flags };
}

static int tcp_socket(struct pair *p, const struct pair_mode *m)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	PAIR_CHECK(p, fd >= 0);
	if (m->mss)
		PAIR_CHECK(p, !setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &m->mss, sizeof(m->mss)));
	return fd;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	return getsockname(fd, (struct sockaddr *)&at, &len) ? 0 : ntohs(at.sin_port);
}

/* The capture knows connections by the port of who connected TCP. */
static void announce(const struct pair *p, uint16_t port)
{
	printf("conn %s %u\n", p->name, port);
	fflush(stdout);
}

static void request_over_listener(struct pair *p, const struct pair_mode *m,
				  const struct warp_conn_param *param)
{
	struct sockaddr_storage at;
	int fd = tcp_socket(p, m);

	PAIR_TRY(p, warp_listener_addr(p->listener, &at));
	PAIR_CHECK(p, !connect(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)));
	announce(p, port_of(fd));
	PAIR_TRY(p, warp_connect_fd(p->a.qp, fd, param, &p->a.conn));
	PAIR_TRY(p, warp_listener_get(p->listener, PAIR_WAIT_MS, &p->b.conn));
}

/* The socket that was accepted sends the Request, the one that connected waits for it. */
static void request_crossed(struct pair *p, const struct pair_mode *m,
			    const struct warp_conn_param *param)
{
	struct sockaddr_storage near;
	struct sockaddr_in at;
	struct warp_conn_param b = param_of(m, m->b_flags);
	socklen_t len = sizeof(at);
	int l = tcp_socket(p, m), fd = tcp_socket(p, m), accepted;

	PAIR_TRY(p, warp_listener_addr(p->listener, &near));
	memcpy(&at, &near, sizeof(at));
	at.sin_port = 0;
	PAIR_CHECK(p, !bind(l, (struct sockaddr *)&at, len) && !listen(l, 1));
	PAIR_CHECK(p, !getsockname(l, (struct sockaddr *)&at, &len));
	PAIR_CHECK(p, !connect(fd, (struct sockaddr *)&at, len));
	accepted = accept(l, NULL, NULL);
	PAIR_CHECK(p, accepted >= 0);
	close(l);
	announce(p, port_of(fd));
	PAIR_TRY(p, warp_accept_fd(p->b.dev, fd, &b, &p->b.conn));
	PAIR_TRY(p, warp_connect_fd(p->a.qp, accepted, param, &p->a.conn));
	PAIR_TRY(p, warp_conn_wait(p->b.conn, PAIR_WAIT_MS));
}

void pair_request(struct pair *p, const struct pair_mode *m)
{
	struct warp_conn_param param = param_of(m, m->a_flags);
	struct warp_conn_info info;

	(m->crossed ? request_crossed : request_over_listener)(p, m, &param);
	PAIR_TRY(p, warp_conn_query(p->b.conn, &info));
	PAIR_CHECK(p, info.state == WARP_CONN_REQUEST);
	PAIR_CHECK(p, info.private_data_len == m->private_len);
	PAIR_CHECK(p, !m->private_len ||
			      !memcmp(info.private_data, param.private_data, m->private_len));
}

void pair_connect(struct pair *p, const struct pair_mode *m)
{
	struct warp_conn_param param = param_of(m, m->b_flags);
	struct warp_conn_info info;

	pair_request(p, m);
	PAIR_TRY(p, warp_conn_accept(p->b.conn, p->b.qp, &param));
	PAIR_TRY(p, warp_conn_wait(p->a.conn, PAIR_WAIT_MS));
	PAIR_TRY(p, warp_conn_query(p->a.conn, &info));
	PAIR_CHECK(p, info.state == WARP_CONN_ESTABLISHED);
	PAIR_CHECK(p, info.private_data_len == m->private_len);
}

static enum warp_conn_state state_of(struct pair *p, struct side *s)
{
	struct warp_conn_info info;

	PAIR_TRY(p, warp_conn_query(s->conn, &info));
	return info.state;
}

static bool is_over(enum warp_conn_state state)
{
	return state == WARP_CONN_DISCONNECTED || state == WARP_CONN_ERROR;
}

static void drive(struct pair *p, struct side *s)
{
	struct warp_wc wc;

	while (warp_cq_poll(s->cq, &wc, 1) > 0)
		PAIR_CHECK(p, wc.status != WARP_WC_SUCCESS || wc.opcode != WARP_WC_RECV);
}

static void await_end(struct pair *p)
{
	int64_t end = now_ms() + PAIR_WAIT_MS;

	while (!is_over(state_of(p, &p->a)) || !is_over(state_of(p, &p->b))) {
		PAIR_CHECK(p, now_ms() < end);
		drive(p, &p->a);
		drive(p, &p->b);
		usleep(200);
	}
}

void pair_disconnect(struct pair *p)
{
	PAIR_TRY(p, warp_conn_disconnect(p->a.conn));
	PAIR_TRY(p, warp_conn_disconnect(p->b.conn));
	await_end(p);
	PAIR_CHECK(p, state_of(p, &p->a) == WARP_CONN_DISCONNECTED);
	PAIR_CHECK(p, state_of(p, &p->b) == WARP_CONN_DISCONNECTED);
}

/* --- operations --------------------------------------------------------------------------- */

void pair_recv(struct pair *p, struct side *s, uint32_t len)
{
	struct warp_sge sg = { s->buf + PAIR_BUF / 2, len, warp_mr_stag(s->mr) };
	struct warp_recv_wr wr = { .wr_id = ++s->recvs, .sg = &sg, .num_sge = 1 };

	PAIR_TRY(p, warp_qp_post_recv(s->qp, &wr, 1));
}

void pair_await(struct pair *p, struct side *s, enum warp_wc_opcode opcode)
{
	struct side *other = s == &p->a ? &p->b : &p->a;
	int64_t end = now_ms() + PAIR_WAIT_MS;
	int n;

	while (!(n = warp_cq_poll(s->cq, &s->last, 1))) {
		PAIR_CHECK(p, now_ms() < end);
		PAIR_TRY(p, warp_cq_poll(other->cq, NULL, 0));
	}
	PAIR_TRY(p, n);
	if (s->last.status != WARP_WC_SUCCESS)
		pair_fail(p, warp_wc_status_text(s->last.status), 0);
	PAIR_CHECK(p, s->last.opcode == opcode);
	PAIR_CHECK(p, s->last.qp == s->qp);
}

void pair_do(struct pair *p, struct side *s, const struct warp_send_wr *wr)
{
	static const enum warp_wc_opcode done[] = {
		[WARP_WR_SEND] = WARP_WC_SEND,
		[WARP_WR_SEND_INVALIDATE] = WARP_WC_SEND,
		[WARP_WR_WRITE] = WARP_WC_WRITE,
		[WARP_WR_READ] = WARP_WC_READ,
		[WARP_WR_IMMEDIATE] = WARP_WC_SEND,
		[WARP_WR_FETCH_ADD] = WARP_WC_ATOMIC,
		[WARP_WR_CMP_SWAP] = WARP_WC_ATOMIC,
		[WARP_WR_LOCAL_INVALIDATE] = WARP_WC_LOCAL_INVALIDATE,
	};

	PAIR_TRY(p, warp_qp_post_send(s->qp, wr, 1));
	pair_await(p, s, done[wr->opcode]);
	PAIR_CHECK(p, s->last.wr_id == wr->wr_id);
}

void pair_doom(struct pair *p, struct side *s, const struct warp_send_wr *wr)
{
	struct side *other = s == &p->a ? &p->b : &p->a;
	struct warp_conn_info here, there;

	PAIR_TRY(p, warp_qp_post_send(s->qp, wr, 1));
	await_end(p);
	PAIR_TRY(p, warp_conn_query(s->conn, &here));
	PAIR_TRY(p, warp_conn_query(other->conn, &there));
	PAIR_CHECK(p, here.state == WARP_CONN_ERROR && there.state == WARP_CONN_ERROR);
	PAIR_CHECK(p, here.term_received && here.term_received == there.term_sent);
	printf("term %s %u %u %u\n", p->name, here.term_received >> 12 & 15,
	       here.term_received >> 8 & 15, here.term_received & 255);
}
