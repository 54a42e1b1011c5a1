/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every operation between two queue pairs over TCP loopback, in every way in which a stream can
 * be set up.
 */
#include "tests/unit/soft/end.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

static struct warp_device *dev, *there;
static struct end a, b;

static void ends_make(const struct warp_conn_param *ip, const struct warp_conn_param *rp)
{
	end_devices_open(&dev, &there);
	end_init(&a, dev, 64);
	end_init(&b, there, 64);
	ends_connect(&a, &b, ip, rp);
}

static void ends_drop(void)
{
	end_uninit(&a);
	end_uninit(&b);
	end_devices_close(dev, there);
}

static void ends_default(void)
{
	ends_make(NULL, NULL);
	cr_assert_eq(warp_conn_wait(b.conn, 5000), 0);
}

TestSuite(soft_ops, .timeout = 60);

static void fill(uint8_t *p, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 31 + seed) >> 2);
}

static void expect(struct end *e, struct end *other, uint64_t id, enum warp_wc_opcode op)
{
	struct warp_wc wc = end_next(e, other);

	cr_assert_eq(wc.status, WARP_WC_SUCCESS, "%s", warp_wc_status_text(wc.status));
	cr_assert_eq(wc.wr_id, id);
	cr_assert_eq(wc.opcode, op);
	cr_assert_eq(wc.qp, e->qp);
}

static void send_once(struct end *x, struct end *y, uint32_t len)
{
	struct warp_wc wc;

	fill(x->mem, len, len);
	cr_assert_eq(end_recv(y, 7, 4096, END_ROOM / 2), 1);
	cr_assert_eq(end_post(x, (struct warp_send_wr){ .wr_id = 9, .opcode = WARP_WR_SEND }, 0,
			      len),
		     1);
	wc = end_next(y, x);
	cr_assert_eq(wc.status, WARP_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, len);
	cr_assert_eq(wc.wr_id, 7);
	cr_assert_eq(memcmp(x->mem, y->mem + 4096, len), 0);
	expect(x, y, 9, WARP_WC_SEND);
}

static void write_once(struct end *x, struct end *y, uint32_t len)
{
	struct warp_send_wr wr = { .wr_id = 3,
				   .opcode = WARP_WR_WRITE,
				   .remote_stag = warp_mr_stag(y->mr),
				   .remote_to = (uintptr_t)y->mem + END_ROOM / 2 };

	fill(x->mem, len, len + 1);
	cr_assert_eq(end_post(x, wr, 0, len), 1);
	expect(x, y, 3, WARP_WC_WRITE);
	send_once(x, y, 1);
	fill(x->mem, len, len + 1);
	cr_assert_eq(memcmp(x->mem, y->mem + END_ROOM / 2, len), 0);
}

static void read_once(struct end *x, struct end *y, uint32_t len)
{
	struct warp_send_wr wr = { .wr_id = 4,
				   .opcode = WARP_WR_READ,
				   .remote_stag = warp_mr_stag(y->mr),
				   .remote_to = (uintptr_t)y->mem };

	fill(y->mem, len, len + 2);
	cr_assert_eq(end_post(x, wr, END_ROOM / 2, len), 1);
	expect(x, y, 4, WARP_WC_READ);
	cr_assert_eq(memcmp(x->mem + END_ROOM / 2, y->mem, len), 0);
}

static void atomics_once(struct end *x, struct end *y)
{
	struct warp_send_wr wr = { .wr_id = 5,
				   .opcode = WARP_WR_FETCH_ADD,
				   .swap_add = 5,
				   .remote_stag = warp_mr_stag(y->mr),
				   .remote_to = (uintptr_t)y->mem };
	uint64_t *target = (uint64_t *)y->mem, *found = (uint64_t *)(x->mem + 64);

	*target = 37;
	cr_assert_eq(end_post(x, wr, 64, 8), 1);
	expect(x, y, 5, WARP_WC_ATOMIC);
	cr_assert_eq(*found, 37);
	cr_assert_eq(*target, 42);
	wr.opcode = WARP_WR_CMP_SWAP;
	wr.compare = 42;
	wr.compare_mask = wr.mask = ~0ull;
	wr.swap_add = 99;
	cr_assert_eq(end_post(x, wr, 64, 8), 1);
	expect(x, y, 5, WARP_WC_ATOMIC);
	cr_assert_eq(*found, 42);
	cr_assert_eq(*target, 99);
	cr_assert_eq(end_post(x, wr, 64, 8), 1);
	expect(x, y, 5, WARP_WC_ATOMIC);
	cr_assert_eq(*found, 99);
	cr_assert_eq(*target, 99);
}

static void immediate_once(struct end *x, struct end *y)
{
	struct warp_send_wr wr = { .wr_id = 6,
				   .opcode = WARP_WR_IMMEDIATE,
				   .flags = WARP_SEND_SOLICITED,
				   .immediate = 0x0123456789abcdef };
	struct warp_wc wc;

	cr_assert_eq(end_recv(y, 8, 0, 1), 1);
	cr_assert_eq(end_post(x, wr, 0, 0), 1);
	wc = end_next(y, x);
	cr_assert_eq(wc.flags, WARP_WC_WITH_IMMEDIATE | WARP_WC_SOLICITED);
	cr_assert_eq(wc.immediate, 0x0123456789abcdef);
	expect(x, y, 6, WARP_WC_SEND);
}

static void refused_once(struct end *x, enum warp_wr_opcode opcode, uint32_t len)
{
	cr_assert_eq(end_post(x, (struct warp_send_wr){ .opcode = opcode }, 0, len), -EOPNOTSUPP);
}

static void every_op(struct end *x, struct end *y)
{
	static const uint32_t lengths[] = { 0, 1, 4, 1442, 5000, 65535, 200000 };

	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		send_once(x, y, lengths[i]);
		write_once(x, y, lengths[i]);
		read_once(x, y, lengths[i]);
	}
	if (end_can(dev, WARP_FEATURE_ATOMIC))
		atomics_once(x, y);
	else
		refused_once(x, WARP_WR_FETCH_ADD, 8);
	if (end_can(dev, WARP_FEATURE_IMMEDIATE))
		immediate_once(x, y);
	else
		refused_once(x, WARP_WR_IMMEDIATE, 0);
}

Test(soft_ops, every_operation_both_ways)
{
	ends_default();
	every_op(&a, &b);
	every_op(&b, &a);
	ends_drop();
}

/* CRC, markers, revision, RTR: of either end */
Test(soft_ops, every_option)
{
	static const unsigned int rtr[] = { WARP_CONN_REV1,	WARP_CONN_NO_P2P,
					    WARP_CONN_RTR_SEND, WARP_CONN_RTR_WRITE,
					    WARP_CONN_RTR_READ, 0 };
	struct warp_conn_info info;

	if (!end_is_soft())
		cr_skip_test("a device sets its connections up in its own way");
	for (unsigned int i = 0; i < 16 * 6; i++) {
		struct warp_conn_param ip = { .ird = 4, .ord = 4, .flags = rtr[i / 16] };
		struct warp_conn_param rp = { .ird = 4, .ord = 4, .flags = rtr[i / 16] };

		ip.flags |= (i & 1 ? WARP_CONN_NO_CRC : 0) | (i & 2 ? WARP_CONN_MARKERS : 0);
		rp.flags |= (i & 4 ? WARP_CONN_NO_CRC : 0) | (i & 8 ? WARP_CONN_MARKERS : 0);
		ends_make(&ip, &rp);
		every_op(&a, &b);
		every_op(&b, &a);
		cr_assert_eq(warp_conn_query(b.conn, &info), 0);
		cr_assert_eq(info.state, WARP_CONN_ESTABLISHED);
		cr_assert_eq(info.crc, (i & 5) != 5);
		cr_assert_eq(info.tx_markers, !!(i & 2));
		cr_assert_eq(info.rx_markers, !!(i & 8));
		cr_assert_eq(info.mpa_rev, ip.flags & WARP_CONN_REV1 ? 1 : 2);
		ends_drop();
	}
}

Test(soft_ops, pieces_are_gathered_and_scattered)
{
	struct warp_sge out[END_PIECES], in[END_PIECES];
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND, .flags = WARP_SEND_SIGNALED, .sg = out };
	struct warp_recv_wr rwr = { .wr_id = 1, .sg = in };
	unsigned int n;
	size_t total = 0;

	ends_default();
	wr.num_sge = rwr.num_sge = n = a.pieces;
	fill(a.mem, 65536, 1);
	for (unsigned int i = 0; i < n; i++) {
		out[i] = end_sge(&a, total, i * 37);
		in[n - 1 - i] = end_sge(&b, 30000 + i * 1000, i * 37);
		total += i * 37;
	}
	cr_assert_eq(warp_qp_post_recv(b.qp, &rwr, 1), 1);
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), 1);
	cr_assert_eq(end_next(&b, &a).byte_len, total);
	for (unsigned int i = 0, at = 0; i < n; at += in[i++].length)
		cr_assert_eq(memcmp(in[i].addr, a.mem + at, in[i].length), 0);
	ends_drop();
}

/* Behind a Read, so that a device sends them by itself and not in the call */
Test(soft_ops, small_messages_that_lie_on_two_pages)
{
	enum { PAGE = 4096, MESSAGES = 40 };
	struct warp_send_wr rd = { .opcode = WARP_WR_READ };
	struct warp_send_wr small = { .opcode = WARP_WR_SEND, .flags = WARP_SEND_FENCE };

	ends_default();
	fill(a.mem, END_ROOM, 1);
	rd.remote_stag = warp_mr_stag(b.mr);
	rd.remote_to = (uintptr_t)b.mem;
	cr_assert_eq(end_post(&a, rd, END_ROOM / 2, END_ROOM / 2), 1);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		cr_assert_eq(end_recv(&b, i, END_ROOM / 2 + i * PAGE, 64), 1);
		cr_assert_eq(end_post(&a, small, (i + 1) * PAGE - 1 - i % 7, 8 + i), 1);
	}
	for (unsigned int i = 0; i < MESSAGES; i++) {
		cr_assert_eq(end_next(&b, &a).byte_len, 8 + i);
		cr_assert_eq(memcmp(b.mem + END_ROOM / 2 + i * PAGE,
				    a.mem + (i + 1) * PAGE - 1 - i % 7, 8 + i),
			     0, "%u", i);
	}
	ends_drop();
}

Test(soft_ops, inline_octets_are_copied_by_the_call)
{
	char text[257] = "taken at once";
	struct warp_sge sge = { text, 13, 0 };
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND,
				   .flags = WARP_SEND_INLINE | WARP_SEND_SIGNALED,
				   .sg = &sge,
				   .num_sge = 1 };

	ends_default();
	cr_assert_eq(end_recv(&b, 1, 0, 300), 1);
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), 1);
	memset(text, 'x', sizeof(text));
	cr_assert_eq(end_next(&b, &a).byte_len, 13);
	cr_assert_eq(memcmp(b.mem, "taken at once", 13), 0);
	sge.length = 257;
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), -EINVAL);
	sge.length = 256;
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), 1);
	ends_drop();
}

Test(soft_ops, completions_are_in_posting_order)
{
	struct warp_send_wr rd = { .opcode = WARP_WR_READ, .remote_stag = warp_mr_stag(NULL) };
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE };

	ends_default();
	rd.remote_stag = wr.remote_stag = warp_mr_stag(b.mr);
	rd.remote_to = wr.remote_to = (uintptr_t)b.mem;
	for (uint64_t i = 0; i < 30; i++) {
		rd.wr_id = wr.wr_id = i;
		cr_assert_eq(end_post(&a, i % 3 ? wr : rd, 512 * i, 512), 1);
	}
	for (uint64_t i = 0; i < 30; i++)
		expect(&a, &b, i, i % 3 ? WARP_WC_WRITE : WARP_WC_READ);
	ends_drop();
}

Test(soft_ops, only_what_is_signalled_completes)
{
	struct warp_sge sge;
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE, .sg = &sge, .num_sge = 1 };
	int n;

	ends_default();
	sge = end_sge(&a, 0, 8);
	wr.remote_stag = warp_mr_stag(b.mr);
	wr.remote_to = (uintptr_t)b.mem;
	for (uint64_t i = 0; i < 200; i++) {
		wr.wr_id = i;
		wr.flags = i % 50 == 49 ? WARP_SEND_SIGNALED : 0;
		while ((n = warp_qp_post_send(a.qp, &wr, 1)) == -ENOMEM)
			usleep(100); /* those without a completion make room by themselves */
		cr_assert_eq(n, 1);
	}
	for (uint64_t i = 49; i < 200; i += 50)
		expect(&a, &b, i, WARP_WC_WRITE);
	ends_drop();
}

/* Without the fence the target has often taken the Write in before it answers the Read */
Test(soft_ops, a_fence_waits_for_reads)
{
	struct warp_send_wr rd = { .opcode = WARP_WR_READ };
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE, .flags = WARP_SEND_FENCE };

	ends_default();
	rd.remote_stag = wr.remote_stag = warp_mr_stag(b.mr);
	rd.remote_to = wr.remote_to = (uintptr_t)b.mem;
	for (unsigned int i = 1; i < 100; i++) {
		memset(a.mem + 4096, (int)i, 4096);
		cr_assert_eq(end_post(&a, rd, 0, 4096), 1);
		cr_assert_eq(end_post(&a, wr, 4096, 4096), 1);
		expect(&a, &b, 0, WARP_WC_READ);
		cr_assert_eq(a.mem[0], i - 1);
		cr_assert_eq(a.mem[4095], i - 1);
		expect(&a, &b, 0, WARP_WC_WRITE);
	}
	ends_drop();
}

Test(soft_ops, more_reads_than_ord_wait_their_turn)
{
	struct warp_conn_param p = { .ird = 2, .ord = 2 };
	struct warp_send_wr rd = { .opcode = WARP_WR_READ };

	ends_make(&p, &p);
	rd.remote_stag = warp_mr_stag(b.mr);
	rd.remote_to = (uintptr_t)b.mem;
	for (uint64_t i = 0; i < 50; i++) {
		rd.wr_id = i;
		cr_assert_eq(end_post(&a, rd, 0, 1000), 1);
	}
	for (uint64_t i = 0; i < 50; i++)
		expect(&a, &b, i, WARP_WC_READ);
	ends_drop();
}

Test(soft_ops, the_depths_are_negotiated)
{
	struct warp_conn_param ip = { .ird = 8, .ord = 6 }, rp = { .ird = 3, .ord = 100 };
	struct warp_conn_info info;

	ends_make(&ip, &rp);
	cr_assert_eq(warp_conn_query(a.conn, &info), 0);
	/* A device may give more than its program asks for */
	cr_assert(end_is_soft() ? info.ord == 3 : info.ord >= 3 && info.ord <= 6);
	cr_assert_eq(info.ird, 8);
	cr_assert(end_is_soft() ? info.peer_ird == 3 : info.peer_ird >= 3);
	cr_assert_eq(warp_conn_query(b.conn, &info), 0);
	cr_assert_eq(info.ord, 8);
	ends_drop();
}

Test(soft_ops, without_a_depth_reads_are_refused)
{
	struct warp_conn_param p = { .ird = 0, .ord = 0, .flags = WARP_CONN_RTR_WRITE };
	struct warp_send_wr rd = { .opcode = WARP_WR_READ };

	ends_make(&p, &p);
	cr_assert_eq(end_post(&a, rd, 0, 8), -EINVAL);
	send_once(&a, &b, 10);
	ends_drop();
}

Test(soft_ops, a_send_invalidates)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND_INVALIDATE };
	struct warp_mr *mr;
	struct warp_wc wc;

	ends_default();
	if (!end_can(dev, WARP_FEATURE_INVALIDATE))
		cr_skip_test("the device cannot");
	cr_assert_eq(warp_mr_register(b.pd, b.mem, 100, WARP_ACCESS_REMOTE_WRITE, &mr), 0);
	wr.inv_stag = warp_mr_stag(mr);
	cr_assert_eq(end_recv(&b, 1, 0, 100), 1);
	cr_assert_eq(end_post(&a, wr, 0, 10), 1);
	wc = end_next(&b, &a);
	cr_assert_eq(wc.flags, WARP_WC_WITH_INVALIDATE);
	cr_assert_eq(wc.inv_stag, warp_mr_stag(mr));
	expect(&a, &b, 0, WARP_WC_SEND);
	wr.opcode = WARP_WR_WRITE;
	wr.remote_stag = warp_mr_stag(mr);
	wr.remote_to = (uintptr_t)b.mem;
	cr_assert_eq(end_recv(&a, 2, 0, 1), 1);
	cr_assert_eq(end_post(&a, wr, 0, 10), 1);
	expect(&a, &b, 0, WARP_WC_WRITE);
	cr_assert_eq(end_next(&a, &b).status, WARP_WC_FLUSHED);
	cr_assert_eq(warp_mr_deregister(mr), 0);
	ends_drop();
}

Test(soft_ops, a_local_invalidation_has_its_place_in_the_queue)
{
	struct warp_send_wr wr = { .wr_id = 1, .opcode = WARP_WR_WRITE };
	struct warp_send_wr inv = { .wr_id = 2, .opcode = WARP_WR_LOCAL_INVALIDATE };
	struct warp_mr *mr;

	ends_default();
	if (!end_can(dev, WARP_FEATURE_INVALIDATE))
		cr_skip_test("the device cannot");
	cr_assert_eq(warp_mr_register(a.pd, a.mem, 100, WARP_ACCESS_REMOTE_WRITE, &mr), 0);
	wr.remote_stag = warp_mr_stag(b.mr);
	wr.remote_to = (uintptr_t)b.mem;
	inv.inv_stag = warp_mr_stag(mr);
	cr_assert_eq(end_post(&a, wr, 0, 50000), 1);
	cr_assert_eq(end_post(&a, inv, 0, 0), 1);
	expect(&a, &b, 1, WARP_WC_WRITE);
	expect(&a, &b, 2, WARP_WC_LOCAL_INVALIDATE);
	wr.remote_stag = warp_mr_stag(mr);
	wr.remote_to = (uintptr_t)a.mem;
	cr_assert_eq(end_recv(&b, 2, 0, 1), 1);
	cr_assert_eq(end_post(&b, wr, 0, 50), 1);
	expect(&b, &a, 1, WARP_WC_WRITE);
	cr_assert_eq(end_next(&b, &a).status, WARP_WC_FLUSHED);
	cr_assert_eq(warp_mr_deregister(mr), 0);
	ends_drop();
}

Test(soft_ops, posting_checks)
{
	struct warp_sge sge, two[2], many[17] = { { 0 } };
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE, .sg = &sge, .num_sge = 1 };
	unsigned int n = 0;

	ends_default();
	sge = end_sge(&a, END_ROOM - 10, 11);
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), -EACCES);
	sge = end_sge(&a, 0, 10);
	sge.stag++;
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), -EACCES);
	two[0] = two[1] = (struct warp_sge){ a.mem, 0x80000000u, 0 };
	wr.sg = two;
	wr.num_sge = 2;
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), -EINVAL);
	wr.sg = many;
	wr.num_sge = 17;
	cr_assert_eq(warp_qp_post_send(a.qp, &wr, 1), -EINVAL);
	while (end_recv(&a, 1, 0, 1) == 1)
		n++;
	cr_assert_eq(n, 64);
	cr_assert_eq(end_recv(&a, 1, 0, 1), -ENOMEM);
	ends_drop();
}
