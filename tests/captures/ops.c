/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts every operation of the native API on the wire, for a capture to be judged:
 *
 *	ops ADDRESS
 *
 * runs each scenario over a connection of its own to this address. For each connection it prints
 * "conn NAME PORT", the port being that of who connected TCP, and for each Terminate
 * "term NAME LAYER TYPE CODE". What a scenario must look like on the wire is in judge.py; that
 * octets and numbers arrive as they were is checked here.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define BASIC              \
	{                  \
		.depth = 4 \
	}
#define BIG 70000u /* more than one segment, also of loopback's */

/* --- every operation ---------------------------------------------------------------------- */

static void fill(char *p, uint32_t len, unsigned int seed)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (char)(seed + i * 31 + (i >> 8));
}

static void send_one(struct pair *p, struct side *from, struct side *to, uint32_t len,
		     unsigned int flags, int small)
{
	struct warp_sge sg = { from->buf, len, warp_mr_stag(from->mr) };
	struct warp_send_wr wr = { .wr_id = len, .flags = flags, .sg = &sg, .num_sge = 1 };

	if (small >= 0) {
		wr.opcode = WARP_WR_SEND_INVALIDATE;
		wr.inv_stag = warp_mr_stag(to->small_mr[small]);
	}
	fill(from->buf, len, len + flags);
	pair_recv(p, to, PAIR_BUF / 2);
	pair_do(p, from, &wr);
	pair_await(p, to, WARP_WC_RECV);
	PAIR_CHECK(p, to->last.wr_id == to->recvs && to->last.byte_len == len);
	PAIR_CHECK(p, !memcmp(to->buf + PAIR_BUF / 2, from->buf, len));
	PAIR_CHECK(p, !(to->last.flags & WARP_WC_SOLICITED) == !(flags & WARP_SEND_SOLICITED));
	PAIR_CHECK(p, !(to->last.flags & WARP_WC_WITH_INVALIDATE) == (small < 0));
	PAIR_CHECK(p, small < 0 || to->last.inv_stag == wr.inv_stag);
}

static void write_one(struct pair *p, struct side *from, struct side *to, uint32_t len)
{
	struct warp_sge sg[2] = { { from->buf, len / 2, warp_mr_stag(from->mr) },
				  { from->buf + len / 2, len - len / 2, warp_mr_stag(from->mr) } };
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE,
				   .sg = sg,
				   .num_sge = 2,
				   .remote_stag = warp_mr_stag(to->mr),
				   .remote_to = (uintptr_t)to->buf + PAIR_BUF / 2 };

	fill(from->buf, len, len + 5);
	pair_do(p, from, &wr);
	/* A Send behind it says that it is in place. */
	send_one(p, from, to, 0, 0, -1);
	fill(from->buf, len, len + 5);
	PAIR_CHECK(p, !memcmp(to->buf + PAIR_BUF / 2, from->buf, len));
}

static void read_one(struct pair *p, struct side *from, struct side *to, uint32_t len)
{
	struct warp_sge sg = { from->buf, len, warp_mr_stag(from->mr) };
	struct warp_send_wr wr = { .opcode = WARP_WR_READ,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = warp_mr_stag(to->mr),
				   .remote_to = (uintptr_t)to->buf };

	fill(to->buf, len, len + 9);
	memset(from->buf, 0, len);
	pair_do(p, from, &wr);
	PAIR_CHECK(p, from->last.byte_len == len);
	PAIR_CHECK(p, !memcmp(to->buf, from->buf, len));
}

static void immediate_one(struct pair *p, struct side *from, struct side *to, unsigned int flags)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_IMMEDIATE,
				   .flags = flags,
				   .immediate = 0x0123456789ABCDEFull };

	pair_recv(p, to, 0);
	pair_do(p, from, &wr);
	pair_await(p, to, WARP_WC_RECV);
	PAIR_CHECK(p, to->last.flags & WARP_WC_WITH_IMMEDIATE);
	PAIR_CHECK(p, to->last.immediate == wr.immediate);
	PAIR_CHECK(p, !(to->last.flags & WARP_WC_SOLICITED) == !flags);
}

static uint64_t atomic_one(struct pair *p, struct side *from, struct side *to,
			   struct warp_send_wr wr)
{
	struct warp_sge sg = { from->buf, 8, warp_mr_stag(from->mr) };
	uint64_t before;

	wr.sg = &sg;
	wr.num_sge = 1;
	wr.remote_stag = warp_mr_stag(to->mr);
	wr.remote_to = (uintptr_t)to->buf;
	pair_do(p, from, &wr);
	memcpy(&before, from->buf, 8);
	return before;
}

static void atomics(struct pair *p, struct side *from, struct side *to)
{
	struct warp_send_wr add = { .opcode = WARP_WR_FETCH_ADD, .swap_add = 5 };
	struct warp_send_wr swap = { .opcode = WARP_WR_CMP_SWAP,
				     .swap_add = 0xFF00,
				     .mask = 0xFFFF,
				     .compare = 105,
				     .compare_mask = ~0ull };
	uint64_t value = 100;

	memcpy(to->buf, &value, 8);
	PAIR_CHECK(p, atomic_one(p, from, to, add) == 100);
	PAIR_CHECK(p, atomic_one(p, from, to, swap) == 105);
	PAIR_CHECK(p, atomic_one(p, from, to, swap) == 0xFF00);
	memcpy(&value, to->buf, 8);
	PAIR_CHECK(p, value == 0xFF00);
}

static void everything(struct pair *p, struct side *from, struct side *to)
{
	static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 486, 490, BIG };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		send_one(p, from, to, sizes[i], 0, -1);
	send_one(p, from, to, 7, WARP_SEND_SOLICITED, -1);
	send_one(p, from, to, 8, 0, 0);
	send_one(p, from, to, 9, WARP_SEND_SOLICITED, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		write_one(p, from, to, sizes[i]);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		read_one(p, from, to, sizes[i]);
	immediate_one(p, from, to, 0);
	immediate_one(p, from, to, WARP_SEND_SOLICITED);
	atomics(p, from, to);
}

static void both_ways(struct pair *p, const struct pair_mode *m)
{
	pair_connect(p, m);
	everything(p, &p->a, &p->b);
	everything(p, &p->b, &p->a);
	pair_disconnect(p);
}

/* The first message has to be the initiator's: with an RTR, or without. */
static void a_little(struct pair *p, const struct pair_mode *m)
{
	pair_connect(p, m);
	send_one(p, &p->a, &p->b, 11, 0, -1);
	send_one(p, &p->b, &p->a, 12, 0, -1);
	pair_disconnect(p);
}

static void rejected(struct pair *p, const struct pair_mode *m)
{
	struct warp_conn_info info;

	pair_request(p, m);
	PAIR_TRY(p, warp_conn_reject(p->b.conn, "not today", 9));
	PAIR_CHECK(p, warp_conn_wait(p->a.conn, PAIR_WAIT_MS) < 0);
	PAIR_TRY(p, warp_conn_query(p->a.conn, &info));
	PAIR_CHECK(p, info.state == WARP_CONN_REJECTED);
	PAIR_CHECK(p, info.private_data_len == 9 && !memcmp(info.private_data, "not today", 9));
}

/* --- what the peer must refuse ------------------------------------------------------------ */

enum doom {
	DOOM_STAG,
	DOOM_BOUNDS,
	DOOM_RIGHT,
	DOOM_PD,
	DOOM_WRAP,
	DOOM_INVALIDATED,
};

static void doom_remote(struct pair *p, enum warp_wr_opcode opcode, enum doom doom)
{
	struct warp_sge sg = { p->a.buf, 16, warp_mr_stag(p->a.mr) };
	struct side *b = &p->b;
	struct warp_send_wr wr = { .opcode = opcode,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = warp_mr_stag(b->mr),
				   .remote_to = (uintptr_t)b->buf };

	pair_connect(p, &(struct pair_mode)BASIC);
	if (doom == DOOM_STAG)
		wr.remote_stag ^= 0x5A00;
	else if (doom == DOOM_BOUNDS)
		wr.remote_to += PAIR_BUF - 15;
	else if (doom == DOOM_RIGHT)
		wr.remote_stag = warp_mr_stag(b->local_mr);
	else if (doom == DOOM_PD)
		wr.remote_stag = warp_mr_stag(b->other_mr);
	else if (doom == DOOM_WRAP)
		wr.remote_to = UINT64_MAX - 7;
	if (doom == DOOM_INVALIDATED) {
		send_one(p, &p->a, b, 8, 0, 0);
		wr.remote_stag = warp_mr_stag(b->small_mr[0]);
		wr.remote_to = (uintptr_t)b->small[0];
	}
	pair_doom(p, &p->a, &wr);
}

static void doom_send(struct pair *p, uint32_t recv, uint32_t inv_stag)
{
	struct warp_sge sg = { p->a.buf, 16, warp_mr_stag(p->a.mr) };
	struct warp_send_wr wr = { .opcode = inv_stag ? WARP_WR_SEND_INVALIDATE : WARP_WR_SEND,
				   .sg = &sg,
				   .num_sge = 1,
				   .inv_stag = inv_stag };

	pair_connect(p, &(struct pair_mode)BASIC);
	if (recv)
		pair_recv(p, &p->b, recv);
	pair_doom(p, &p->a, &wr);
}

static void doom_atomic(struct pair *p)
{
	struct warp_sge sg = { p->a.buf, 8, warp_mr_stag(p->a.mr) };
	struct warp_send_wr wr = { .opcode = WARP_WR_FETCH_ADD,
				   .sg = &sg,
				   .num_sge = 1,
				   .remote_stag = warp_mr_stag(p->b.mr),
				   .remote_to = (uintptr_t)p->b.buf + 4 };

	pair_connect(p, &(struct pair_mode)BASIC);
	pair_doom(p, &p->a, &wr);
}

/* --- the list ----------------------------------------------------------------------------- */

#define NO_CRC WARP_CONN_NO_CRC
#define MARKERS WARP_CONN_MARKERS
#define REV1 WARP_CONN_REV1
#define MODE(...)                       \
	{                               \
		.depth = 4, __VA_ARGS__ \
	}

static const struct mode_row {
	const char *name;
	void (*run)(struct pair *p, const struct pair_mode *m);
	struct pair_mode mode;
} mode_rows[] = {
	{ "all", both_ways, BASIC },
	{ "all-nocrc", both_ways, MODE(.a_flags = NO_CRC, .b_flags = NO_CRC) },
	{ "all-crc-a", both_ways, MODE(.b_flags = NO_CRC) },
	{ "all-crc-b", both_ways, MODE(.a_flags = NO_CRC) },
	{ "all-markers", both_ways, MODE(.a_flags = MARKERS, .b_flags = MARKERS) },
	{ "all-markers-a", both_ways, MODE(.a_flags = MARKERS) },
	{ "all-markers-b", both_ways, MODE(.b_flags = MARKERS) },
	{ "all-markers-nocrc", both_ways,
	  MODE(.a_flags = MARKERS | NO_CRC, .b_flags = MARKERS | NO_CRC) },
	{ "markers-nocrc", a_little,
	  MODE(.a_flags = MARKERS | NO_CRC, .b_flags = MARKERS | NO_CRC) },
	{ "all-mss", both_ways, MODE(.mss = 1448) },
	{ "all-mss-markers", both_ways, MODE(.a_flags = MARKERS, .b_flags = MARKERS, .mss = 1448) },
	{ "all-rev1", both_ways, MODE(.a_flags = REV1) },
	{ "all-crossed", both_ways, MODE(.crossed = true) },
	{ "rtr-write", a_little, MODE(.a_flags = WARP_CONN_RTR_WRITE) },
	{ "rtr-read", a_little, MODE(.a_flags = WARP_CONN_RTR_READ) },
	{ "rtr-send", a_little,
	  MODE(.a_flags = WARP_CONN_RTR_SEND, .b_flags = WARP_CONN_RTR_SEND) },
	{ "rtr-all", a_little,
	  MODE(.a_flags = WARP_CONN_RTR_SEND | WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ,
	       .b_flags = WARP_CONN_RTR_READ) },
	{ "no-p2p", a_little, MODE(.a_flags = WARP_CONN_NO_P2P) },
	{ "private", a_little, MODE(.private_len = 508) },
	{ "private-rev1", a_little, MODE(.a_flags = REV1, .b_flags = REV1, .private_len = 512) },
	{ "reject", rejected, BASIC },
	{ "reject-rev1", rejected, MODE(.a_flags = REV1) },
};

static const struct doom_row {
	const char *name;
	enum warp_wr_opcode opcode;
	enum doom doom;
} doom_rows[] = {
	{ "write-stag", WARP_WR_WRITE, DOOM_STAG },
	{ "write-bounds", WARP_WR_WRITE, DOOM_BOUNDS },
	{ "write-right", WARP_WR_WRITE, DOOM_RIGHT },
	{ "write-pd", WARP_WR_WRITE, DOOM_PD },
	{ "write-wrap", WARP_WR_WRITE, DOOM_WRAP },
	{ "write-invalidated", WARP_WR_WRITE, DOOM_INVALIDATED },
	{ "read-stag", WARP_WR_READ, DOOM_STAG },
	{ "read-bounds", WARP_WR_READ, DOOM_BOUNDS },
	{ "read-right", WARP_WR_READ, DOOM_RIGHT },
	{ "read-pd", WARP_WR_READ, DOOM_PD },
	{ "read-wrap", WARP_WR_READ, DOOM_WRAP },
	{ "read-invalidated", WARP_WR_READ, DOOM_INVALIDATED },
};

static struct warp_device *dev_a, *dev_b;
static struct warp_listener *listener;

static void run_dooms(void)
{
	struct pair p;

	for (size_t i = 0; i < sizeof(doom_rows) / sizeof(doom_rows[0]); i++) {
		pair_open(&p, doom_rows[i].name, listener, dev_a, dev_b);
		doom_remote(&p, doom_rows[i].opcode, doom_rows[i].doom);
		pair_close(&p);
	}
	pair_open(&p, "send-no-buffer", listener, dev_a, dev_b);
	doom_send(&p, 0, 0);
	pair_close(&p);
	pair_open(&p, "send-too-long", listener, dev_a, dev_b);
	doom_send(&p, 15, 0);
	pair_close(&p);
	pair_open(&p, "send-invalidate", listener, dev_a, dev_b);
	doom_send(&p, 16, warp_mr_stag(p.b.mr) ^ 0x5A00);
	pair_close(&p);
	pair_open(&p, "atomic-unaligned", listener, dev_a, dev_b);
	doom_atomic(&p);
	pair_close(&p);
}

static void run_modes(void)
{
	struct pair p;

	for (size_t i = 0; i < sizeof(mode_rows) / sizeof(mode_rows[0]); i++) {
		pair_open(&p, mode_rows[i].name, listener, dev_a, dev_b);
		mode_rows[i].run(&p, &mode_rows[i].mode);
		pair_close(&p);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct pair start = { .name = "start" };

	if (argc != 2 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1) {
		fputs("usage: ops ADDRESS\n", stderr);
		return 2;
	}
	PAIR_TRY(&start, warp_device_open(NULL, &dev_a));
	PAIR_TRY(&start, warp_device_open(NULL, &dev_b));
	PAIR_TRY(&start, warp_listen(dev_b, (struct sockaddr *)&at, sizeof(at), 8, &listener));
	run_modes();
	run_dooms();
	PAIR_TRY(&start, warp_listener_destroy(listener));
	PAIR_TRY(&start, warp_device_close(dev_b));
	PAIR_TRY(&start, warp_device_close(dev_a));
	return 0;
}
