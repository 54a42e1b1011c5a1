/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of script.h over librdmacm and libibverbs: what runs on siw. Built in the lab, by
 * prepare.sh, for it needs their headers.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "script.h"

#define FLUSH_MS 5000
#define SIW_PIECES 6

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id, *listener;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_pd *apart;
static struct ibv_mr *out, *in[SCRIPT_RECEIVES], *memory;
static uint8_t private_data[256];
static unsigned int private_len;
static bool rejected;

static int failed(const char *what)
{
	return script_wrong("%s: %s", what, strerror(errno));
}

/* --- events of the connection manager ------------------------------------------------------ */

/* The next event: its number, or -1 */
static int next_event(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *e;
	int what;

	if (poll(&p, 1, SCRIPT_WAIT_MS) != 1 || rdma_get_cm_event(channel, &e))
		return -1;
	what = e->event;
	if (what == RDMA_CM_EVENT_CONNECT_REQUEST)
		id = e->id;
	if (what == RDMA_CM_EVENT_CONNECT_REQUEST || what == RDMA_CM_EVENT_ESTABLISHED ||
	    what == RDMA_CM_EVENT_REJECTED) {
		private_len = e->param.conn.private_data_len;
		if (private_len)
			memcpy(private_data, e->param.conn.private_data, private_len);
	}
	rdma_ack_cm_event(e);
	return what;
}

static int await(enum rdma_cm_event_type want)
{
	int got = next_event();

	if (got == (int)want)
		return 0;
	return script_wrong("%s, not %s", got < 0 ? "nothing" : rdma_event_str(got),
			    rdma_event_str(want));
}

/* --- start-up ----------------------------------------------------------------------------- */

/* @len octets of a region in @n pieces */
static int cut(struct ibv_sge *sg, unsigned int n, uint8_t *p, unsigned int len, struct ibv_mr *mr)
{
	for (unsigned int i = 0, at = 0; i < n; i++) {
		unsigned int part = i == n - 1 ? len - at : len / n;

		sg[i] = (struct ibv_sge){ (uintptr_t)p + at, part, mr->lkey };
		at += part;
	}
	return (int)n;
}

static int receive_again(unsigned int slot)
{
	struct ibv_sge sg[SCRIPT_PIECES];
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = sg };

	wr.num_sge = cut(sg, script_scatter, script_in[slot], script_buffer_size, in[slot]);
	errno = ibv_post_recv(id->qp, &wr, &bad);
	return errno ? failed("post_recv") : 0;
}

static int open_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { SCRIPT_REQUESTS, SCRIPT_RECEIVES, SIW_PIECES, SIW_PIECES, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int access = IBV_ACCESS_LOCAL_WRITE | (script_writable ? IBV_ACCESS_REMOTE_WRITE : 0) |
		     (script_readable ? IBV_ACCESS_REMOTE_READ : 0);

	attr.send_cq = send_cq = ibv_create_cq(id->verbs, SCRIPT_REQUESTS, NULL, NULL, 0);
	attr.recv_cq = recv_cq = ibv_create_cq(id->verbs, SCRIPT_REQUESTS, NULL, NULL, 0);
	if (!send_cq || !recv_cq || rdma_create_qp(id, NULL, &attr))
		return failed("create_qp");
	out = rdma_reg_msgs(id, script_out, script_out_size);
	apart = script_apart ? ibv_alloc_pd(id->verbs) : NULL;
	memory = ibv_reg_mr(apart ? apart : id->pd, script_memory, script_memory_size, access);
	for (unsigned int i = 0; i < script_receives; i++) {
		in[i] = rdma_reg_msgs(id, script_in[i], script_buffer_size);
		if (!in[i] || receive_again(i))
			return failed("reg_msgs");
	}
	return out && memory ? 0 : failed("reg_mr");
}

static struct rdma_conn_param param_of(const void *pd, unsigned int len)
{
	return (struct rdma_conn_param){ .private_data = pd,
					 .private_data_len = (uint8_t)len,
					 .responder_resources = (uint8_t)script_ird,
					 .initiator_depth = (uint8_t)script_ord };
}

static struct sockaddr_in address(const char *addr, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	inet_pton(AF_INET, addr, &a.sin_addr);
	a.sin_port = htons((uint16_t)atoi(port));
	return a;
}

static int verbs_listen(const char *addr, const char *port)
{
	struct sockaddr_in a = address(addr, port);

	if (listener)
		return await(RDMA_CM_EVENT_CONNECT_REQUEST);
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&a) || rdma_listen(listener, 4))
		return failed("listen");
	return await(RDMA_CM_EVENT_CONNECT_REQUEST);
}

static int resolve(const char *addr, const char *port)
{
	struct sockaddr_in a = address(addr, port);

	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, SCRIPT_WAIT_MS) ||
	    await(RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id, SCRIPT_WAIT_MS) ||
	    await(RDMA_CM_EVENT_ROUTE_RESOLVED))
		return failed("resolve");
	return open_qp();
}

/* A rejection is what some scripts want: see refused. */
static int verbs_connect(const char *addr, const char *port, const void *pd, unsigned int len)
{
	struct rdma_conn_param param = param_of(pd, len);
	int event;

	if (resolve(addr, port))
		return 1;
	if (rdma_connect(id, &param))
		return failed("connect");
	event = next_event();
	rejected = event == RDMA_CM_EVENT_REJECTED;
	if (rejected || event == RDMA_CM_EVENT_ESTABLISHED)
		return 0;
	return script_wrong("connect: %s", event < 0 ? "nothing" : rdma_event_str(event));
}

static int verbs_accept(const void *pd, unsigned int len)
{
	struct rdma_conn_param param = param_of(pd, len);

	if (open_qp())
		return 1;
	if (rdma_accept(id, &param))
		return failed("accept");
	return await(RDMA_CM_EVENT_ESTABLISHED);
}

static int verbs_reject(const void *pd, unsigned int len)
{
	if (rdma_reject(id, pd, (uint8_t)len))
		return failed("reject");
	usleep(300000); /* else the listener's end overtakes the Reply */
	return 0;
}

static int verbs_refused(void)
{
	return rejected ? 0 : script_wrong("we are not rejected");
}

static const void *verbs_private_data(unsigned int *len)
{
	*len = private_len;
	return private_data;
}

/* --- work --------------------------------------------------------------------------------- */

/* What is posted when the end has come siw keeps for ever: siw_post_send knows only the kernel's */
static bool is_over(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int completion(struct ibv_cq *cq, struct ibv_wc *wc)
{
	for (int i = 0, after = 0; i < SCRIPT_WAIT_MS && after < FLUSH_MS; i++) {
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return wc->status ? script_wrong("%s", ibv_wc_status_str(wc->status)) : 0;
		after += is_over();
		usleep(1000);
	}
	return script_wrong("no completion");
}

static int post_all(struct ibv_send_wr *wr, unsigned int times)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (rejected)
		return script_wrong("we are rejected");
	for (unsigned int i = 0; i < times; i++) {
		errno = ibv_post_send(id->qp, wr, &bad);
		if (errno)
			return failed("post_send");
	}
	for (unsigned int i = 0; i < times; i++)
		if (completion(send_cq, &wc))
			return 1;
	return 0;
}

static int verbs_post(enum script_op op, unsigned int len, uint32_t stag, uint64_t to,
		      unsigned int times)
{
	static const enum ibv_wr_opcode opcodes[] = { [SCRIPT_SEND] = IBV_WR_SEND,
						      [SCRIPT_SEND_SE] = IBV_WR_SEND,
						      [SCRIPT_SEND_INV] = IBV_WR_SEND_WITH_INV,
						      [SCRIPT_SEND_SE_INV] = IBV_WR_SEND_WITH_INV,
						      [SCRIPT_WRITE] = IBV_WR_RDMA_WRITE,
						      [SCRIPT_READ] = IBV_WR_RDMA_READ,
						      [SCRIPT_INVALIDATE] = IBV_WR_LOCAL_INV };
	unsigned int n = op == SCRIPT_INVALIDATE ? 0 : op == SCRIPT_READ ? 1 : script_pieces;
	bool solicited = op == SCRIPT_SEND_SE || op == SCRIPT_SEND_SE_INV;
	struct ibv_sge sg[SCRIPT_PIECES];
	struct ibv_send_wr wr = { .opcode = opcodes[op],
				  .sg_list = sg,
				  .num_sge = cut(sg, n, script_out, len, out),
				  .send_flags = solicited ? IBV_SEND_SOLICITED : 0 };

	if (op == SCRIPT_SEND_INV || op == SCRIPT_SEND_SE_INV || op == SCRIPT_INVALIDATE) {
		wr.invalidate_rkey = stag;
	} else if (op == SCRIPT_WRITE || op == SCRIPT_READ) {
		wr.wr.rdma.rkey = stag;
		wr.wr.rdma.remote_addr = to;
	}
	return post_all(&wr, times);
}

static int verbs_receive(unsigned int *slot, unsigned int *len)
{
	struct ibv_wc wc;

	if (completion(recv_cq, &wc))
		return 1;
	*slot = (unsigned int)wc.wr_id;
	*len = wc.byte_len;
	return 0;
}

static int verbs_solicited(bool want)
{
	return script_wrong("siw makes no event of such a message alone");
}

static struct script_where verbs_where(void)
{
	return (struct script_where){ htobe64((uintptr_t)script_memory), htobe32(memory->rkey),
				      htobe32(script_memory_size) };
}

static void release(void)
{
	rdma_destroy_qp(id);
	ibv_destroy_cq(send_cq);
	ibv_destroy_cq(recv_cq);
	for (unsigned int i = 0; i < script_receives; i++)
		ibv_dereg_mr(in[i]);
	ibv_dereg_mr(memory);
	if (apart)
		ibv_dealloc_pd(apart);
	ibv_dereg_mr(out);
	rdma_destroy_id(id);
	if (!listener)
		rdma_destroy_event_channel(channel);
}

/* siw tells of every end in the same way. */
static int verbs_ended(enum script_end how)
{
	int ret = await(RDMA_CM_EVENT_DISCONNECTED);

	rdma_disconnect(id);
	release();
	return ret;
}

static int verbs_terminated(uint32_t code)
{
	return script_wrong("librdmacm does not tell of Terminates");
}

static int verbs_close(void)
{
	if (rdma_disconnect(id))
		return failed("disconnect");
	if (await(RDMA_CM_EVENT_DISCONNECTED))
		return 1;
	release();
	return 0;
}

const struct script_ops script_ops = {
	.listen = verbs_listen,
	.connect = verbs_connect,
	.accept = verbs_accept,
	.reject = verbs_reject,
	.refused = verbs_refused,
	.private_data = verbs_private_data,
	.post = verbs_post,
	.receive = verbs_receive,
	.receive_again = receive_again,
	.solicited = verbs_solicited,
	.where = verbs_where,
	.ended = verbs_ended,
	.terminated = verbs_terminated,
	.close = verbs_close,
};
