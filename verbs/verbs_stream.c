/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front over a device: rsockets' form of the stream and nothing else, for the device
 * places the peer's Writes by itself and has room for messages of four bytes.
 *
 * The device's objects are one connection's alone, and of the process that made them.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/process.h"
#include "base/sockutil.h"
#include "verbs/verbs_stream.h"

/* What was said last gets so long to leave before the connection is ended */
#define LAST_WORDS (50 * BASE_NS_PER_MS)
#define CONTEXTS 16

static int error_now(void)
{
	return errno ? -errno : -EIO;
}

static bool is_ours(const struct verbs_stream *s)
{
	return s->owner == base_process_self().pid;
}

/* --- memory --- */

/* A child must not have it: writing to it there would part the pages from the device's */
static int memory_create(struct verbs_stream *s, struct verbs_memory *m, size_t len, int access)
{
	int err = base_map_create(len, &m->p);

	if (err)
		return err;
	m->len = len;
	syscall(SYS_madvise, m->p, len, MADV_DONTFORK);
	errno = 0;
	m->mr = verbs_call(ibv_reg_mr)(s->pd, m->p, len, access);
	return m->mr ? 0 : error_now();
}

static void memory_destroy(struct verbs_memory *m)
{
	if (m->mr)
		verbs_call(ibv_dereg_mr)(m->mr);
	base_map_destroy(m->p, m->len);
	*m = (struct verbs_memory){ 0 };
}

static int stream_window(const struct rnic_stream_mem *mem, unsigned int i, struct rnic_window *w)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	struct verbs_memory *m;
	int err;

	if (i >= RNIC_WINDOWS)
		return -EINVAL;
	m = &s->window[i];
	err = memory_create(s, m, w->len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (err) {
		base_warn("verbs: %zu octets cannot be registered: %s", (size_t)w->len,
			  strerror(-err));
		return -ENODEV;
	}
	w->to = (uintptr_t)m->p;
	w->stag = m->mr->rkey;
	return 0;
}

/* --- made --- */

/* librdmacm opens each device once, for good */
static void context_keep(struct ibv_context *ctx)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const struct ibv_context *kept[CONTEXTS];
	unsigned int i = 0;

	pthread_mutex_lock(&lock);
	while (i < CONTEXTS && kept[i] && kept[i] != ctx)
		i++;
	if (i < CONTEXTS && !kept[i]) {
		kept[i] = ctx;
		ctx->cmd_fd = base_fd_keep(ctx->cmd_fd);
		ctx->async_fd = base_fd_keep(ctx->async_fd);
	}
	pthread_mutex_unlock(&lock);
}

static int queue_create(struct verbs_stream *s, unsigned int receives)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	context_keep(s->id->verbs);
	verbs_stream_spare_drop(s);
	errno = 0;
	s->pd = verbs_call(ibv_alloc_pd)(s->id->verbs);
	if (s->pd)
		s->channel = verbs_call(ibv_create_comp_channel)(s->id->verbs);
	if (s->channel)
		s->cq = verbs_call(ibv_create_cq)(
			s->id->verbs, (int)(receives + VERBS_STREAM_SENDS + VERBS_STREAM_OWN), NULL,
			s->channel, 0);
	if (!s->cq)
		return error_now();
	s->channel->fd = base_fd_keep(s->channel->fd);
	err = base_fd_set_nonblock(s->channel->fd, true);
	event.data.ptr = s->channel;
	if (!err && syscall(SYS_epoll_ctl, s->native.fd, EPOLL_CTL_ADD, s->channel->fd, &event))
		err = -errno;
	return err;
}

static int pair_create(struct verbs_stream *s, unsigned int receives)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = VERBS_STREAM_SENDS + VERBS_STREAM_OWN,
			 .max_recv_wr = receives,
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 .max_inline_data = VERBS_SMALL },
	};
	int err;

	errno = 0;
	err = verbs_call(rdma_create_qp)(s->id, s->pd, &attr);
	if (err && errno == EINVAL) {
		attr.cap.max_inline_data = 0;
		err = verbs_call(rdma_create_qp)(s->id, s->pd, &attr);
	}
	s->small = base_min(attr.cap.max_inline_data, VERBS_SMALL);
	return err ? error_now() : 0;
}

static int slots_create(struct verbs_stream *s, unsigned int n)
{
	int err =
		memory_create(s, &s->slots, n * (size_t)VERBS_STREAM_SLOT, IBV_ACCESS_LOCAL_WRITE);

	for (unsigned int i = 0; i < n && !err; i++)
		err = verbs_stream_slot_post(s, i);
	return err;
}

/* What a failure leaves is taken down with the connection */
static int stream_init(const struct rnic_stream_mem *mem, int fd,
		       const struct rnic_stream_param *param)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	int err = queue_create(s, param->messages);

	if (!err)
		err = pair_create(s, param->messages);
	if (!err)
		err = memory_create(s, &s->out, VERBS_STREAM_OUT, 0);
	if (!err)
		err = slots_create(s, param->messages);
	if (err)
		base_warn("verbs: a connection cannot be made: %s", strerror(-err));
	return err ? -ENODEV : 0;
}

void verbs_stream_uninit(struct verbs_stream *s)
{
	if (s->id && s->id->qp)
		verbs_call(rdma_destroy_qp)(s->id);
	for (unsigned int i = 0; i < RNIC_WINDOWS; i++)
		memory_destroy(&s->window[i]);
	memory_destroy(&s->slots);
	memory_destroy(&s->out);
	if (s->cq)
		verbs_call(ibv_destroy_cq)(s->cq);
	if (s->channel) {
		base_fd_drop(s->channel->fd);
		verbs_call(ibv_destroy_comp_channel)(s->channel);
	}
	if (s->pd)
		verbs_call(ibv_dealloc_pd)(s->pd);
}

/* --- start-up --- */

static struct rdma_conn_param conn_param(const struct verbs_stream *s, const void *pd, size_t len)
{
	return (struct rdma_conn_param){
		.private_data = pd,
		.private_data_len = (uint8_t)len,
		/* As rsockets asks; what answers there echoes it, ours says 0: nobody Reads */
		.initiator_depth = verbs_load(&s->phase) == VERBS_RESOLVED,
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static int carrier_connect(const struct rnic_stream_mem *mem, int fd, short *events)
{
	struct verbs_stream *s = verbs_stream_of(mem);

	*events = POLLIN;
	verbs_stream_look(s);
	switch (verbs_load(&s->phase)) {
	case VERBS_RESOLVING:
		return -EAGAIN;
	case VERBS_FAILED:
		return -ENODEV; /* it was never under way */
	default:
		return 0;
	}
}

static int request_send(struct verbs_stream *s, const void *pd, size_t len)
{
	struct rdma_conn_param param = conn_param(s, pd, len);

	errno = 0;
	if (verbs_call(rdma_connect)(s->id, &param))
		return error_now();
	verbs_store(&s->phase, VERBS_CONNECTING);
	return 0;
}

static int stream_start(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len,
			short *events)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	int err = verbs_load(&s->phase) == VERBS_RESOLVED ? request_send(s, pd, len) : 0;

	*events = POLLIN;
	if (err)
		return err;
	verbs_stream_look(s);
	switch (verbs_load(&s->phase)) {
	case VERBS_REQUEST:
		return RNIC_STREAM_REQUEST;
	case VERBS_OPEN:
		return RNIC_STREAM_OPEN;
	case VERBS_REJECTED:
		return RNIC_STREAM_REJECTED;
	case VERBS_ENDED:
		return -ECONNRESET;
	case VERBS_FAILED:
		return s->error;
	default:
		return -EAGAIN;
	}
}

static int stream_private_data(const struct rnic_stream_mem *mem, void *pd, size_t *len)
{
	const struct verbs_stream *s = verbs_stream_of(mem);

	*len = base_min(*len, (size_t)s->data_len);
	memcpy(pd, s->data, *len);
	return 0;
}

static int stream_accept(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	struct rdma_conn_param param = conn_param(s, pd, len);

	errno = 0;
	if (verbs_call(rdma_accept)(s->id, &param))
		return error_now();
	verbs_store(&s->phase, VERBS_ACCEPTED);
	return 0;
}

static int stream_reject(const struct rnic_stream_mem *mem, int fd, const void *pd, size_t len)
{
	struct verbs_stream *s = verbs_stream_of(mem);

	errno = 0;
	return verbs_call(rdma_reject)(s->id, pd, (uint8_t)len) ? error_now() : 0;
}

/* --- at work --- */

static unsigned int stream_segment(const struct rnic_stream_mem *mem, unsigned int message)
{
	return VERBS_STREAM_SEGMENT;
}

static int stream_flush(const struct rnic_stream_mem *mem, int fd)
{
	return 0;
}

static bool stream_owes(const struct rnic_stream_mem *mem)
{
	return false;
}

static void stream_align(const struct rnic_stream_mem *mem, bool on)
{
}

static void stream_info(const struct rnic_stream_mem *mem, struct rnic_stream_info *info)
{
	static const enum rnic_stream_state states[] = {
		[VERBS_REQUEST] = RNIC_STREAM_REQUEST, [VERBS_ACCEPTED] = RNIC_STREAM_OPEN,
		[VERBS_OPEN] = RNIC_STREAM_OPEN,       [VERBS_REJECTED] = RNIC_STREAM_REJECTED,
		[VERBS_ENDED] = RNIC_STREAM_ENDED,     [VERBS_FAILED] = RNIC_STREAM_BROKEN,
	};
	const struct verbs_stream *s = verbs_stream_of(mem);
	uint32_t phase = verbs_load(&s->phase);
	uint64_t done = verbs_load(&s->out_done); /* first: it follows */

	*info = (struct rnic_stream_info){
		.state = states[phase],
		.may_send = phase == VERBS_OPEN &&
			    verbs_load(&s->write_retry) != VERBS_WRITE_RETRY_GATED,
		.heard = phase >= VERBS_REQUEST,
		.more = verbs_load(&s->more),
		.queued = verbs_load(&s->out_at) - done,
	};
}

/* --- its end --- */

/* Behind all that was sent */
static int stream_shutdown(const struct rnic_stream_mem *mem, int fd)
{
	struct verbs_stream *s = verbs_stream_of(mem);

	if (!is_ours(s) || verbs_load(&s->phase) != VERBS_OPEN)
		return 0;
	if (!verbs_stream_idle(s))
		return -EAGAIN;
	return verbs_call(rdma_disconnect)(s->id) ? error_now() : 0;
}

/* What has left is not known to have come: only the peer's end is certain */
static int carrier_unacked(const struct rnic_stream_mem *mem, int fd)
{
	return -EPERM;
}

/* No device says that a connection ended so; the last message may */
static void carrier_abort(const struct rnic_stream_mem *mem, int fd)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	uint64_t limit = base_deadline(base_now(), LAST_WORDS);
	struct ibv_wc wc;

	if (!is_ours(s) || !s->id->qp)
		return;
	while (verbs_load(&s->phase) == VERBS_OPEN && !verbs_stream_idle(s) &&
	       !base_deadline_passed(limit, base_now()))
		if (ibv_poll_cq(s->cq, 1, &wc) == 1 && !(wc.wr_id & 1))
			verbs_stream_done(s);
		else
			base_poll(NULL, 0, base_deadline(base_now(), BASE_NS_PER_MS));
	verbs_call(rdma_disconnect)(s->id);
}

static const struct rnic_carrier_ops verbs_carrier_ops = {
	.connect = carrier_connect,
	.room = verbs_stream_room,
	.unacked = carrier_unacked,
	.abort = carrier_abort,
};

const struct rnic_stream_ops verbs_stream_ops = {
	.init = stream_init,
	.window = stream_window,
	.start = stream_start,
	.private_data = stream_private_data,
	.accept = stream_accept,
	.reject = stream_reject,
	.send = verbs_stream_send,
	.segment = stream_segment,
	.flush = stream_flush,
	.owes = stream_owes,
	.align = stream_align,
	.receive = verbs_stream_receive,
	.info = stream_info,
	.shutdown = stream_shutdown,
	.onesided = &verbs_stream_regions,
	.carrier = &verbs_carrier_ops,
	.native = &verbs_native_ops,
};
