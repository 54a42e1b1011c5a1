/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_SOFT_END_H
#define TESTS_SOFT_END_H

/*
 * Two queue pairs, by the public calls. Usable with and without Criterion: what goes wrong aborts.
 */
#include "tests/unit/soft/where.h"

#define END_ROOM (1 << 20)
#define END_PIECES 16

struct end {
	struct warp_device *dev;
	struct warp_pd *pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	struct warp_mr *mr;
	uint8_t *mem;	     /* END_ROOM */
	unsigned int pieces; /* of a message: END_PIECES, or what the device has */
};

static const unsigned int end_all_access = WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_WRITE |
					   WARP_ACCESS_REMOTE_READ | WARP_ACCESS_REMOTE_ATOMIC;

static inline void end_init(struct end *e, struct warp_device *dev, uint32_t depth)
{
	struct warp_device_attr has;
	struct warp_qp_attr attr = {
		.max_send_wr = depth, .max_recv_wr = depth, .max_inline = 256, .context = e
	};

	memset(e, 0, sizeof(*e));
	e->dev = dev;
	MUST(warp_device_query(dev, &has) == 0);
	e->pieces = has.max_sge < END_PIECES ? has.max_sge : END_PIECES;
	attr.max_send_sge = attr.max_recv_sge = e->pieces;
	e->mem = aligned_alloc(4096, END_ROOM);
	memset(e->mem, 0, END_ROOM);
	MUST(warp_pd_create(dev, &e->pd) == 0);
	MUST(warp_cq_create(dev, 4 * depth, &e->cq) == 0);
	MUST(warp_mr_register(e->pd, e->mem, END_ROOM, end_all_access, &e->mr) == 0);
	attr.send_cq = attr.recv_cq = e->cq;
	MUST(warp_qp_create(e->pd, &attr, &e->qp) == 0);
}

static inline void end_uninit(struct end *e)
{
	MUST(warp_conn_destroy(e->conn) == 0);
	MUST(warp_qp_destroy(e->qp) == 0);
	MUST(warp_mr_deregister(e->mr) == 0);
	MUST(warp_cq_destroy(e->cq) == 0);
	MUST(warp_pd_destroy(e->pd) == 0);
	free(e->mem);
}

/* A listener on a free port of loopback, and its address */
static inline struct warp_listener *end_listen(struct warp_device *dev, struct sockaddr_storage *at)
{
	struct sockaddr_in sin = end_address();
	struct warp_listener *l;
	int home = end_visit();

	MUST(warp_listen(dev, (struct sockaddr *)&sin, sizeof(sin), 16, &l) == 0);
	end_return(home);
	MUST(warp_listener_addr(l, at) == 0);
	return l;
}

/*
 * Connects the two; the initiator's first message, if the responder waits for one, is the
 * caller's
 */
static inline void ends_connect(struct end *i, struct end *r, const struct warp_conn_param *ip,
				const struct warp_conn_param *rp)
{
	struct sockaddr_storage at;
	struct warp_listener *l = end_listen(r->dev, &at);

	MUST(warp_connect(i->qp, (struct sockaddr *)&at, sizeof(struct sockaddr_in), ip,
			  &i->conn) == 0);
	MUST(warp_listener_get(l, 5000, &r->conn) == 0);
	MUST(warp_conn_accept(r->conn, r->qp, rp) == 0);
	MUST(warp_conn_wait(i->conn, 5000) == 0);
	MUST(warp_listener_destroy(l) == 0);
}

static inline struct warp_sge end_sge(const struct end *e, size_t off, uint32_t len)
{
	return (struct warp_sge){ e->mem + off, len, warp_mr_stag(e->mr) };
}

/* The next completion; the other end is driven meanwhile */
static inline struct warp_wc end_next(struct end *e, struct end *other)
{
	struct warp_wc wc;

	for (int i = 0; i < 5000000; i++) {
		int n = warp_cq_poll(e->cq, &wc, 1);

		MUST(n >= 0);
		if (n == 1)
			return wc;
		if (other)
			MUST(warp_cq_poll(other->cq, &wc, 0) >= 0);
	}
	MUST(!"a completion");
	return wc;
}

static inline int end_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	struct warp_sge sge = end_sge(e, off, len);
	struct warp_recv_wr wr = { .wr_id = id, .sg = &sge, .num_sge = 1 };

	return warp_qp_post_recv(e->qp, &wr, 1);
}

/*
 * A signalled work request with one piece of @len octets at @off (none when 0), completed by
 * @wr's other members
 */
static inline int end_post(struct end *e, struct warp_send_wr wr, size_t off, uint32_t len)
{
	struct warp_sge sge = end_sge(e, off, len);

	if (len) {
		wr.sg = &sge;
		wr.num_sge = 1;
	}
	wr.flags |= WARP_SEND_SIGNALED;
	return warp_qp_post_send(e->qp, &wr, 1);
}

#endif
