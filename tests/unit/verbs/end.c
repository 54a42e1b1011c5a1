/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receives were flushed, and the connection manager has not said why: how long it has for that, and
 * what the end is taken for when it says nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "verbs/verbs_conn.h"

static int no_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	return -1;
}

static int no_async_event(struct ibv_context *ctx, struct ibv_async_event *out)
{
	return -1;
}

static int disconnect(struct rdma_cm_id *id)
{
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *out)
{
	return 0;
}

static struct ibv_context context = { .ops.poll_cq = poll_cq };
static struct ibv_cq device_cq = { .context = &context };
static struct verbs_device device = { .ctx = &context, .async = PTHREAD_MUTEX_INITIALIZER };
static struct verbs_cq cq;

static const struct {
	bool iwarp, shut; /* the end is ours */
	uint64_t patience_ns;
	enum warp_conn_state state;
	int error;
} rows[] = {
	{ true, false, 10 * BASE_NS_PER_S, WARP_CONN_ERROR, -ECONNRESET },
	{ true, true, 10 * BASE_NS_PER_S, WARP_CONN_DISCONNECTED, 0 },
	{ false, false, BASE_NS_PER_S / 2, WARP_CONN_ERROR, -ECONNRESET },
	{ false, true, BASE_NS_PER_S / 2, WARP_CONN_DISCONNECTED, 0 },
};

Test(verbs_end, flushed_receives_without_an_event)
{
	verbs_lib.rdma_get_cm_event_call = no_cm_event;
	verbs_lib.ibv_get_async_event_call = no_async_event;
	verbs_lib.rdma_disconnect_call = disconnect;
	cr_assert_eq(base_eventfd_create(&cq.event), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verbs_qp q = { .dev = &device,
				      .halves = 1,
				      .half[0] = { .qp = &q, .cq = &cq, .ibv = &device_cq },
				      .broken = true,
				      .lock = PTHREAD_MUTEX_INITIALIZER };
		struct verbs_conn c = { .dev = &device,
					.qp = &q,
					.event = cq.event,
					.state = WARP_CONN_ESTABLISHED,
					.closing = rows[i].shut,
					.shut = rows[i].shut };
		uint64_t before = base_now();

		device.iwarp = rows[i].iwarp;
		verbs_cm_attend(&c);
		cr_expect_eq(c.state, WARP_CONN_ESTABLISHED, "row %zu ends at once", i);
		cr_expect_geq(c.end_by, before + rows[i].patience_ns, "row %zu is impatient", i);
		c.end_by = before;
		verbs_cm_attend(&c);
		cr_expect_eq(c.state, rows[i].state, "row %zu: state %d", i, c.state);
		cr_expect_eq(c.error, rows[i].error, "row %zu: error %d", i, c.error);
	}
	close(cq.event);
}
