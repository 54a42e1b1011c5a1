/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is destroyed counts, for those that it needs, until the device has nothing of it any more:
 * another thread may wait for the count and destroy them at once.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fdutil.h"
#include "verbs/verbs_conn.h"

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *out)
{
	return 0;
}

static struct ibv_device ibv;
static struct ibv_context context = { .device = &ibv, .ops.poll_cq = poll_cq };
static struct ibv_pd device_pd;
static struct ibv_cq device_cq = { .context = &context };
static struct ibv_qp device_qp;

static struct verbs_device device;
static struct verbs_pd *pd;
static struct verbs_cq *cq;
static unsigned int counted; /* for the device, while something is destroyed */
static unsigned int gone;    /* objects of the device's */
static bool asked;	     /* the listener has had its Request */

/* --- the device's libraries --- */

static struct ibv_pd *alloc_pd(struct ibv_context *ctx)
{
	return &device_pd;
}

static int dealloc_pd(struct ibv_pd *p)
{
	cr_expect_eq(pd->users, 0u);
	cr_expect_eq(device.objects, counted);
	gone++;
	return 0;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	cr_assert_eq(base_eventfd_create(&channel->fd), 0);
	return channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
	cr_expect_eq(cq->users, 0u);
	cr_expect_eq(device.objects, counted);
	base_fd_close(channel->fd);
	free(channel);
	gone++;
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *ctx, int n, void *own,
				struct ibv_comp_channel *channel, int vector)
{
	return &device_cq;
}

/* Of a queue pair: both counts are its own */
static int destroy_cq(struct ibv_cq *c)
{
	cr_expect_eq(cq->users, 2u);
	cr_expect_eq(pd->users, 1u);
	gone++;
	return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
	return &device_qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	cr_expect_eq(pd->users, 1u);
	gone++;
	return 0;
}

static const char *device_name(struct ibv_device *d)
{
	return "made-up0";
}

static struct rdma_event_channel *create_event_channel(void)
{
	struct rdma_event_channel *channel = calloc(1, sizeof(*channel));

	cr_assert_eq(base_eventfd_create(&channel->fd), 0);
	return channel;
}

static void destroy_event_channel(struct rdma_event_channel *channel)
{
	cr_expect_eq(device.objects, counted);
	base_fd_close(channel->fd);
	free(channel);
	gone++;
}

static int create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *ctx,
		     enum rdma_port_space ps)
{
	*out = calloc(1, sizeof(**out));
	(*out)->verbs = &context;
	return 0;
}

static int destroy_id(struct rdma_cm_id *id)
{
	cr_expect_eq(device.objects, counted);
	free(id);
	gone++;
	return 0;
}

static int bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return 0;
}

static int listen_id(struct rdma_cm_id *id, int backlog)
{
	return 0;
}

/* One Request, and nothing else ever */
static int get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	static struct rdma_cm_event event = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };

	if (asked)
		return -1;
	asked = true;
	create_id(channel, &event.id, NULL, RDMA_PS_TCP);
	*out = &event;
	return 0;
}

static int ack_cm_event(struct rdma_cm_event *event)
{
	return 0;
}

static int migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return 0;
}

static int reject_id(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return 0;
}

static void device_make(void)
{
	verbs_lib = (struct verbs_lib){
		.ibv_alloc_pd_call = alloc_pd,
		.ibv_create_comp_channel_call = create_comp_channel,
		.ibv_create_cq_call = create_cq,
		.ibv_create_qp_call = create_qp,
		.ibv_dealloc_pd_call = dealloc_pd,
		.ibv_destroy_comp_channel_call = destroy_comp_channel,
		.ibv_destroy_cq_call = destroy_cq,
		.ibv_destroy_qp_call = destroy_qp,
		.ibv_get_device_name_call = device_name,
		.ibv_modify_qp_call = modify_qp,
		.rdma_ack_cm_event_call = ack_cm_event,
		.rdma_bind_addr_call = bind_addr,
		.rdma_create_event_channel_call = create_event_channel,
		.rdma_create_id_call = create_id,
		.rdma_destroy_event_channel_call = destroy_event_channel,
		.rdma_destroy_id_call = destroy_id,
		.rdma_get_cm_event_call = get_cm_event,
		.rdma_listen_call = listen_id,
		.rdma_migrate_id_call = migrate_id,
		.rdma_reject_call = reject_id,
	};
	device = (struct verbs_device){ .ctx = &context,
					.iwarp = true,
					.attr = { .max_cqe = 100, .max_qp_wr = 100, .max_sge = 4 },
					.async = PTHREAD_MUTEX_INITIALIZER,
					.progress.lock = PTHREAD_MUTEX_INITIALIZER };
	gone = 0;
	asked = false;
}

TestSuite(verbs_destroy, .init = device_make);

Test(verbs_destroy, queues_and_their_domain)
{
	struct warp_qp_attr attr = {
		.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1
	};
	struct warp_pd *wpd;
	struct warp_cq *wcq;
	struct warp_qp *wqp;

	cr_assert_eq(verbs_pd_create(&device.dev, &wpd), 0);
	cr_assert_eq(verbs_cq_create(&device.dev, 8, &wcq), 0);
	pd = verbs_pd_of(wpd);
	cq = verbs_cq_of(wcq);
	attr.send_cq = attr.recv_cq = wcq;
	cr_assert_eq(verbs_qp_create(wpd, &attr, &wqp), 0);
	cr_expect_eq(verbs_cq_destroy(wcq), -EBUSY);
	cr_expect_eq(verbs_pd_destroy(wpd), -EBUSY);
	cr_assert_eq(verbs_qp_destroy(wqp), 0);
	cr_expect_eq(gone, 2u, "the queue pair and what completes there");
	counted = 2;
	cr_assert_eq(verbs_cq_destroy(wcq), 0);
	counted = 1;
	cr_assert_eq(verbs_pd_destroy(wpd), 0);
	cr_expect_eq(gone, 4u);
	cr_expect_eq(device.objects, 0u);
}

Test(verbs_destroy, a_listener_and_who_asked)
{
	struct sockaddr addr = { .sa_family = AF_INET };
	struct warp_listener *listener;
	struct warp_conn *conn;

	cr_assert_eq(verbs_listen(&device.dev, &addr, sizeof(addr), 1, &listener), 0);
	cr_assert_eq(verbs_listener_get(listener, 0, &conn), 0);
	counted = 2;
	cr_assert_eq(verbs_listener_destroy(listener), 0);
	cr_expect_eq(gone, 2u, "its id and its channel");
	counted = 1;
	cr_assert_eq(verbs_conn_destroy(conn), 0);
	cr_expect_eq(gone, 4u);
	cr_expect_eq(device.objects, 0u);
}
