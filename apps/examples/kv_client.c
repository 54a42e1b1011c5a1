/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-kv's client. To look a key up it reads the slots where the key may be, and no program at
 * the other end takes part. To change something it sends a request and waits for the answer.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv.h"

#define TRIES 1000 /* of a slot that changes each time */

struct client {
	struct endpoint ep;
	struct kv_geometry at; /* in our byte order */
	struct {
		struct kv_slot window[KV_PROBE];
		struct kv_request req;
		uint8_t answer;
	} * mem;
	struct warp_mr *mr;
	uint64_t reads, torn;
};

static int client_geometry(struct client *c)
{
	struct warp_conn_info info;
	int ret = warp_conn_query(c->ep.conn, &info);

	if (ret)
		return ret;
	if (info.private_data_len != sizeof(c->at))
		return -EPROTO;
	memcpy(&c->at, info.private_data, sizeof(c->at));
	c->at.magic = be32toh(c->at.magic);
	c->at.stag = be32toh(c->at.stag);
	c->at.to = be64toh(c->at.to);
	c->at.slots = be32toh(c->at.slots);
	c->at.slot_size = be32toh(c->at.slot_size);
	if (c->at.magic != KV_MAGIC || c->at.slot_size != sizeof(struct kv_slot) || !c->at.slots)
		return -EPROTO;
	return 0;
}

static void client_close(struct client *c)
{
	endpoint_detach(&c->ep);
	warp_mr_deregister(c->mr);
	endpoint_close(&c->ep);
	free(c->mem);
}

static int client_open(struct client *c, const struct kv_options *opt, struct warp_device *dev)
{
	struct warp_conn_param param = { .ird = 0, .ord = 1, .timeout_ms = opt->timeout_ms };
	int ret;

	*c = (struct client){ 0 };
	ret = endpoint_open(&c->ep, dev, NULL, 2, opt->timeout_ms);
	if (ret)
		return ret;
	c->mem = calloc(1, sizeof(*c->mem));
	ret = c->mem ? warp_mr_register(c->ep.pd, c->mem, sizeof(*c->mem), WARP_ACCESS_LOCAL_WRITE,
					&c->mr)
		     : -ENOMEM;
	if (!ret)
		ret = endpoint_recv(&c->ep, &c->mem->answer, 1, c->mr);
	if (!ret)
		ret = endpoint_connect(&c->ep, &opt->addr, NULL, &param);
	if (!ret)
		ret = client_geometry(c);
	if (ret)
		endpoint_complain(&c->ep, opt->host, ret);
	return ret;
}

/* --- looking up --------------------------------------------------------------------------- */

static int client_read(struct client *c, uint32_t slot)
{
	struct warp_sge sg = { c->mem->window, sizeof(c->mem->window), warp_mr_stag(c->mr) };
	struct warp_send_wr wr = { .opcode = WARP_WR_READ,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = c->at.stag,
				   .remote_to =
					   c->at.to + (uint64_t)slot * sizeof(struct kv_slot) };
	struct warp_wc wc;
	int ret = warp_qp_post_send(c->ep.qp, &wr, 1);

	c->reads++;
	return ret < 0 ? ret : endpoint_await(&c->ep, WARP_WC_READ, &wc);
}

/*
 * The slot with the key; -ENOENT: all are whole and none has it; -EAGAIN: one that is not whole
 * might.
 */
static int window_find(const struct client *c, const char *key, const struct kv_slot **out)
{
	bool torn = false;

	for (unsigned int i = 0; i < KV_PROBE; i++) {
		const struct kv_slot *slot = &c->mem->window[i];

		if (!kv_slot_whole(slot)) {
			torn = true;
		} else if (kv_slot_holds(slot, key, strlen(key))) {
			*out = slot;
			return 0;
		}
	}
	return torn ? -EAGAIN : -ENOENT;
}

static int client_find(struct client *c, const char *key, const struct kv_slot **out)
{
	uint32_t home = kv_home(key, strlen(key), c->at.slots);
	int ret = -EAGAIN;

	for (unsigned int i = 0; i < TRIES && ret == -EAGAIN; i++) {
		if (i) {
			c->torn++;
			usleep(1000);
		}
		ret = client_read(c, home);
		if (!ret)
			ret = window_find(c, key, out);
	}
	return ret;
}

static enum kv_status get_one(struct client *c, const struct kv_options *opt, const char *key)
{
	const struct kv_slot *slot;
	int ret = client_find(c, key, &slot);

	if (ret == -ENOENT) {
		if (!opt->quiet)
			fprintf(stderr, "warp-kv: %s: no such key\n", key);
		return KV_NOT_FOUND;
	}
	if (ret) {
		endpoint_complain(&c->ep, key, ret);
		return KV_FAILED;
	}
	if (!opt->quiet)
		printf("%.*s\n", slot->value_len, slot->value);
	return KV_OK;
}

enum kv_status kv_client_get(const struct kv_options *opt, struct warp_device *dev, char **keys,
			     int n)
{
	enum kv_status worst = KV_OK;
	struct client c;

	if (client_open(&c, opt, dev)) {
		client_close(&c);
		return KV_FAILED;
	}
	for (uint32_t round = 0; round < opt->repeat && worst != KV_FAILED; round++) {
		for (int i = 0; i < n && worst != KV_FAILED; i++) {
			enum kv_status status = get_one(&c, opt, keys[i]);

			worst = status > worst ? status : worst;
		}
	}
	if (opt->repeat > 1)
		fprintf(stderr, "%llu reads, %llu repeated because an entry was being changed\n",
			(unsigned long long)c.reads, (unsigned long long)c.torn);
	if (worst != KV_FAILED)
		endpoint_finish(&c.ep);
	client_close(&c);
	return worst;
}

/* --- changing ----------------------------------------------------------------------------- */

static int client_ask(struct client *c)
{
	struct warp_wc wc;
	int ret = endpoint_send(&c->ep, &c->mem->req, sizeof(c->mem->req), c->mr);

	if (!ret)
		ret = endpoint_await(&c->ep, WARP_WC_RECV, &wc);
	if (ret)
		return ret;
	if (wc.byte_len != 1 || c->mem->answer > KV_BAD)
		return -EPROTO;
	ret = c->mem->answer;
	return endpoint_recv(&c->ep, &c->mem->answer, 1, c->mr) ? -EIO : ret;
}

static void request_fill(struct kv_request *req, const char *key, const char *value)
{
	size_t key_len = strlen(key), value_len = value ? strlen(value) : 0;

	*req = (struct kv_request){ .op = value ? KV_PUT : KV_DELETE,
				    .key_len = (uint8_t)key_len,
				    .value_len = (uint8_t)value_len };
	memcpy(req->key, key, key_len);
	if (value)
		memcpy(req->value, value, value_len);
}

enum kv_status kv_client_change(const struct kv_options *opt, struct warp_device *dev,
				const char *key, const char *value)
{
	static const char *const words[] = {
		[KV_FULL] = "no room for it",
		[KV_ABSENT] = "no such key",
		[KV_BAD] = "the server refuses it",
	};
	struct client c;
	int ret = client_open(&c, opt, dev);

	if (ret) {
		client_close(&c);
		return KV_FAILED;
	}
	for (uint32_t round = 0; round < opt->repeat && !ret; round++) {
		request_fill(&c.mem->req, key, value);
		ret = client_ask(&c);
	}
	if (ret < 0)
		endpoint_complain(&c.ep, key, ret);
	else if (ret != KV_DONE && !opt->quiet)
		fprintf(stderr, "warp-kv: %s: %s\n", key, words[ret]);
	if (ret >= 0)
		endpoint_finish(&c.ep);
	client_close(&c);
	if (ret == KV_ABSENT)
		return KV_NOT_FOUND;
	return ret == KV_DONE ? KV_OK : KV_FAILED;
}
