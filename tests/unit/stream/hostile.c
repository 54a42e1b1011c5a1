/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers that say what must not be said: each ends its connection, and nothing that it said reaches
 * the program.
 */
#include "tests/unit/stream/ends.h"

#include <criterion/parameterized.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING(p) be32toh((p)->theirs.data_buf.key)
#define RING_TO(p) be64toh((p)->theirs.data_buf.addr)
#define SGL(p) be32toh((p)->theirs.target_sgl.key)
#define SGL_TO(p) be64toh((p)->theirs.target_sgl.addr)

static const uint8_t zeros[STREAM_HALF];

static void data(struct ends_peer *p, uint64_t at, uint32_t len, uint32_t told)
{
	ends_peer_write(p, RING(p), RING_TO(p) + at, zeros, len);
	ends_peer_message(p, rs_msg(RS_OP_DATA, told));
}

static void sge(struct ends_peer *p, unsigned int slot, uint64_t to, uint32_t len)
{
	struct rs_sge s = { htole64(to), htole32(p->ring.stag), htole32(len) };

	ends_peer_write(p, SGL(p), SGL_TO(p) + slot * sizeof(s), &s, sizeof(s));
}

static void data_more(struct ends_peer *p)
{
	data(p, 0, 10, 11);
}

static void data_less(struct ends_peer *p)
{
	data(p, 0, 10, 9);
}

static void data_all(struct ends_peer *p)
{
	data(p, 0, 10, RS_MSG_DATA_MAX);
}

static void data_none(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_DATA, 0));
}

static void data_unwritten(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_DATA, 1));
}

static void write_gap(struct ends_peer *p)
{
	data(p, 1, 10, 10);
}

static void write_twice(struct ends_peer *p)
{
	ends_peer_write(p, RING(p), RING_TO(p), zeros, 10);
	data(p, 0, 10, 20);
}

static void write_ungranted(struct ends_peer *p)
{
	/* The stream's first grant has not been sent: this peer has not begun to speak */
	ends_peer_write(p, RING(p), RING_TO(p), zeros, STREAM_HALF / 2);
	ends_peer_write(p, RING(p), RING_TO(p) + STREAM_HALF / 2, zeros, STREAM_HALF / 2);
	ends_peer_write(p, RING(p), RING_TO(p) + STREAM_HALF, zeros, 1);
	ends_peer_message(p, rs_msg(RS_OP_DATA, STREAM_HALF + 1));
}

static void write_outside(struct ends_peer *p)
{
	ends_peer_write(p, RING(p), RING_TO(p) - 1, zeros, 2);
}

static void write_behind(struct ends_peer *p)
{
	ends_peer_write(p, RING(p), RING_TO(p) + STREAM_RING - 1, zeros, 2);
}

static void write_unknown(struct ends_peer *p)
{
	ends_peer_write(p, RING(p) ^ SGL(p) ^ 0x5a5a5a5a, RING_TO(p), zeros, 1);
}

static void sge_wrong_slot(struct ends_peer *p)
{
	sge(p, 0, p->ring.to, 100);
}

static void sge_twice(struct ends_peer *p)
{
	sge(p, 1, p->ring.to, 100);
	sge(p, 1, p->ring.to, 100);
}

static void sge_too_early(struct ends_peer *p)
{
	sge(p, 1, p->ring.to, 100);
	ends_peer_message(p, rs_msg(RS_OP_SGL, 384));
	sge(p, 0, p->ring.to, 100);
}

static void sge_half(struct ends_peer *p)
{
	ends_peer_write(p, SGL(p), SGL_TO(p) + 16, zeros, 8);
}

static void sge_empty(struct ends_peer *p)
{
	sge(p, 1, p->ring.to, 0);
	ends_peer_message(p, rs_msg(RS_OP_SGL, 384));
}

static void sge_wraps(struct ends_peer *p)
{
	sge(p, 1, UINT64_MAX - 10, 100);
	ends_peer_message(p, rs_msg(RS_OP_SGL, 384));
}

static void message_op1(struct ends_peer *p)
{
	ends_peer_message(p, 1u << 29 | 1);
}

static void message_op2(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_WRITE, 1));
}

static void message_op3(struct ends_peer *p)
{
	ends_peer_message(p, 3u << 29 | 1);
}

static void message_op5(struct ends_peer *p)
{
	ends_peer_message(p, 5u << 29 | 1);
}

static void message_iomap(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_IOMAP_SGL, 0));
}

static void message_control(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_CTRL, 4));
}

static void message_abort(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_CTRL, RS_CTRL_ABORT));
}

/* With the octet that the message before it left behind it would be a good one */
static void message_short(struct ends_peer *p)
{
	static const uint8_t limit[4] = { 0x80, 0x01, 0x00, 0x80 };

	ends_peer_send(p, limit, 4);
	ends_peer_send(p, limit, 3);
}

static void message_empty(struct ends_peer *p)
{
	ends_peer_send(p, zeros, 0);
}

static void message_long(struct ends_peer *p)
{
	ends_peer_send(p, zeros, 5);
}

static void data_after_end(struct ends_peer *p)
{
	ends_peer_message(p, rs_msg(RS_OP_CTRL, RS_CTRL_SHUTDOWN));
	data(p, 0, 10, 10);
}

static void credit_overdrawn(struct ends_peer *p)
{
	for (unsigned int i = 0; i <= STREAM_CREDITS; i++)
		data(p, i, 1, 1);
}

static const struct {
	const char *name;
	void (*say)(struct ends_peer *p);
	bool after_octets; /* good octets were told of before, which the program gets */
} cases[] = {
	{ "DATA of more than was written", data_more, false },
	{ "DATA of less", data_less, false },
	{ "DATA of everything", data_all, false },
	{ "DATA(0)", data_none, false },
	{ "DATA of nothing written", data_unwritten, false },
	{ "a Write with a gap", write_gap, false },
	{ "a Write to the same place", write_twice, false },
	{ "a Write before it was granted", write_ungranted, false },
	{ "a Write before the ring", write_outside, false },
	{ "a Write past the ring", write_behind, false },
	{ "a Write with an STag of nobody", write_unknown, false },
	{ "an SGE in the wrong slot", sge_wrong_slot, false },
	{ "an SGE over one not yet told of", sge_twice, false },
	{ "an SGE over one in use", sge_too_early, false },
	{ "half an SGE", sge_half, false },
	{ "an SGE of no octets", sge_empty, false },
	{ "an SGE that wraps", sge_wraps, false },
	{ "operation 1", message_op1, false },
	{ "operation 2", message_op2, false },
	{ "operation 3", message_op3, false },
	{ "operation 5", message_op5, false },
	{ "an IOMAP message without a slot", message_iomap, false },
	{ "an unknown control message", message_control, false },
	{ "an ABORT that was not agreed on", message_abort, false },
	{ "a message of three octets", message_short, false },
	{ "a message of none", message_empty, false },
	{ "a message of five", message_long, false },
	{ "DATA after SHUTDOWN", data_after_end, false },
	{ "DATA without credit", credit_overdrawn, true },
};

/* What the program sees of it: octets, then the reset, then the end */
static void program_sees(struct stream *s, bool octets, const char *name)
{
	static char buf[STREAM_RING];
	struct iovec iov = { buf, sizeof(buf) };
	ssize_t got = stream_recv(s, &iov, 1, 0);

	if (octets) {
		cr_expect_eq(got, STREAM_CREDITS, "%s: %zd octets", name, got);
		got = stream_recv(s, &iov, 1, 0);
	}
	cr_expect(got == -EPROTO || got == -ECONNRESET || got == 0, "%s: recv gave %zd", name, got);
	cr_expect_eq(stream_recv(s, &iov, 1, 0), 0, "%s: no end", name);
	iov.iov_len = 1;
	cr_expect_lt(stream_send(s, &iov, 1), 0, "%s: may still send", name);
	cr_expect(stream_levels(s, NULL) & STREAM_HUP, "%s: no HUP", name);
}

static void one(unsigned int i)
{
	struct ends_peer p;
	struct rs_conn_data pd;
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	pd = ends_conn_data(&p, 384, 4096);
	cr_assert(ends_peer_open(&p, s, &pd, sizeof(pd)));
	ends_peer_say(&p, cases[i].say);
	/* All of it at once, before a grant makes good what was overdrawn */
	stream_progress(s);
	program_sees(s, cases[i].after_octets, cases[i].name);
	ends_peer_drain(&p);
	cr_expect(p.ended, "%s: the connection lives on", cases[i].name);
	close(fd[1]);
	stream_destroy(s);
	ends_peer_destroy(&p);
}

Test(hostile, each_ends_its_connection)
{
	for (unsigned int i = 0; i < base_array_size(cases); i++)
		one(i);
}

/* --- what is odd and yet allowed --- */

Test(hostile, keepalive_and_late_grants_do_no_harm)
{
	static char buf[16];
	struct iovec iov = { buf, sizeof(buf) };
	struct ends_peer p;
	struct rs_conn_data pd;
	struct stream *s;
	int fd[2], tries = 5000;
	ssize_t got;

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	pd = ends_conn_data(&p, 384, 4096);
	cr_assert(ends_peer_open(&p, s, &pd, sizeof(pd)));
	ends_peer_write(&p, 1, 0, NULL, 0); /* a keepalive: any STag, no octets */
	for (int i = 0; i < 1000; i++)
		ends_peer_message(&p, rs_msg(RS_OP_SGL, 384));
	ends_peer_message(&p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE));
	data(&p, 0, 10, 10);
	do {
		got = stream_recv(s, &iov, 1, 0);
	} while (got == -EAGAIN && tries-- && !usleep(1000));
	cr_expect_eq(got, 10);
	cr_expect_eq(stream_recv(s, &iov, 1, 0), -EAGAIN);
	close(fd[1]);
	stream_destroy(s);
	ends_peer_destroy(&p);
}

/* A Write whose DATA never comes is a cut, whatever the end looks like */
Test(hostile, write_without_data_then_fin)
{
	static char buf[16];
	struct iovec iov = { buf, sizeof(buf) };
	struct ends_peer p;
	struct rs_conn_data pd;
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	pd = ends_conn_data(&p, 384, 4096);
	cr_assert(ends_peer_open(&p, s, &pd, sizeof(pd)));
	data(&p, 0, 10, 10);
	ends_peer_write(&p, RING(&p), RING_TO(&p) + 10, zeros, 5);
	cr_assert_eq(shutdown(fd[0], SHUT_WR), 0);
	usleep(5000);
	cr_expect_eq(stream_recv(s, &iov, 1, 0), 10);
	cr_expect_eq(stream_recv(s, &iov, 1, 0), -ECONNRESET);
	cr_expect_eq(stream_recv(s, &iov, 1, 0), 0);
	close(fd[1]);
	stream_destroy(s);
	ends_peer_destroy(&p);
}

/*
 * A FIN alone: of software it comes behind all that was accepted, of rsockets where its program
 * does not close; a device, which has no INLINE, may have lost what its program had written
 */
Test(hostile, an_end_without_a_message)
{
	static const struct {
		uint32_t without;
		bool shut; /* SHUTDOWN goes before it */
		ssize_t want;
	} cases[] = {
		{ 0, false, 0 },
		{ ~0u, false, 0 },
		{ STREAM_FEATURE_INLINE, false, -ECONNRESET },
		{ ~(uint32_t)STREAM_FEATURE_ABORT, false, -ECONNRESET },
		{ ~(uint32_t)STREAM_FEATURE_ABORT, true, 0 },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		char octets[16] = "octets";
		struct iovec out = { octets, 6 }, in = { octets, sizeof(octets) };
		struct stream *s[2];

		ends_without[0] = cases[i].without;
		ends_open(s);
		stream_progress(s[0]);
		cr_assert_eq(stream_send(s[0], &out, 1), 6);
		if (cases[i].shut)
			cr_assert_eq(stream_shutdown(s[0], SHUT_WR), 0);
		cr_assert_eq(shutdown(s[0]->fd, SHUT_WR), 0);
		usleep(2000);
		cr_expect_eq(stream_recv(s[1], &in, 1, 0), 6, "case %zu", i);
		cr_expect_eq(stream_recv(s[1], &in, 1, 0), cases[i].want, "case %zu", i);
		ends_destroy(s);
	}
	ends_without[0] = 0;
}

/* Who lingers behind its own close waits for nothing more of a peer that is gone by a reset */
Test(hostile, a_reset_ends_who_lingers)
{
	struct linger hard = { .l_onoff = 1 };
	struct ends_peer p;
	struct rs_conn_data pd;
	struct stream *s;
	int fd[2], tries = 5000;
	bool safe;

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	pd = ends_conn_data(&p, 384, 4096);
	cr_assert(ends_peer_open(&p, s, &pd, sizeof(pd)));
	cr_expect_eq(stream_close(s), -EAGAIN);
	cr_expect_eq(stream_close_more(s, &safe), -EAGAIN);
	cr_assert_eq(setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	close(fd[0]);
	while (stream_close_more(s, &safe) == -EAGAIN && tries-- && !usleep(1000))
		;
	cr_expect_eq(stream_close_more(s, &safe), 0);
	close(fd[1]);
	stream_destroy(s);
	p.fd = -1;
	ends_peer_destroy(&p);
}
