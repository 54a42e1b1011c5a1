/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both sides of a ping have: a queue pair, registered buffers, and messages of sixteen
 * octets (address, STag and size of a buffer, big-endian) that also say whose turn it is.
 *
 * A receive is always posted: the peer may talk as soon as it has heard.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rping.h"

static int side_buffers(struct rping_side *s)
{
	unsigned int sink = s->opt->client ? WARP_ACCESS_REMOTE_WRITE : WARP_ACCESS_LOCAL_WRITE;
	int ret;

	s->notes = calloc(2, RPING_INFO_LEN);
	s->data = calloc(1, s->size + 1ul);
	s->ping = s->opt->client ? calloc(1, s->size) : NULL;
	if (!s->notes || !s->data || (s->opt->client && !s->ping))
		return -ENOMEM;
	ret = warp_mr_register(s->ep.pd, s->notes, 2 * RPING_INFO_LEN, WARP_ACCESS_LOCAL_WRITE,
			       &s->notes_mr);
	if (!ret)
		ret = warp_mr_register(s->ep.pd, s->data, s->size, sink, &s->data_mr);
	if (!ret && s->ping)
		ret = warp_mr_register(s->ep.pd, s->ping, s->size, WARP_ACCESS_REMOTE_READ,
				       &s->ping_mr);
	return ret;
}

static int side_post_recv(struct rping_side *s)
{
	return endpoint_recv(&s->ep, s->notes + RPING_INFO_LEN, RPING_INFO_LEN, s->notes_mr);
}

int rping_side_open(struct rping_side *s, const struct rping_options *opt, struct warp_device *dev,
		    uint32_t size)
{
	int ret;

	*s = (struct rping_side){ .opt = opt, .size = size };
	ret = endpoint_open(&s->ep, dev, NULL, RPING_DEPTH, opt->timeout_ms);
	if (!ret)
		ret = side_buffers(s);
	if (!ret)
		ret = side_post_recv(s);
	if (ret)
		rping_side_close(s);
	return ret;
}

void rping_side_close(struct rping_side *s)
{
	endpoint_detach(&s->ep);
	warp_mr_deregister(s->ping_mr);
	warp_mr_deregister(s->data_mr);
	warp_mr_deregister(s->notes_mr);
	endpoint_close(&s->ep);
	free(s->ping);
	free(s->data);
	free(s->notes);
}

struct warp_conn_param rping_side_param(const struct rping_side *s)
{
	return (struct warp_conn_param){
		.ird = 1, .ord = 1, .flags = s->opt->conn_flags, .timeout_ms = s->opt->timeout_ms
	};
}

int rping_side_tell(struct rping_side *s, const void *p, const struct warp_mr *mr, uint32_t size)
{
	uint64_t to = htobe64((uintptr_t)p);
	uint32_t stag = htobe32(warp_mr_stag(mr)), len = htobe32(size);

	memcpy(s->notes, &to, sizeof(to));
	memcpy(s->notes + 8, &stag, sizeof(stag));
	memcpy(s->notes + 12, &len, sizeof(len));
	return endpoint_send(&s->ep, s->notes, RPING_INFO_LEN, s->notes_mr);
}

int rping_side_hear(struct rping_side *s, struct rping_info *info)
{
	const uint8_t *note = s->notes + RPING_INFO_LEN;
	struct warp_wc wc;
	int ret = endpoint_await(&s->ep, WARP_WC_RECV, &wc);

	if (ret)
		return ret;
	if (wc.byte_len != RPING_INFO_LEN)
		return -EBADMSG;
	memcpy(&info->to, note, sizeof(info->to));
	memcpy(&info->stag, note + 8, sizeof(info->stag));
	memcpy(&info->size, note + 12, sizeof(info->size));
	info->to = be64toh(info->to);
	info->stag = be32toh(info->stag);
	info->size = be32toh(info->size);
	return side_post_recv(s);
}

int rping_side_move(struct rping_side *s, enum warp_wr_opcode opcode, const struct rping_info *info,
		    uint32_t len)
{
	struct warp_sge sg = { s->data, len, warp_mr_stag(s->data_mr) };
	struct warp_send_wr wr = { .opcode = opcode,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = info->stag,
				   .remote_to = info->to };
	struct warp_wc wc;
	int ret = warp_qp_post_send(s->ep.qp, &wr, 1);

	if (ret < 0)
		return ret;
	return endpoint_await(&s->ep, opcode == WARP_WR_READ ? WARP_WC_READ : WARP_WC_WRITE, &wc);
}
