/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completions that a device gives in an order of its own: the program hears of its work requests in
 * the order in which it has posted them, and of none before it is complete.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "rnic/write_retry.h"
#include "verbs/verbs_conn.h"

#define DEPTH 4

static struct ibv_wc given[8];
static int num_given;

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *out)
{
	int got = num_given;

	memcpy(out, given, (size_t)got * sizeof(*out));
	num_given = 0;
	return got;
}

static struct ibv_context context = { .ops.poll_cq = poll_cq };
static struct ibv_cq device_cq = { .context = &context };

static struct ibv_cq *create_cq(struct ibv_context *ctx, int n, void *own,
				struct ibv_comp_channel *channel, int vector)
{
	return &device_cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
	return 0;
}

static struct verbs_device device;
static struct verbs_cq cq;
static struct verbs_qp q;

static void queues_make(void)
{
	verbs_lib.ibv_create_cq_call = create_cq;
	verbs_lib.ibv_destroy_cq_call = destroy_cq;
	device.ctx = &context;
	q = (struct verbs_qp){ .dev = &device, .halves = 1 };
	cr_assert_eq(verbs_queue_init(&q.sq, DEPTH), 0);
	cr_assert_eq(verbs_queue_init(&q.rq, DEPTH), 0);
	cr_assert_eq(verbs_half_init(&q.half[0], &q, &cq, 2 * DEPTH + RNIC_WRITE_RETRIES), 0);
}

static void queues_drop(void)
{
	verbs_half_uninit(&q.half[0]);
	free(q.sq.slot);
	free(q.rq.slot);
}

/* As verbs_post.c does it: the device's mark */
static uint64_t posted(uint64_t id, bool signaled, bool own)
{
	uint64_t mark = verbs_queue_mark(&q.sq, VERBS_MARK_SEND);

	q.sq.slot[base_ring_push(&q.sq.ring)] =
		(struct verbs_slot){ .wr_id = id, .signaled = signaled, .own = own };
	q.sq.used += !own;
	return mark;
}

static void completes(uint64_t mark, enum ibv_wc_status status)
{
	given[num_given++] = (struct ibv_wc){ .wr_id = mark, .status = status };
}

static void expect(uint64_t id, enum warp_wc_status status)
{
	struct warp_wc wc;

	cr_assert_eq(verbs_half_take(&q.half[0], &wc, 1), 1);
	cr_expect_eq(wc.wr_id, id, "%lu instead of %lu", (unsigned long)wc.wr_id,
		     (unsigned long)id);
	cr_expect_eq(wc.status, status);
}

static void expect_none(void)
{
	verbs_half_reap(&q.half[0]);
	cr_expect_not(verbs_half_has(&q.half[0]));
}

Test(verbs_order, a_read_is_complete_when_its_response_has_come)
{
	uint64_t read, send, write_retry, write;

	queues_make();
	/* Often enough for the marks to come round */
	for (unsigned int turn = 0; turn < 50; turn++) {
		read = posted(1, true, false);
		send = posted(2, false, false);
		write_retry = posted(0, false, true);
		write = posted(3, true, false);
		completes(write, IBV_WC_SUCCESS);
		completes(write_retry, IBV_WC_SUCCESS);
		expect_none();
		completes(send, IBV_WC_SUCCESS);
		expect_none();
		completes(read, IBV_WC_SUCCESS);
		verbs_half_reap(&q.half[0]);
		expect(1, WARP_WC_SUCCESS);
		expect(3, WARP_WC_SUCCESS);
		expect_none();
		cr_expect_eq(q.sq.used, 0);
		cr_expect(base_ring_empty(&q.sq.ring));
	}
	queues_drop();
}

Test(verbs_order, what_is_flushed_is_what_was_not_complete)
{
	uint64_t send;

	queues_make();
	posted(1, true, false);
	send = posted(2, true, false);
	completes(send, IBV_WC_SUCCESS);
	expect_none();
	verbs_queue_flush(&q.half[0], &q.sq);
	expect(1, WARP_WC_FLUSHED);
	expect(2, WARP_WC_SUCCESS);
	expect_none();
	queues_drop();
}

Test(verbs_order, marks_of_nobody_are_overlooked)
{
	uint64_t read;

	queues_make();
	read = posted(1, true, false);
	completes(read + 2, IBV_WC_SUCCESS);
	completes(read + 1, IBV_WC_SUCCESS);
	expect_none();
	completes(read, IBV_WC_SUCCESS);
	completes(read, IBV_WC_SUCCESS);
	verbs_half_reap(&q.half[0]);
	expect(1, WARP_WC_SUCCESS);
	expect_none();
	queues_drop();
}
