/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Active RDMA is measured against: a server in C for just these questions, which polls, and
 * its client, over the same native API.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "apps/examples/btree_fill.h"
#include "speed.h"

enum { RECEIVES = 16 };

struct rpc {
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct warp_mr *mr;
	struct question in[RECEIVES];
};

static void receive(struct rpc *r, uint64_t i)
{
	const struct warp_sge sg = { &r->in[i], sizeof(r->in[i]), warp_mr_stag(r->mr) };
	const struct warp_recv_wr wr = { .wr_id = i, .sg = &sg, .num_sge = 1 };

	warp_qp_post_recv(r->qp, &wr, 1);
}

static void say(struct rpc *r, const void *from, size_t len)
{
	struct warp_sge sg = { (void *)(uintptr_t)from, (uint32_t)len, 0 };
	const struct warp_send_wr wr = {
		.opcode = WARP_WR_SEND, .flags = WARP_SEND_INLINE, .sg = &sg, .num_sge = 1
	};

	if (warp_qp_post_send(r->qp, &wr, 1) != 1)
		fail("a message is not sent", 0);
}

/* The next message, which must be given back by receive() */
static uint64_t hear(struct rpc *r)
{
	struct warp_wc wc;

	for (;;) {
		int n = warp_cq_poll(r->cq, &wc, 1);

		if (n < 0 || (n && wc.status != WARP_WC_SUCCESS))
			fail("the connection is over", n);
		if (n && wc.opcode == WARP_WC_RECV)
			return wc.wr_id;
	}
}

static struct rpc *end_open(void)
{
	struct warp_qp_attr attr = { .max_send_wr = RECEIVES,
				     .max_recv_wr = RECEIVES,
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .max_inline = 64 };
	struct rpc *r = calloc(1, sizeof(*r));

	if (!r || warp_device_open(NULL, &r->dev) || warp_pd_create(r->dev, &r->pd) ||
	    warp_cq_create(r->dev, 4 * RECEIVES, &r->cq))
		fail("no device", 0);
	attr.send_cq = attr.recv_cq = r->cq;
	if (warp_qp_create(r->pd, &attr, &r->qp) ||
	    warp_mr_register(r->pd, r->in, sizeof(r->in), WARP_ACCESS_LOCAL_WRITE, &r->mr))
		fail("no queue pair", 0);
	for (uint64_t i = 0; i < RECEIVES; i++)
		receive(r, i);
	return r;
}

static unsigned long tree_make(unsigned long keys)
{
	void *memory = calloc(1, btree_fill_size(keys));

	if (!memory)
		fail("no memory", 0);
	btree_fill(memory, keys);
	return (unsigned long)memory;
}

static unsigned long hash_make(void)
{
	void *memory = calloc(1, hash_size());

	if (!memory)
		fail("no memory", 0);
	hash_fill(memory);
	return (unsigned long)memory;
}

unsigned long rpc_answer(const struct question *q)
{
	switch (q->structure) {
	case TREE:
		return tree_find(q->at, q->key);
	case HASH_GET:
		return hash_near_get(q->at, q->key);
	case HASH_PUT:
		return hash_near_put(q->at, q->key);
	default:
		return list_walk(q);
	}
}

struct told rpc_structures(void)
{
	static struct node nodes[NODES];
	struct told told = { .first = (unsigned long)nodes, .hash = hash_make() };

	list_fill(nodes);
	for (int i = 0; i < TREES; i++)
		told.tree[i] = tree_make(tree_keys[i]);
	return told;
}

void rpc_serve(int tell)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct told told = rpc_structures();
	struct rpc *r = end_open();
	struct warp_listener *l;

	if (warp_listen(r->dev, (struct sockaddr *)&any, sizeof(any), 1, &l) ||
	    warp_listener_addr(l, &told.addr))
		fail("no listener", 0);
	if (write(tell, &told, sizeof(told)) != sizeof(told))
		fail("nobody to tell", 0);
	if (warp_listener_get(l, -1, &r->conn) || warp_conn_accept(r->conn, r->qp, NULL))
		fail("no client", 0);
	for (;;) {
		uint64_t i = hear(r);
		unsigned long value = rpc_answer(&r->in[i]);

		receive(r, i);
		say(r, &value, sizeof(value));
	}
}

struct rpc *rpc_connect(const struct sockaddr_storage *addr)
{
	struct rpc *r = end_open();

	if (warp_connect(r->qp, (const struct sockaddr *)addr, sizeof(struct sockaddr_in), NULL,
			 &r->conn) ||
	    warp_conn_wait(r->conn, 10000))
		fail("no server", 0);
	return r;
}

unsigned long rpc_call(struct rpc *r, const struct question *q)
{
	unsigned long value;
	uint64_t i;

	say(r, q, sizeof(*q));
	i = hear(r);
	memcpy(&value, &r->in[i], sizeof(value));
	receive(r, i);
	return value;
}
