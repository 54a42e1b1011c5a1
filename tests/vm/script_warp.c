/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of script.h over the native API: what Warpsock does towards siw.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "apps/examples/endpoint.h"
#include "script.h"

static struct endpoint end;
static struct warp_device *device;
static struct warp_listener *listener;
static struct warp_conn *request;
static struct warp_mr *out, *in[SCRIPT_RECEIVES], *memory;
static struct warp_pd *apart;
static bool solicited; /* the last message */

static int failed(const char *what, int err)
{
	endpoint_complain(&end, what, err);
	return 1;
}

/* @len octets of a region in @n pieces */
static unsigned int cut(struct warp_sge *sg, unsigned int n, uint8_t *p, unsigned int len,
			const struct warp_mr *mr)
{
	for (unsigned int i = 0, at = 0; i < n; i++) {
		unsigned int part = i == n - 1 ? len - at : len / n;

		sg[i] = (struct warp_sge){ p + at, part, warp_mr_stag(mr) };
		at += part;
	}
	return n;
}

static int warp_receive_again(unsigned int slot)
{
	struct warp_sge sg[SCRIPT_PIECES];
	struct warp_recv_wr wr = { slot, sg, script_scatter };
	int ret;

	cut(sg, script_scatter, script_in[slot], script_buffer_size, in[slot]);
	ret = warp_qp_post_recv(end.qp, &wr, 1);
	/* The peer may have ended it behind its last message */
	return ret == 1 || ret == -ENOTCONN ? 0 : failed("post_recv", ret);
}

/* In place of the end's own, which does not gather */
static int make_qp(void)
{
	struct warp_qp_attr attr = { .send_cq = end.cq,
				     .recv_cq = end.cq,
				     .max_send_wr = SCRIPT_REQUESTS,
				     .max_recv_wr = SCRIPT_RECEIVES,
				     .signal_all = true };
	struct warp_device_attr limits;
	int ret = warp_device_query(device, &limits);

	if (ret)
		return ret;
	attr.max_send_sge = attr.max_recv_sge = MIN(limits.max_sge, SCRIPT_PIECES);
	warp_qp_destroy(end.qp);
	end.qp = NULL;
	return warp_qp_create(end.pd, &attr, &end.qp);
}

static int open_end(void)
{
	unsigned int remote = (script_writable ? WARP_ACCESS_REMOTE_WRITE : 0) |
			      (script_readable ? WARP_ACCESS_REMOTE_READ : 0);
	unsigned int local = WARP_ACCESS_LOCAL_WRITE;
	int ret = device ? 0 : warp_device_open(getenv("SCRIPT_PROVIDER"), &device);

	memset(&end, 0, sizeof(end));
	if (!ret)
		ret = endpoint_open(&end, device, NULL, SCRIPT_REQUESTS, SCRIPT_WAIT_MS);
	if (!ret)
		ret = make_qp();
	if (!ret)
		ret = warp_mr_register(end.pd, script_out, script_out_size, local, &out);
	if (!ret && script_apart)
		ret = warp_pd_create(device, &apart);
	if (!ret)
		ret = warp_mr_register(apart ? apart : end.pd, script_memory, script_memory_size,
				       local | remote, &memory);
	for (unsigned int i = 0; !ret && i < script_receives; i++) {
		ret = warp_mr_register(end.pd, script_in[i], script_buffer_size, local, &in[i]);
		if (!ret && warp_receive_again(i))
			return 1;
	}
	return ret ? failed("open", ret) : 0;
}

/* --- start-up ----------------------------------------------------------------------------- */

static struct warp_conn_param param_of(const void *pd, unsigned int len)
{
	return (struct warp_conn_param){
		.private_data = pd,
		.private_data_len = len,
		.ird = script_ird,
		.ord = script_ord,
		.flags = script_no_rtr ? WARP_CONN_NO_P2P : 0,
	};
}

static int warp_listen_one(const char *addr, const char *port)
{
	struct sockaddr_storage a;
	int ret;

	if (open_end() || endpoint_resolve(addr, (uint16_t)atoi(port), &a))
		return 1;
	ret = listener ? 0
		       : warp_listen(device, (struct sockaddr *)&a, endpoint_addr_len(&a), 4,
				     &listener);
	if (!ret)
		ret = warp_listener_get(listener, SCRIPT_WAIT_MS, &request);
	return ret ? failed("listen", ret) : 0;
}

static enum warp_conn_state state(void)
{
	struct warp_conn_info info = { .state = WARP_CONN_ERROR };

	warp_conn_query(end.conn, &info);
	return info.state;
}

/* A rejection is what some scripts want: see refused. */
static int warp_connect_to(const char *addr, const char *port, const void *pd, unsigned int len)
{
	struct warp_conn_param param = param_of(pd, len);
	struct sockaddr_storage a;
	int ret;

	if (open_end() || endpoint_resolve(addr, (uint16_t)atoi(port), &a))
		return 1;
	ret = endpoint_connect(&end, &a, NULL, &param);
	return ret && state() != WARP_CONN_REJECTED ? failed("connect", ret) : 0;
}

static int warp_accept_it(const void *pd, unsigned int len)
{
	struct warp_conn_param param = param_of(pd, len);
	int ret = endpoint_accept(&end, request, &param);

	return ret ? failed("accept", ret) : 0;
}

static int warp_reject_it(const void *pd, unsigned int len)
{
	int ret = warp_conn_reject(request, pd, len);

	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	return ret ? failed("reject", ret) : 0;
}

static int warp_refused(void)
{
	return state() == WARP_CONN_REJECTED ? 0 : script_wrong("we are not rejected");
}

static const void *warp_private_data(unsigned int *len)
{
	static struct warp_conn_info info;

	if (warp_conn_query(end.conn ? end.conn : request, &info))
		return NULL;
	*len = (unsigned int)info.private_data_len;
	return info.private_data;
}

/* --- work --------------------------------------------------------------------------------- */

/* Receives that complete while something else is waited for, in order */
static struct warp_wc kept[SCRIPT_RECEIVES];
static unsigned int num_kept;

static int completion(bool receive, struct warp_wc *wc)
{
	int ret;

	if (receive && num_kept) {
		*wc = kept[0];
		memmove(kept, kept + 1, --num_kept * sizeof(*kept));
		return 0;
	}
	for (;;) {
		ret = endpoint_next(&end, wc);
		if (ret)
			return failed("completion", ret);
		if (wc->status != WARP_WC_SUCCESS)
			return script_wrong("%s", warp_wc_status_text(wc->status));
		if ((wc->opcode == WARP_WC_RECV) == receive)
			return 0;
		if (!receive)
			kept[num_kept++] = *wc;
	}
}

static int warp_post(enum script_op op, unsigned int len, uint32_t stag, uint64_t to,
		     unsigned int times)
{
	static const enum warp_wr_opcode opcodes[] = {
		[SCRIPT_SEND] = WARP_WR_SEND,
		[SCRIPT_SEND_SE] = WARP_WR_SEND,
		[SCRIPT_SEND_INV] = WARP_WR_SEND_INVALIDATE,
		[SCRIPT_SEND_SE_INV] = WARP_WR_SEND_INVALIDATE,
		[SCRIPT_WRITE] = WARP_WR_WRITE,
		[SCRIPT_READ] = WARP_WR_READ,
		[SCRIPT_INVALIDATE] = WARP_WR_LOCAL_INVALIDATE
	};
	bool solicited = op == SCRIPT_SEND_SE || op == SCRIPT_SEND_SE_INV;
	unsigned int n = op == SCRIPT_INVALIDATE ? 0 : op == SCRIPT_READ ? 1 : script_pieces;
	struct warp_sge sg[SCRIPT_PIECES];
	struct warp_send_wr wr = { .opcode = opcodes[op],
				   .flags = solicited ? WARP_SEND_SOLICITED : 0,
				   .sg = sg,
				   .num_sge = cut(sg, n, script_out, len, out),
				   .inv_stag = stag,
				   .remote_stag = stag,
				   .remote_to = to };
	struct warp_wc wc;
	int ret;

	for (unsigned int i = 0; i < times; i++) {
		ret = warp_qp_post_send(end.qp, &wr, 1);
		if (ret != 1)
			return failed("post_send", ret);
	}
	for (unsigned int i = 0; i < times; i++)
		if (completion(false, &wc))
			return 1;
	return 0;
}

static int warp_receive(unsigned int *slot, unsigned int *len)
{
	struct warp_wc wc;

	if (completion(true, &wc))
		return 1;
	*slot = (unsigned int)wc.wr_id;
	*len = wc.byte_len;
	solicited = wc.flags & WARP_WC_SOLICITED;
	return 0;
}

static int warp_solicited(bool want)
{
	return want == solicited ? 0 : script_wrong("solicited: %d", solicited);
}

static struct script_where warp_where(void)
{
	return (struct script_where){ htobe64((uintptr_t)script_memory),
				      htobe32(warp_mr_stag(memory)), htobe32(script_memory_size) };
}

static void release(void)
{
	endpoint_detach(&end);
	for (unsigned int i = 0; i < script_receives; i++)
		warp_mr_deregister(in[i]);
	warp_mr_deregister(memory);
	if (apart)
		warp_pd_destroy(apart);
	warp_mr_deregister(out);
	endpoint_close(&end);
}

static int warp_ended(enum script_end how)
{
	enum warp_conn_state want = how == SCRIPT_IN_ORDER ? WARP_CONN_DISCONNECTED
							   : WARP_CONN_ERROR;
	struct warp_wc wc;

	for (int i = 0; i < SCRIPT_WAIT_MS / 20 && state() == WARP_CONN_ESTABLISHED; i++) {
		while (warp_cq_poll(end.cq, &wc, 1) > 0)
			;
		warp_cq_wait(end.cq, 20);
	}
	if (how == SCRIPT_ANYHOW ? state() == WARP_CONN_ESTABLISHED : state() != want)
		return failed("the connection's end", 0);
	warp_conn_disconnect(end.conn);
	if (how == SCRIPT_IN_ORDER)
		release();
	return 0;
}

static int warp_terminated(uint32_t code)
{
	struct warp_conn_info info;
	int ret = warp_conn_query(end.conn, &info);

	if (ret)
		return failed("query", ret);
	if (((info.term_sent | info.term_received) & 0xFFFF) == code)
		return 0;
	return script_wrong("Terminate sent %#x, received %#x", info.term_sent, info.term_received);
}

static int warp_close(void)
{
	int ret = endpoint_finish(&end);

	if (ret)
		return failed("close", ret);
	release();
	return 0;
}

const struct script_ops script_ops = {
	.listen = warp_listen_one,
	.connect = warp_connect_to,
	.accept = warp_accept_it,
	.reject = warp_reject_it,
	.refused = warp_refused,
	.private_data = warp_private_data,
	.post = warp_post,
	.receive = warp_receive,
	.receive_again = warp_receive_again,
	.solicited = warp_solicited,
	.where = warp_where,
	.ended = warp_ended,
	.terminated = warp_terminated,
	.close = warp_close,
};
