/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations through the native API. The server offers a buffer of one message in the
 * private data of its Reply and waits; the client writes there, or reads from there, again and
 * again, a few operations at once. Then a Send says that it is done, and one of the server's
 * that all before it has arrived: only then the clock stops.
 */
#include "apps/bench/bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/examples/endpoint.h"

#define DEPTH 16
#define TIMEOUT_MS 10000
#define WORD 8u

struct offer {
	uint64_t to;
	uint32_t stag;
	uint32_t pad;
};

struct side {
	struct warp_device *dev;
	struct endpoint ep;
	struct warp_mr *mr, *word_mr;
	char *buf, *word;
};

static void side_close(struct side *s)
{
	endpoint_detach(&s->ep);
	warp_mr_deregister(s->mr);
	warp_mr_deregister(s->word_mr);
	endpoint_close(&s->ep);
	warp_device_close(s->dev);
	free(s->buf);
}

static int side_open(struct side *s, const struct bench_plan *plan)
{
	unsigned int access = WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_WRITE |
			      WARP_ACCESS_REMOTE_READ;
	int err;

	*s = (struct side){ .buf = malloc(plan->size + 2 * WORD) };
	if (!s->buf)
		return -ENOMEM;
	memset(s->buf, 1, plan->size + 2 * WORD);
	s->word = s->buf + plan->size;
	err = warp_device_open(NULL, &s->dev);
	if (!err)
		err = endpoint_open(&s->ep, s->dev, NULL, DEPTH + 2, TIMEOUT_MS);
	if (!err)
		err = warp_mr_register(s->ep.pd, s->buf, plan->size, access, &s->mr);
	if (!err)
		err = warp_mr_register(s->ep.pd, s->word, 2 * WORD, WARP_ACCESS_LOCAL_WRITE,
				       &s->word_mr);
	if (!err)
		err = endpoint_recv(&s->ep, s->word + WORD, WORD, s->word_mr);
	return err;
}

static void side_say(const struct side *s, struct bench_end *end)
{
	struct warp_device_attr attr = { .provider = "" };
	struct warp_conn_info info = { .crc = false };

	warp_device_query(s->dev, &attr);
	warp_conn_query(s->ep.conn, &info);
	snprintf(end->said, sizeof(end->said),
		 "{\"cpu\": %d, \"provider\": \"%s\", \"crc\": %s, \"mulpdu\": %u, "
		 "\"tx_fpdus\": %llu, \"rx_fpdus\": %llu, \"depth\": %d}",
		 sched_getcpu(), attr.provider, info.crc ? "true" : "false", info.mulpdu,
		 (unsigned long long)info.tx_fpdus, (unsigned long long)info.rx_fpdus, DEPTH);
}

static struct warp_conn_param param_of(const struct bench_plan *plan)
{
	return (struct warp_conn_param){
		.ird = DEPTH,
		.ord = DEPTH,
		.flags = plan->crc ? 0 : WARP_CONN_NO_CRC,
	};
}

static int negative(int n)
{
	return n < 0 ? n : 0;
}

/* The next completion, and a good one */
static int completion(struct bench_end *end, struct side *s, struct warp_wc *wc)
{
	int got;

	if (end->plan->spin) {
		do {
			got = warp_cq_poll(s->ep.cq, wc, 1);
		} while (!got);
		got = negative(got);
	} else {
		got = endpoint_next(&s->ep, wc);
	}
	if (got)
		return got;
	return wc->status == WARP_WC_SUCCESS ? 0 : -ECONNRESET;
}

static int await_recv(struct bench_end *end, struct side *s)
{
	struct warp_wc wc = { .opcode = WARP_WC_SEND };
	int err = 0;

	while (!err && wc.opcode != WARP_WC_RECV)
		err = completion(end, s, &wc);
	return err;
}

/* --- server --- */

static int accept_one(struct bench_end *end, struct side *s, struct warp_listener *l)
{
	struct offer offer = { (uintptr_t)s->buf, warp_mr_stag(s->mr), 0 };
	struct warp_conn_param param = param_of(end->plan);
	struct sockaddr_storage addr;
	struct warp_conn *conn;
	int err = warp_listener_addr(l, &addr);

	if (err)
		return err;
	bench_end_listens(end, endpoint_port(&addr));
	err = warp_listener_get(l, TIMEOUT_MS, &conn);
	if (err)
		return err;
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	return endpoint_accept(&s->ep, conn, &param);
}

static int serve(struct bench_end *end, struct side *s)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_listener *l = NULL;
	int err = warp_listen(s->dev, (struct sockaddr *)&addr, sizeof(addr), 1, &l);

	if (!err)
		err = accept_one(end, s, l);
	warp_listener_destroy(l);
	if (!err)
		err = await_recv(end, s);
	if (!err)
		err = endpoint_send(&s->ep, s->word, WORD, s->word_mr);
	if (!err)
		err = endpoint_finish(&s->ep);
	return err;
}

int bench_rdma_server(struct bench_end *end)
{
	struct side s;
	int err = side_open(&s, end->plan);

	if (!err)
		err = serve(end, &s);
	if (!err)
		side_say(&s, end);
	side_close(&s);
	return err;
}

/* --- client --- */

static int client_connect(struct bench_end *end, struct side *s, struct offer *offer)
{
	struct sockaddr_storage addr = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;
	struct warp_conn_param param = param_of(end->plan);
	struct warp_conn_info info;
	int err;

	in->sin_port = htons(end->port);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	err = endpoint_connect(&s->ep, &addr, NULL, &param);
	if (!err)
		err = warp_conn_query(s->ep.conn, &info);
	if (err)
		return err;
	if (info.private_data_len != sizeof(*offer))
		return -EPROTO;
	memcpy(offer, info.private_data, sizeof(*offer));
	return 0;
}

/* Keeps DEPTH operations going until the limit: how many there were, or -errno */
static int64_t operate(struct bench_end *end, struct side *s, enum warp_wr_opcode op,
		       const struct offer *offer)
{
	struct warp_sge sg = { s->buf, (uint32_t)end->plan->size, warp_mr_stag(s->mr) };
	struct warp_send_wr wr = { .opcode = op,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = offer->stag,
				   .remote_to = offer->to };
	struct bench_limit limit;
	int64_t posted = 0, done = 0;
	struct warp_wc wc;
	bool more = true;
	int err = 0;

	bench_limit_init(&limit, end->plan);
	do {
		if (more) {
			err = negative(warp_qp_post_send(s->ep.qp, &wr, 1));
			posted += !err;
			more = bench_limit_go(&limit);
		}
		if (!err && posted > done && (!more || posted - done == DEPTH)) {
			err = completion(end, s, &wc);
			done += !err;
		}
	} while (!err && (more || posted > done));
	return err ? err : done;
}

static int transfer(struct bench_end *end, struct side *s, enum warp_wr_opcode op)
{
	struct offer offer;
	int64_t done;
	double begin;
	int err = client_connect(end, s, &offer);

	if (err)
		return err;
	begin = bench_clock();
	done = operate(end, s, op, &offer);
	err = done < 0 ? (int)done : 0;
	if (!err)
		err = endpoint_send(&s->ep, s->word, WORD, s->word_mr);
	if (!err)
		err = await_recv(end, s);
	end->value = (double)done * (double)end->plan->size / (bench_clock() - begin) / 1e6;
	if (!err)
		side_say(s, end);
	return err ? err : endpoint_finish(&s->ep);
}

static int client(struct bench_end *end, enum warp_wr_opcode op)
{
	struct side s;
	int err = side_open(&s, end->plan);

	if (!err)
		err = transfer(end, &s, op);
	side_close(&s);
	return err;
}

int bench_write_client(struct bench_end *end)
{
	return client(end, WARP_WR_WRITE);
}

int bench_read_client(struct bench_end *end)
{
	return client(end, WARP_WR_READ);
}
