/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's connection, and the memory that its messages go from and come to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "active/client.h"
#include "base/bits.h"
#include "base/clock.h"

enum { WINDOW = 16, WINDOW_MAX = 256, TIMEOUT_MS = 10000 };

uint8_t *active_link_slot(const struct warp_active_client *c, unsigned int i)
{
	return c->memory + (size_t)i * ACTIVE_SLOT_ROOM;
}

uint8_t *active_link_access(const struct warp_active_client *c, unsigned int i)
{
	return active_link_slot(c, c->accesses_most) + (size_t)i * ACTIVE_ACCESS_ROOM;
}

static uint8_t *receive_at(const struct warp_active_client *c, unsigned int i)
{
	return active_link_access(c, c->accesses_most) + (size_t)i * ACTIVE_WIRE_ANSWER_MAX;
}

const uint8_t *active_link_answer(const struct warp_active_client *c, unsigned int i)
{
	return receive_at(c, i);
}

/* The answers to a window, to a CANCEL, one to spare, and one that is owed */
static unsigned int receives(const struct warp_active_client *c)
{
	return c->accesses_most + 3;
}

int active_link_receive(struct warp_active_client *c, unsigned int i)
{
	const struct warp_sge sg = { receive_at(c, i), ACTIVE_WIRE_ANSWER_MAX,
				     warp_mr_stag(c->mr) };
	const struct warp_recv_wr wr = { .wr_id = ACTIVE_WR_RECV + i, .sg = &sg, .num_sge = 1 };
	int ret = warp_qp_post_recv(c->qp, &wr, 1);

	return ret < 0 ? ret : 0;
}

int active_link_repay(struct warp_active_client *c)
{
	int owed = c->owed;

	c->owed = -1;
	return owed < 0 ? 0 : active_link_receive(c, (unsigned int)owed);
}

int active_link_send(struct warp_active_client *c, unsigned int i, size_t len)
{
	const struct warp_sge sg = { active_link_slot(c, i), (uint32_t)len, warp_mr_stag(c->mr) };
	bool small = len <= c->inline_max;
	const struct warp_send_wr wr = { .wr_id = ACTIVE_WR_SLOT + i,
					 .opcode = WARP_WR_SEND,
					 .flags = small ? WARP_SEND_INLINE : WARP_SEND_SIGNALED,
					 .sg = &sg,
					 .num_sge = 1 };
	int ret = warp_qp_post_send(c->qp, &wr, 1);

	c->slots[i].sending = !small;
	return ret < 0 ? ret : 0;
}

static int memory_map(struct warp_active_client *c)
{
	void *map;

	c->memory_size = (size_t)c->accesses_most * (ACTIVE_SLOT_ROOM + ACTIVE_ACCESS_ROOM) +
			 (size_t)receives(c) * ACTIVE_WIRE_ANSWER_MAX;
	map = mmap(NULL, c->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	c->memory = map;
	return warp_mr_register(c->pd, map, c->memory_size, WARP_ACCESS_LOCAL_WRITE, &c->mr);
}

static int qp_create(struct warp_active_client *c)
{
	struct warp_qp_attr attr = { .max_send_wr = 2 * c->accesses_most + 2,
				     .max_recv_wr = receives(c),
				     .max_send_sge = 1,
				     .max_recv_sge = 1,
				     .context = c };
	struct warp_device_attr device;
	int ret = warp_device_query(c->dev, &device);

	if (ret)
		return ret;
	c->inline_max = base_min(device.max_inline, (unsigned int)ACTIVE_CLIENT_INLINE);
	attr.max_inline = c->inline_max;
	ret = warp_cq_create(c->dev, 2 * attr.max_send_wr + 2 * attr.max_recv_wr, &c->cq);

	attr.send_cq = attr.recv_cq = c->cq;
	return ret ? ret : warp_qp_create(c->pd, &attr, &c->qp);
}

static int conn_wait(struct warp_active_client *c, int timeout_ms)
{
	uint64_t deadline = base_deadline_ms(timeout_ms);
	int ret;

	do
		ret = warp_conn_wait(c->conn, base_deadline_poll_ms(deadline, base_now()));
	while (ret == -EINTR);
	return ret;
}

static int conn_open(struct warp_active_client *c, const struct sockaddr *addr, socklen_t len,
		     const struct warp_active_client_attr *attr)
{
	int timeout = attr->timeout_ms ? attr->timeout_ms : TIMEOUT_MS;
	const struct warp_conn_param param = { .private_data = attr->token,
					       .private_data_len = attr->token_len,
					       .ird = WARP_DEPTH_DEFAULT,
					       .ord = WARP_DEPTH_DEFAULT,
					       .timeout_ms = timeout };
	int ret = 0;

	for (unsigned int i = 0; i < receives(c) && !ret; i++)
		ret = active_link_receive(c, i);
	if (!ret)
		ret = warp_connect(c->qp, addr, len, &param, &c->conn);
	return ret ? ret : conn_wait(c, timeout);
}

int active_link_open(struct warp_active_client *c, const struct sockaddr *addr, socklen_t len,
		     const struct warp_active_client_attr *attr)
{
	int ret;

	c->window = c->accesses_most = attr->window ? attr->window : WINDOW;
	c->spin_us = attr->spin_us;
	if (c->window > WINDOW_MAX || (attr->token_len && !attr->token))
		return -EINVAL;
	c->slots = calloc(c->window, sizeof(*c->slots));
	c->accesses = calloc(c->window, sizeof(struct warp_active_request *));
	if (!c->slots || !c->accesses)
		return -ENOMEM;
	ret = warp_device_open(attr->provider, &c->dev);
	if (!ret)
		ret = warp_pd_create(c->dev, &c->pd);
	if (!ret)
		ret = memory_map(c);
	if (!ret)
		ret = qp_create(c);
	return ret ? ret : conn_open(c, addr, len, attr);
}

void active_link_close(struct warp_active_client *c)
{
	warp_conn_destroy(c->conn);
	warp_qp_destroy(c->qp);
	warp_cq_destroy(c->cq);
	warp_mr_deregister(c->mr);
	warp_pd_destroy(c->pd);
	warp_device_close(c->dev);
	if (c->memory)
		munmap(c->memory, c->memory_size);
	free(c->slots);
	free(c->accesses);
	free(c->regions);
}
