/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front between two ends of its own: start-up, octets through windows and messages,
 * ends and faults.
 */
#include "tests/unit/soft/pair.h"

#include <fcntl.h>

#include "base/bits.h"
#include "mpa/mpa.h"
#include "soft/soft_core.h"

#define RING 65536

static struct pair_end a, b;

/* What one end's sink has got */
struct inbox {
	uint8_t ring[RING];
	uint64_t written;
	uint8_t msg[RING];
	size_t msg_len;
	unsigned int msgs;
	int refuse;
};

static struct inbox box_a, box_b;

static int inbox_write(void *ctx, const struct rnic_window *w, uint64_t off, const void *p,
		       size_t len)
{
	struct inbox *box = ctx;

	cr_assert_eq(w->tag, 77);
	memcpy(box->ring + off, p, len);
	box->written += len;
	return box->refuse;
}

static int inbox_message(void *ctx, uint64_t off, const void *p, size_t len, bool last)
{
	struct inbox *box = ctx;

	if (box->refuse)
		return box->refuse;
	cr_assert_leq(off + len, RING);
	if (len)
		memcpy(box->msg + off, p, len);
	box->msg_len = off + len;
	box->msgs += last;
	return 0;
}

static ssize_t receive(struct pair_end *e, struct inbox *box)
{
	struct rnic_sink sink = { .write = inbox_write, .message = inbox_message, .ctx = box };

	return PAIR_OPS->receive(&e->mem, e->fd, &sink, 0);
}

/* Waits for input, takes it; sends what is owed */
static ssize_t attend(struct pair_end *e, struct inbox *box)
{
	ssize_t got;

	pair_wait(e->fd, POLLIN);
	got = receive(e, box);
	if (PAIR_OPS->owes(&e->mem))
		PAIR_OPS->flush(&e->mem, e->fd);
	return got;
}

static struct rnic_window window_add(struct pair_end *e)
{
	struct rnic_window w = { .to = 0x1000, .len = RING, .tag = 77 };

	cr_assert_eq(PAIR_OPS->window(&e->mem, 0, &w), 0);
	return w;
}

static int put(struct pair_end *e, uint32_t stag, uint64_t to, const void *p, uint32_t len)
{
	struct iovec iov = { (void *)p, len };
	struct rnic_stream_wr wr = { stag, to, &iov, 1, len, NULL, false };

	return PAIR_OPS->send(&e->mem, e->fd, &wr, 1);
}

static struct rnic_stream_info info_of(struct pair_end *e)
{
	struct rnic_stream_info info;

	PAIR_OPS->info(&e->mem, &info);
	return info;
}

static void pair_make(const struct rnic_stream_param *param)
{
	struct rnic_stream_param p = *param;
	int fd[2];

	memset(&box_a, 0, sizeof(box_a));
	memset(&box_b, 0, sizeof(box_b));
	tcp_pair(fd, 0, 0);
	p.initiator = true;
	pair_end_init(&a, fd[0], &p);
	p.initiator = false;
	pair_end_init(&b, fd[1], &p);
}

static void pair_drop(void)
{
	pair_end_uninit(&a);
	pair_end_uninit(&b);
}

static const struct rnic_stream_param plain = { .crc = true, .mpa_rev = 2, .ird = 1, .ord = 1 };

static void open_plain(void)
{
	pair_make(&plain);
	pair_open(&a, &b);
}

TestSuite(soft_stream, .fini = pair_drop);

/* a speaks first, for b may not before */
static void exchange(void)
{
	static uint8_t data[6000];
	struct rnic_window wa = window_add(&a), wb = window_add(&b);

	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (uint32_t n = 1; n < sizeof(data); n = n * 3 + 1) {
		cr_assert_eq(put(&a, wb.stag, wb.to + 100, data, n), 1);
		cr_assert_eq(put(&a, 0, 0, data, n % 64), 1);
		for (unsigned int had = box_b.msgs; box_b.msgs == had;)
			cr_assert_gt(attend(&b, &box_b), 0);
		cr_assert_arr_eq(box_b.ring + 100, data, n);
		cr_assert_eq(box_b.msg_len, n % 64);
		cr_assert_eq(put(&b, wa.stag, wa.to, data, n), 1);
		cr_assert_eq(put(&b, 0, 0, data, 4), 1);
		for (unsigned int had = box_a.msgs; box_a.msgs == had;)
			cr_assert_gt(attend(&a, &box_a), 0);
		cr_assert_arr_eq(box_a.ring, data, n);
	}
}

Test(soft_stream, every_option_of_start_up)
{
	for (unsigned int i = 0; i < 64; i++) {
		struct rnic_stream_param p = {
			.crc = i & 1,
			.markers = i & 2,
			.mpa_rev = i & 4 ? 2 : 1,
			.p2p = i >> 3,
			.rtr = i >> 3,
			.ird = 1,
			.ord = 1,
		};

		pair_make(&p);
		pair_open(&a, &b);
		cr_assert_eq(info_of(&a).crc, p.crc);
		cr_assert_eq(info_of(&a).tx_markers, p.markers);
		cr_assert_eq(info_of(&b).mpa_rev, p.mpa_rev);
		exchange();
		if (i < 63)
			pair_drop();
	}
}

Test(soft_stream, private_data_passes_both_ways)
{
	char pd[512];
	size_t len;

	pair_make(&plain);
	cr_assert_eq(PAIR_OPS->private_data(&b.mem, pd, &len), -ENODATA);
	pair_open(&a, &b);
	cr_assert_eq(PAIR_OPS->private_data(&b.mem, pd, &len), 0);
	cr_assert(len == 2 && !memcmp(pd, "hi", 2));
	cr_assert_eq(PAIR_OPS->private_data(&a.mem, pd, &len), 0);
	cr_assert(len == 5 && !memcmp(pd, "hello", 5));
	exchange();
}

/* Who knows that need not look again; an end counts as something */
Test(soft_stream, what_is_behind_the_reply_is_known)
{
	short events;

	pair_make(&plain);
	pair_open(&a, &b);
	cr_expect(info_of(&a).alone);
	cr_expect(info_of(&b).alone);
	pair_drop();
	pair_make(&plain);
	cr_assert_eq(PAIR_OPS->start(&a.mem, a.fd, "hi", 2, &events), -EAGAIN);
	cr_assert_eq(pair_start(&b, NULL, 0), RNIC_STREAM_REQUEST);
	cr_assert_eq(PAIR_OPS->accept(&b.mem, b.fd, "hello", 5), 0);
	cr_assert_eq(shutdown(b.fd, SHUT_WR), 0);
	cr_assert_eq(pair_start(&a, NULL, 0), RNIC_STREAM_OPEN);
	cr_expect_not(info_of(&a).alone);
}

Test(soft_stream, a_rejection_carries_private_data)
{
	short events;
	char pd[512];
	size_t len;

	pair_make(&plain);
	cr_assert_eq(PAIR_OPS->start(&a.mem, a.fd, NULL, 0, &events), -EAGAIN);
	cr_assert_eq(events, POLLIN);
	cr_assert_eq(pair_start(&b, NULL, 0), RNIC_STREAM_REQUEST);
	cr_assert_eq(info_of(&b).state, RNIC_STREAM_REQUEST);
	cr_assert_eq(PAIR_OPS->reject(&b.mem, b.fd, "no", 2), 0);
	cr_assert_eq(pair_start(&a, NULL, 0), RNIC_STREAM_REJECTED);
	cr_assert_eq(PAIR_OPS->private_data(&a.mem, pd, &len), 0);
	cr_assert(len == 2 && !memcmp(pd, "no", 2));
	cr_assert_eq(info_of(&a).state, RNIC_STREAM_REJECTED);
	cr_assert_eq(put(&a, 0, 0, "x", 1), -ENOTCONN);
}

Test(soft_stream, what_is_no_request_stays_in_the_socket)
{
	static const char *const others[] = { "GET / HTTP/1.0\r\n\r\n", "M", "MPA ID Rep Frame",
					      "MPA ID Req Framf" };
	char buf[64];

	for (unsigned int i = 0; i < base_array_size(others); i++) {
		size_t len = strlen(others[i]);

		pair_make(&plain);
		cr_assert_eq(send(a.fd, others[i], len, 0), (ssize_t)len);
		shutdown(a.fd, SHUT_WR);
		cr_assert_eq(pair_start(&b, NULL, 0), -ENOMSG, "%s", others[i]);
		cr_assert_eq(recv(b.fd, buf, sizeof(buf), MSG_WAITALL), (ssize_t)len);
		cr_assert_eq(memcmp(buf, others[i], len), 0);
		if (i < 3)
			pair_drop();
	}
}

Test(soft_stream, a_connection_that_only_ends_is_no_request)
{
	pair_make(&plain);
	shutdown(a.fd, SHUT_WR);
	cr_assert_eq(pair_start(&b, NULL, 0), -ENOMSG);
}

Test(soft_stream, a_request_in_single_octets)
{
	static const char req[] = "MPA ID Req Frame\x40\x01\x00\x03pdx";
	short events = 0;
	char pd[512];
	size_t len;

	pair_make(&plain);
	for (unsigned int i = 0; i < sizeof(req) - 1; i++) {
		cr_assert_eq(PAIR_OPS->start(&b.mem, b.fd, NULL, 0, &events), -EAGAIN);
		cr_assert_eq(events, POLLIN);
		send(a.fd, req + i, 1, 0);
		usleep(500);
	}
	cr_assert_eq(pair_start(&b, NULL, 0), RNIC_STREAM_REQUEST);
	cr_assert_eq(PAIR_OPS->private_data(&b.mem, pd, &len), 0);
	cr_assert(len == 3 && !memcmp(pd, "pdx", 3));
}

Test(soft_stream, octets_behind_the_reply_are_frames)
{
	struct rnic_window w;
	short events;

	/*
	 * The responder of the client-server model answers and, against the rules, sends at once,
	 * as some peers do
	 */
	pair_make(&plain);
	PAIR_OPS->start(&a.mem, a.fd, NULL, 0, &events);
	cr_assert_eq(pair_start(&b, NULL, 0), RNIC_STREAM_REQUEST);
	cr_assert_eq(PAIR_OPS->accept(&b.mem, b.fd, NULL, 0), 0);
	w = window_add(&a);
	((struct soft_core *)((uint8_t *)b.mem.state + 24))->rdmap.ddp.mpa.state = MPA_OPEN;
	cr_assert_eq(put(&b, w.stag, w.to, "early", 5), 1);
	usleep(20000);
	cr_assert_eq(pair_start(&a, NULL, 0), RNIC_STREAM_OPEN);
	cr_assert_gt(attend(&a, &box_a), 0);
	cr_assert_arr_eq(box_a.ring, "early", 5);
}

Test(soft_stream, the_responder_waits_for_the_first_frame)
{
	open_plain();
	cr_assert_not(info_of(&b).may_send);
	cr_assert_eq(put(&b, 0, 0, "x", 1), -EAGAIN);
	cr_assert_eq(put(&a, 0, 0, "x", 1), 1);
	cr_assert_gt(attend(&b, &box_b), 0);
	cr_assert_eq(put(&b, 0, 0, "x", 1), 1);
}

Test(soft_stream, rtr_opens_the_responder)
{
	struct rnic_stream_param p = plain;

	p.p2p = true;
	for (p.rtr = 1; p.rtr <= 4; p.rtr *= 2) {
		pair_make(&p);
		pair_open(&a, &b);
		cr_assert(PAIR_OPS->owes(&a.mem));
		cr_assert_eq(PAIR_OPS->flush(&a.mem, a.fd), 0);
		cr_assert_gt(attend(&b, &box_b), 0);
		cr_assert(info_of(&b).may_send);
		cr_assert_eq(box_b.msgs, 0);
		cr_assert_eq(put(&b, 0, 0, "x", 1), 1);
		while (!box_a.msgs)
			cr_assert_gt(attend(&a, &box_a), 0);
		if (p.rtr < 4)
			pair_drop();
	}
}

/* It goes before what is sent first, and waits for that */
Test(soft_stream, rtr_goes_with_the_first_message)
{
	struct rnic_stream_param p = plain;

	p.p2p = true;
	for (p.rtr = 1; p.rtr <= 4; p.rtr *= 2) {
		pair_make(&p);
		pair_open(&a, &b);
		cr_assert_eq(put(&a, 0, 0, "x", 1), 1);
		cr_assert_not(PAIR_OPS->owes(&a.mem));
		while (!box_b.msgs)
			cr_assert_gt(attend(&b, &box_b), 0);
		cr_assert_eq(info_of(&b).rx_fpdus, 2);
		if (p.rtr < 4)
			pair_drop();
	}
}

Test(soft_stream, a_batch_is_counted)
{
	struct iovec iov = { "data", 4 };
	struct rnic_stream_wr wr[3] = { { 0, 0, &iov, 1, 4, NULL, false },
					{ 0, 0, &iov, 1, 4, NULL, false },
					{ 0 } };

	open_plain();
	cr_assert_eq(PAIR_OPS->send(&a.mem, a.fd, wr, 3), 3);
	while (box_b.msgs < 3)
		cr_assert_gt(attend(&b, &box_b), 0);
	cr_assert_eq(box_b.msg_len, 0);
	cr_assert_eq(info_of(&b).rx_fpdus, 3);
}

Test(soft_stream, orderly_end)
{
	open_plain();
	cr_assert_eq(put(&a, 0, 0, "x", 1), 1);
	cr_assert_eq(PAIR_OPS->shutdown(&a.mem, a.fd), 0);
	cr_assert_eq(put(&a, 0, 0, "x", 1), -EPIPE);
	cr_assert_gt(attend(&b, &box_b), 0);
	cr_assert_eq(attend(&b, &box_b), 0);
	cr_assert_eq(info_of(&b).state, RNIC_STREAM_ENDED);
	cr_assert_eq(put(&b, 0, 0, "y", 1), 1);
	cr_assert_gt(attend(&a, &box_a), 0);
}

Test(soft_stream, an_end_inside_a_frame_is_a_cut)
{
	open_plain();
	send(a.fd, "\0\x17\x41", 3, 0);
	shutdown(a.fd, SHUT_WR);
	usleep(1000);
	cr_assert_gt(attend(&b, &box_b), 0);
	cr_assert_eq(attend(&b, &box_b), -ECONNRESET);
	cr_assert_eq(info_of(&b).state, RNIC_STREAM_BROKEN);
	cr_assert_eq(info_of(&b).fault, MPA_E_CLOSED);
}

/* b found a fault: it says so once and for ever, and a hears which */
static void fault_told(uint32_t fault)
{
	ssize_t got;

	cr_assert_eq(attend(&b, &box_b), -EPROTO);
	cr_assert_eq(receive(&b, &box_b), -EPROTO);
	cr_assert_eq(info_of(&b).fault, fault, "%x", info_of(&b).fault);
	cr_assert_not(info_of(&b).fault_by_peer);
	cr_assert_not(PAIR_OPS->owes(&b.mem));
	while ((got = attend(&a, &box_a)) > 0)
		;
	cr_assert_eq(got, -ECONNRESET);
	cr_assert(info_of(&a).fault_by_peer);
	cr_assert_eq(info_of(&a).fault, fault);
	cr_assert_lt(put(&a, 0, 0, "x", 1), 0);
	cr_assert_lt(put(&b, 0, 0, "x", 1), 0);
}

Test(soft_stream, a_write_beyond_the_window)
{
	struct rnic_window w;

	open_plain();
	w = window_add(&b);
	cr_assert_eq(put(&a, w.stag, w.to + RING - 3, "abcd", 4), 1);
	fault_told(DDP_E_T_BOUNDS);
	cr_assert_eq(box_b.written, 0);
}

Test(soft_stream, a_write_to_no_window)
{
	struct rnic_window w;

	open_plain();
	w = window_add(&b);
	cr_assert_eq(put(&a, w.stag + 1, w.to, "abcd", 4), 1);
	fault_told(DDP_E_T_STAG);
}

Test(soft_stream, a_write_that_the_sink_refuses)
{
	struct rnic_window w;

	open_plain();
	w = window_add(&b);
	box_b.refuse = -EACCES;
	cr_assert_eq(put(&a, w.stag, w.to, "abcd", 4), 1);
	fault_told(DDP_E_T_BOUNDS);
}

Test(soft_stream, a_message_that_is_too_long)
{
	open_plain();
	box_b.refuse = -EMSGSIZE;
	cr_assert_eq(put(&a, 0, 0, "abcd", 4), 1);
	fault_told(DDP_E_U_LENGTH);
}

Test(soft_stream, a_damaged_frame)
{
	static const uint8_t fpdu[] = { 0x00, 0x17, 0x41, 0x43, 0, 0, 0,    0,	  0,	0,    0,
					0,    0,    0,	  0,	1, 0, 0,    0,	  0,	0x68, 0x65,
					0x6c, 0x6c, 0x6f, 0,	0, 0, 0xb9, 0x90, 0xb1, 0x0d };

	open_plain();
	/* Without a good one before it the responder may not even say what is wrong */
	cr_assert_eq(put(&a, 0, 0, "x", 1), 1);
	cr_assert_gt(attend(&b, &box_b), 0);
	send(a.fd, fpdu, sizeof(fpdu), 0);
	fault_told(MPA_E_CRC);
	cr_assert_eq(box_b.msgs, 1);
}

Test(soft_stream, a_message_of_many_frames)
{
	static uint8_t msg[60000];
	struct iovec iov = { msg, sizeof(msg) };
	struct rnic_stream_wr wr = { 0, 0, &iov, 1, sizeof(msg), NULL, false };
	int fd[2], got = -EAGAIN;

	pair_make(&plain);
	pair_drop();
	tcp_pair(fd, 1000, 4096);
	pair_end_init(&b, fd[1], &plain);
	pair_end_init(&a, fd[0],
		      &(struct rnic_stream_param){
			      .initiator = true, .crc = true, .mpa_rev = 2, .ird = 1, .ord = 1 });
	pair_open(&a, &b);
	for (unsigned int i = 0; i < sizeof(msg); i++)
		msg[i] = (uint8_t)(i >> 3);
	while (got == -EAGAIN) {
		got = PAIR_OPS->send(&a.mem, a.fd, &wr, 1);
		receive(&b, &box_b);
	}
	cr_assert_eq(got, 1);
	while (!box_b.msgs) {
		PAIR_OPS->flush(&a.mem, a.fd);
		receive(&b, &box_b);
	}
	cr_assert_eq(box_b.msg_len, sizeof(msg));
	cr_assert_arr_eq(box_b.msg, msg, sizeof(msg));
}

Test(soft_stream, what_was_begun_is_not_exchanged)
{
	static uint8_t msg[60000];
	int fd[2];

	pair_make(&plain);
	pair_drop();
	tcp_pair(fd, 1000, 4096);
	pair_end_init(&b, fd[1], &plain);
	pair_end_init(&a, fd[0],
		      &(struct rnic_stream_param){
			      .initiator = true, .crc = true, .mpa_rev = 2, .ird = 1, .ord = 1 });
	pair_open(&a, &b);
	while (PAIR_OPS->owes(&a.mem) || put(&a, 0, 0, msg, sizeof(msg)) == 1)
		;
	/* A rest may keep it from being looked at */
	for (int refused = 0, got; refused < 3; refused += got == -EINVAL) {
		receive(&b, &box_b);
		got = put(&a, 0, 0, msg, sizeof(msg) - 1);
		cr_assert(got == -EINVAL || got == -EAGAIN, "%d", got);
	}
}

Test(soft_stream, the_state_may_move)
{
	struct pair_end moved = { .fd = -1 };

	open_plain();
	cr_assert_eq(put(&a, 0, 0, "x", 1), 1);
	cr_assert_gt(attend(&b, &box_b), 0);
	moved.mem.state = memcpy(malloc(RNIC_STREAM_STATE), b.mem.state, RNIC_STREAM_STATE);
	moved.mem.in = memcpy(malloc(RNIC_STREAM_IN), b.mem.in, RNIC_STREAM_IN);
	moved.mem.rest = malloc(RNIC_STREAM_REST);
	moved.fd = fcntl(b.fd, F_DUPFD_CLOEXEC, 0);
	pair_end_uninit(&b);
	b = moved;
	cr_assert_eq(PAIR_OPS->init(&b.mem, b.fd, NULL), 0);
	exchange();
}

Test(soft_stream, indices_out_of_bounds_are_refused)
{
	struct soft_core *c, good;

	open_plain();
	c = (struct soft_core *)((uint8_t *)a.mem.state + 24);
	good = *c;
	c->in_fill = RNIC_STREAM_IN;
	cr_assert_eq(receive(&a, &box_a), -EBADMSG);
	*c = good;
	c->rest_len = SOFT_FPDU_MAX + 1;
	cr_assert_eq(put(&a, 0, 0, "x", 1), -EBADMSG);
	*c = good;
	cr_assert_eq(put(&a, 0, 0, "x", 1), 1);
}

Test(soft_stream, a_state_out_of_bounds_is_refused)
{
	open_plain();
	memset((uint8_t *)a.mem.state + 24, 0xff, RNIC_STREAM_STATE - 24);
	cr_assert_lt(put(&a, 0, 0, "x", 1), 0);
	cr_assert_lt(receive(&a, &box_a), 0);
	memset(a.mem.state, 0, RNIC_STREAM_STATE);
	cr_assert_eq(put(&a, 0, 0, "x", 1), -EBADMSG);
}

Test(soft_stream, windows_have_their_own_names)
{
	struct rnic_window w[RNIC_WINDOWS], over = { .to = ~0ull, .len = 2 };

	open_plain();
	for (unsigned int i = 0; i < RNIC_WINDOWS; i++) {
		w[i] = (struct rnic_window){ .len = 10, .tag = i };
		cr_assert_eq(PAIR_OPS->window(&a.mem, i, &w[i]), 0);
		cr_assert_neq(w[i].stag, 0);
		for (unsigned int j = 0; j < i; j++)
			cr_assert_neq(w[i].stag, w[j].stag);
	}
	cr_assert_eq(PAIR_OPS->window(&a.mem, RNIC_WINDOWS, &w[0]), -EINVAL);
	cr_assert_eq(PAIR_OPS->window(&a.mem, 0, &over), -EINVAL);
}
