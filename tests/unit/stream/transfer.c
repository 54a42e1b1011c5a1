/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets through two streams, and what a stream says to a peer that counts.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* One direction: what was sent and got so far */
struct way {
	struct stream *from, *to;
	uint64_t size, sent, got;
	uint32_t piece; /* octets of a send at most */
	uint32_t seed;
};

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void way_send(struct way *w)
{
	static uint8_t buf[65536];
	size_t n = 1 + random_next(&w->seed) % w->piece;
	struct iovec iov[2];
	ssize_t sent;

	n = base_min(n, w->size - w->sent);
	for (size_t i = 0; i < n; i++)
		buf[i] = ends_octet(w->sent + i);
	iov[0] = (struct iovec){ buf, n / 3 };
	iov[1] = (struct iovec){ buf + n / 3, n - n / 3 };
	sent = n ? stream_send(w->from, iov, 2) : 0;
	cr_assert(sent >= 0 || sent == -EAGAIN, "send: %zd", sent);
	w->sent += (uint64_t)base_max(sent, 0);
}

static void way_recv(struct way *w)
{
	static uint8_t buf[200000];
	size_t room = base_min(4 * w->piece, sizeof(buf));
	struct iovec iov = { buf, 1 + random_next(&w->seed) % room };
	ssize_t got = stream_recv(w->to, &iov, 1, 0);

	cr_assert(got > 0 || got == -EAGAIN, "recv: %zd", got);
	for (ssize_t i = 0; i < got; i++)
		cr_assert_eq(buf[i], ends_octet(w->got + (uint64_t)i), "octet %lu", w->got + i);
	w->got += (uint64_t)base_max(got, 0);
}

/* Both directions at once, in one thread */
static void exchange_over(struct stream *s[2], uint64_t size, uint32_t piece)
{
	struct way ways[2];

	for (int i = 0; i < 2; i++)
		ways[i] = (struct way){ s[i], s[!i], size, 0, 0, piece, (uint32_t)size + piece };
	while (ways[0].got < size || ways[1].got < size) {
		for (int i = 0; i < 2; i++) {
			if (ways[i].sent < size)
				way_send(&ways[i]);
			if (ways[i].got < size)
				way_recv(&ways[i]);
			/* What the kernel did not take leaves by the next call */
			stream_progress(s[i]);
		}
	}
	for (int i = 0; i < 2; i++)
		cr_expect_eq(stream_readable(s[i]), 0);
	ends_destroy(s);
}

/* As two ends of ours do it, and as one does with rsockets */
static void exchange(uint64_t size, uint32_t piece)
{
	struct stream *s[2];

	for (unsigned int i = 0; i < 2; i++) {
		ends_without[0] = i ? ~0u : 0;
		ends_open(s);
		exchange_over(s, size, piece);
	}
	ends_without[0] = 0;
}

Test(transfer, sizes)
{
	static const uint64_t sizes[] = { 1,	 2,	3,     511,   4096,	   4097,
					  32748, 65535, 65536, 65537, STREAM_RING, 1 << 20 };

	for (unsigned int i = 0; i < base_array_size(sizes); i++) {
		exchange(sizes[i], 65536);
		exchange(sizes[i], 1000);
	}
}

/* From the smallest ring to the largest; one that is no power of two becomes one */
Test(transfer, rings, .timeout = 120)
{
	static const uint32_t rings[] = { 1,	   STREAM_RING_MIN, 100000,
					  1 << 20, STREAM_RING_MAX, UINT32_MAX };

	for (unsigned int i = 0; i < base_array_size(rings); i++) {
		ends_param.opts.ring = rings[i];
		ends_param.opts.credits = i % 2 ? 32 : 1000;
		exchange(3 << 19, 50000);
		exchange(5 << 10, 100);
	}
}

/* One end asks for markers, or both */
Test(transfer, markers)
{
	struct rnic_stream_info info;
	struct stream *s[2];

	ends_param.opts.markers = true;
	exchange(1 << 20, 60000);
	ends_open(s);
	for (int i = 0; i < 2; i++) {
		s[i]->rnic->info(&s[i]->mem, &info);
		cr_expect(info.tx_markers && info.rx_markers);
	}
	ends_destroy(s);
}

/* Both have exchanged @n messages, as far as they know */
static void counters_advance(struct stream *s[2], uint16_t n)
{
	usleep(5000);
	for (int i = 0; i < 4; i++)
		stream_progress(s[i % 2]);
	for (int i = 0; i < 2; i++) {
		struct stream_state *st = s[i]->state;

		st->tx.sent = (uint16_t)(st->tx.sent + n);
		st->tx.limit = (uint16_t)(st->tx.limit + n);
		st->rx.got = (uint16_t)(st->rx.got + n);
		st->rx.limit = (uint16_t)(st->rx.limit + n);
	}
}

/* Messages are an octet or a few, and the 16-bit counters go around: in a long run twice */
Test(transfer, credits_wrap, .timeout = 300)
{
	const char *wish = getenv("WARPSOCK_LONG");
	bool whole = wish && wish[0];
	struct stream *s[2];

	ends_without[0] = STREAM_FEATURE_INLINE;
	ends_open(s);
	if (!whole)
		counters_advance(s, 65000);
	exchange_over(s, whole ? 3 << 17 : 3 << 13, 5);
}

/* The transport takes pairs in part and frames in part */
Test(transfer, narrow_transport)
{
	static const uint32_t pieces[] = { 100, 2500, 12500, 60000 };
	struct stream *s[2];

	for (unsigned int i = 0; i < 2 * base_array_size(pieces); i++) {
		ends_without[0] = i % 2 ? 0 : STREAM_FEATURE_INLINE;
		ends_open(s);
		ends_narrow(s[0]);
		ends_narrow(s[1]);
		exchange_over(s, 1 << 20, pieces[i / 2]);
	}
}

/* Of many that are offered at once a full kernel takes a few */
static void struck_out(void)
{
	static uint8_t buf[STREAM_RING];
	struct stream *s[2];
	struct way w = { .size = 2 * STREAM_RING, .piece = 65536, .seed = 1 };
	ssize_t sent;

	ends_open(s);
	ends_narrow(s[0]);
	w.from = s[0];
	w.to = s[1];
	while (w.got < w.size) {
		struct iovec iov = { buf, base_min(w.size - w.sent, sizeof(buf)) };

		for (size_t i = 0; i < iov.iov_len; i++)
			buf[i] = ends_octet(w.sent + i);
		sent = stream_send(s[0], &iov, 1);
		w.sent += (uint64_t)base_max(sent, (ssize_t)0);
		way_recv(&w);
		stream_progress(s[0]);
	}
	ends_destroy(s);
}

Test(transfer, pairs_are_struck_out)
{
	ends_without[0] = STREAM_FEATURE_INLINE;
	struck_out();
	ends_without[0] = 0;
}

Test(transfer, messages_are_struck_out)
{
	struck_out();
}

Test(transfer, a_reader_that_sleeps_blocks_the_writer)
{
	static uint8_t buf[STREAM_RING];
	struct iovec iov = { buf, sizeof(buf) };
	struct stream *s[2];
	size_t sum = 0;
	ssize_t n;

	ends_open(s);
	stream_progress(s[0]);
	while ((n = stream_send(s[0], &iov, 1)) > 0)
		sum += (size_t)n;
	cr_expect_eq(n, -EAGAIN);
	cr_expect_leq(sum, STREAM_RING);
	cr_expect_not(stream_levels(s[0], NULL) & STREAM_WRITABLE);
	usleep(2000);
	for (size_t got = 0; got < sum; got += (size_t)n) {
		n = stream_recv(s[1], &iov, 1, 0);
		cr_assert_gt(n, 0);
	}
	usleep(2000);
	stream_progress(s[0]);
	cr_expect(stream_levels(s[0], NULL) & STREAM_WRITABLE);
	ends_destroy(s);
}

Test(transfer, peek_and_trunc)
{
	char out[] = "0123456789", in[16] = "";
	struct iovec o = { out, 10 }, i = { in, 16 };
	struct stream *s[2];

	ends_open(s);
	cr_assert_eq(stream_send(s[0], &o, 1), 10);
	usleep(2000);
	cr_expect_eq(stream_recv(s[1], &i, 1, MSG_PEEK), 10);
	i.iov_len = 4;
	cr_expect_eq(stream_recv(s[1], &i, 1, MSG_TRUNC), 4);
	i.iov_len = 16;
	cr_expect_eq(stream_recv(s[1], &i, 1, 0), 6);
	cr_expect_arr_eq(in, "456789", 6);
	ends_destroy(s);
}

/* --- against a peer that counts --- */

struct scene {
	struct stream *s;
	struct ends_peer p;
	int fd;
};

static void scene_begin(struct scene *c, uint16_t credits, uint32_t room)
{
	struct rs_conn_data pd;
	int fd[2];

	ends_tcp(fd);
	c->fd = fd[1];
	c->s = ends_attach(fd[1], false);
	ends_peer_init(&c->p, fd[0]);
	pd = ends_conn_data(&c->p, credits, room);
	cr_assert(ends_peer_open(&c->p, c->s, &pd, sizeof(pd)));
}

/* With the peer's first frame, without which the stream may not speak */
static void scene_open(struct scene *c, uint16_t credits, uint32_t room)
{
	scene_begin(c, credits, room);
	ends_peer_message(&c->p, rs_msg(RS_OP_SGL, credits));
	usleep(2000);
	stream_progress(c->s);
	ends_peer_drain(&c->p);
}

static void scene_close(struct scene *c)
{
	close(c->fd);
	stream_destroy(c->s);
	ends_peer_destroy(&c->p);
}

/* Octets into the stream as @n messages of @len each, from @at of its ring on */
static void pour(struct scene *c, uint64_t at, unsigned int n, uint32_t len)
{
	static const uint8_t zeros[STREAM_HALF];

	for (unsigned int i = 0; i < n; i++, at += len) {
		ends_peer_write(&c->p, be32toh(c->p.theirs.data_buf.key),
				be64toh(c->p.theirs.data_buf.addr) + at % STREAM_RING, zeros, len);
		ends_peer_message(&c->p, rs_msg(RS_OP_DATA, len));
		/* A half of the ring is more than the kernel takes in at once */
		stream_progress(c->s);
	}
	usleep(3000);
	stream_progress(c->s);
}

static size_t swallow(struct scene *c)
{
	static char buf[STREAM_RING];
	struct iovec iov = { buf, sizeof(buf) };
	ssize_t got = stream_recv(c->s, &iov, 1, 0);

	ends_peer_drain(&c->p);
	return (size_t)base_max(got, 0);
}

/* A Write fell into a waiting buffer, and its DATA comes when there is another one */
Test(transfer, octets_wait_for_their_data)
{
	char in[16] = "";
	struct iovec iov = { in, sizeof(in) };
	struct scene c;
	uint32_t stag;
	uint64_t to;

	scene_open(&c, 384, 4096);
	stag = be32toh(c.p.theirs.data_buf.key);
	to = be64toh(c.p.theirs.data_buf.addr);
	ends_peer_write(&c.p, stag, to, "abcd", 4);
	ends_peer_message(&c.p, rs_msg(RS_OP_DATA, 4));
	ends_peer_write(&c.p, stag, to + 4, "efghijkl", 8);
	usleep(2000);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), 4);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), -EAGAIN);
	memset(in, 0, sizeof(in));
	ends_peer_message(&c.p, rs_msg(RS_OP_DATA, 8));
	usleep(2000);
	iov.iov_len = 3;
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), 3);
	cr_expect_arr_eq(in, "efg", 3);
	iov.iov_len = sizeof(in);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), 5);
	cr_expect_arr_eq(in, "hijkl", 5);
	scene_close(&c);
}

/* The peer sees the two halves granted in turn, in slots 1, 0, 1, 0, as they are read */
Test(transfer, halves_are_granted_in_turn)
{
	struct scene c;
	unsigned int before;

	scene_open(&c, 384, 4096);
	cr_assert_eq(c.p.n, 1u);
	cr_expect_eq(c.p.messages[0], rs_msg(RS_OP_SGL, STREAM_CREDITS));
	for (unsigned int round = 0; round < 6; round++) {
		struct rs_sge sge;

		memcpy(&sge, c.p.memory + (round + 1) % 2 * sizeof(sge), sizeof(sge));
		cr_expect_eq(le64toh(sge.addr), STREAM_RING_TO + (round + 1) % 2 * STREAM_HALF);
		cr_expect_eq(le32toh(sge.length), STREAM_HALF);
		before = c.p.n;
		pour(&c, (uint64_t)round * STREAM_HALF, 16, STREAM_HALF / 16);
		cr_expect_eq(swallow(&c), STREAM_HALF);
		cr_expect_eq(c.p.n, before + 1, "round %u: one grant", round);
		cr_expect_eq(c.p.messages[c.p.n - 1],
			     rs_msg(RS_OP_SGL, STREAM_CREDITS + 16 * (round + 1)));
	}
	scene_close(&c);
}

/* Half the credits used up by small messages: the limit alone is told, without a Write */
Test(transfer, limit_is_told_by_itself)
{
	struct scene c;

	scene_open(&c, 384, 4096);
	memset(c.p.memory, 0, sizeof(c.p.memory));
	pour(&c, 0, STREAM_CREDITS / 2 - 1, 1);
	stream_progress(c.s);
	ends_peer_drain(&c.p);
	cr_expect_eq(c.p.n, 1u);
	pour(&c, STREAM_CREDITS / 2 - 1, 1, 1);
	stream_progress(c.s);
	ends_peer_drain(&c.p);
	cr_assert_eq(c.p.n, 2u);
	cr_expect_eq(c.p.messages[1], rs_msg(RS_OP_SGL, STREAM_CREDITS + STREAM_CREDITS / 2));
	for (unsigned int i = 0; i < 32; i++)
		cr_expect_eq(c.p.memory[i], 0);
	scene_close(&c);
}

Test(transfer, nothing_is_granted_after_the_end)
{
	struct scene c;

	scene_open(&c, 384, 4096);
	pour(&c, 0, 16, STREAM_HALF / 16);
	ends_peer_message(&c.p, rs_msg(RS_OP_CTRL, RS_CTRL_SHUTDOWN));
	usleep(2000);
	cr_expect_eq(swallow(&c), STREAM_HALF);
	cr_expect_eq(swallow(&c), 0u);
	cr_expect_eq(c.p.n, 1u);
	scene_close(&c);
}

/* What the peer of a closed stream hears until it has no more to say */
static void close_heard(struct scene *c)
{
	bool safe;

	stream_close(c->s);
	ends_peer_message(&c->p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE));
	for (int i = 0; i < 5; i++) {
		usleep(2000);
		stream_close_more(c->s, &safe);
		ends_peer_drain(&c->p);
	}
}

/* The first grant was due before, and waited for leave to speak */
Test(transfer, who_is_closed_grants_nothing)
{
	struct scene c;

	scene_begin(&c, 384, 4096);
	close_heard(&c);
	cr_expect_eq(c.p.n, 1u);
	cr_expect_eq(c.p.messages[0], rs_msg(RS_OP_CTRL, RS_CTRL_DISCONNECT));
	scene_close(&c);
}

Test(transfer, disconnect_is_said_once)
{
	struct scene c;

	scene_open(&c, 384, 4096);
	cr_expect_eq(c.p.n, 1u);
	cr_expect_eq(stream_shutdown(c.s, SHUT_RDWR), 0);
	ends_peer_drain(&c.p);
	close_heard(&c);
	cr_expect_eq(c.p.n, 2u);
	cr_expect_eq(c.p.messages[1], rs_msg(RS_OP_CTRL, RS_CTRL_DISCONNECT));
	scene_close(&c);
}

/* How many one-octet messages come before the peer has granted more */
static unsigned int messages_for(uint16_t credits)
{
	struct scene c;
	char octet = 'x';
	struct iovec iov = { &octet, 1 };
	unsigned int n = 0;

	scene_open(&c, credits, 1 << 20);
	while (stream_send(c.s, &iov, 1) == 1)
		n++;
	ends_peer_drain(&c.p);
	cr_expect_eq(c.p.n, n + 1, "messages and the first grant");
	scene_close(&c);
	return n;
}

Test(transfer, credits_bound_messages)
{
	static const struct {
		uint16_t credits;
		unsigned int sent;
	} cases[] = { { 0, 0 }, { 1, 1 }, { 4, 4 }, { 16, 8 }, { 32, 16 }, { 384, 368 } };

	for (unsigned int i = 0; i < base_array_size(cases); i++)
		cr_expect_eq(messages_for(cases[i].credits), cases[i].sent, "%u credits",
			     cases[i].credits);
}

/* A ring of seven octets, granted again and again in alternating slots */
Test(transfer, tiny_rings)
{
	char out[70];
	struct iovec iov = { out, sizeof(out) };
	struct scene c;
	size_t sum = 0;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)ends_octet(i);
	scene_open(&c, 384, 7);
	for (unsigned int round = 0; round < 10; round++) {
		struct rs_sge sge = { htole64(c.p.ring.to + 7 * (round + 1)),
				      htole32(c.p.ring.stag), htole32(7) };
		ssize_t n = stream_send(c.s, &iov, 1);

		cr_assert_eq(n, 7);
		cr_expect_eq(stream_send(c.s, &iov, 1), -EAGAIN);
		ends_peer_drain(&c.p);
		cr_expect_eq(c.p.messages[c.p.n - 1], rs_msg(RS_OP_DATA, 7));
		cr_expect_arr_eq(c.p.memory + sum, out + sum, 7);
		sum += 7;
		iov = (struct iovec){ out + sum, sizeof(out) - sum };
		ends_peer_write(&c.p, be32toh(c.p.theirs.target_sgl.key),
				be64toh(c.p.theirs.target_sgl.addr) + (round + 1) % 2 * 16, &sge,
				sizeof(sge));
		ends_peer_message(&c.p, rs_msg(RS_OP_SGL, 384 + round));
		usleep(2000);
	}
	scene_close(&c);
}

/* --- ends --- */

static const struct {
	const char *name;
	int how[2]; /* shutdowns, -1: none */
	bool peer_first;
	uint32_t message; /* the last one; 0: none at all */
} ends[] = {
	{ "SHUT_WR", { SHUT_WR, -1 }, false, 7u << 29 | RS_CTRL_SHUTDOWN },
	{ "SHUT_RD", { SHUT_RD, -1 }, false, 0 },
	{ "SHUT_RDWR", { SHUT_RDWR, -1 }, false, 7u << 29 | RS_CTRL_DISCONNECT },
	{ "SHUT_RD, SHUT_WR", { SHUT_RD, SHUT_WR }, false, 7u << 29 | RS_CTRL_DISCONNECT },
	{ "SHUT_WR, SHUT_RD", { SHUT_WR, SHUT_RD }, false, 7u << 29 | RS_CTRL_DISCONNECT },
	{ "SHUT_WR after the peer's", { SHUT_WR, -1 }, true, 7u << 29 | RS_CTRL_DISCONNECT },
	{ "SHUT_WR twice", { SHUT_WR, SHUT_WR }, false, 7u << 29 | RS_CTRL_SHUTDOWN },
};

static void end_one(unsigned int i)
{
	struct scene c;
	unsigned int before;

	scene_open(&c, 384, 4096);
	before = c.p.n;
	if (ends[i].peer_first) {
		ends_peer_message(&c.p, rs_msg(RS_OP_CTRL, RS_CTRL_SHUTDOWN));
		usleep(2000);
	}
	for (int k = 0; k < 2 && ends[i].how[k] >= 0; k++)
		cr_expect_eq(stream_shutdown(c.s, ends[i].how[k]), 0, "%s", ends[i].name);
	ends_peer_drain(&c.p);
	cr_expect_eq(c.p.n > before, ends[i].message != 0, "%s", ends[i].name);
	if (c.p.n > before)
		cr_expect_eq(c.p.messages[c.p.n - 1], ends[i].message, "%s: %x", ends[i].name,
			     c.p.messages[c.p.n - 1]);
	cr_expect_not(c.p.ended, "%s: TCP's end came too early", ends[i].name);
	scene_close(&c);
}

Test(transfer, shutdown_messages)
{
	for (unsigned int i = 0; i < base_array_size(ends); i++)
		end_one(i);
}

/* DISCONNECT, then the FIN; and what the peer sends meanwhile does no harm */
Test(transfer, close_disconnects_and_lingers)
{
	struct scene c;
	bool safe = false;

	scene_open(&c, 384, 4096);
	cr_expect_eq(stream_close(c.s), -EAGAIN);
	ends_peer_message(&c.p, rs_msg(RS_OP_SGL, 500));
	ends_peer_drain(&c.p);
	cr_expect_eq(c.p.messages[c.p.n - 1], 7u << 29 | RS_CTRL_DISCONNECT);
	cr_expect(c.p.ended);
	cr_expect_eq(stream_close_more(c.s, &safe), -EAGAIN);
	cr_expect(safe);
	shutdown(c.p.fd, SHUT_WR);
	usleep(2000);
	cr_expect_eq(stream_close_more(c.s, &safe), 0);
	scene_close(&c);
}

/* DISCONNECT is the end of both directions, at once; the first write behind it is taken and lost */
Test(transfer, disconnect_ends_both)
{
	char octet = 'x';
	struct iovec iov = { &octet, 1 };
	const unsigned int over = STREAM_STARTED | STREAM_READABLE | STREAM_WRITABLE | STREAM_RDHUP;
	struct scene c;

	scene_open(&c, 384, 4096);
	pour(&c, 0, 1, 100);
	ends_peer_message(&c.p, rs_msg(RS_OP_CTRL, RS_CTRL_DISCONNECT));
	usleep(2000);
	stream_progress(c.s);
	cr_expect_eq(stream_recv(c.s, &iov, 1, MSG_PEEK), 1);
	cr_expect_eq(stream_levels(c.s, NULL), over);
	cr_expect_eq(swallow(&c), 100u);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), 0);
	cr_expect_eq(stream_send(c.s, &(struct iovec){ &octet, 0 }, 1), 0);
	cr_expect_eq(stream_send(c.s, &iov, 1), 1);
	cr_expect_eq(stream_levels(c.s, NULL), over | STREAM_HUP | STREAM_ERROR);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), 0);
	cr_expect_eq(stream_send(c.s, &iov, 1), -EPIPE);
	cr_expect_eq(stream_levels(c.s, NULL), over | STREAM_HUP);
	cr_expect_eq(c.s->state->tx.octets, 0u, "what was lost was not sent");
	cr_expect_eq(stream_shutdown(c.s, SHUT_WR), -ENOTCONN);
	cr_expect_eq(stream_close(c.s), -EAGAIN);
	scene_close(&c);
}

static struct scene *late;

/* A reader asks when it has found nothing: now it comes, and another thread takes it in */
static bool late_owes(const struct rnic_stream_mem *mem)
{
	struct scene *c = late;

	late = NULL;
	if (!c)
		return false;
	pour(c, 0, 1, 100);
	ends_peer_message(&c->p, rs_msg(RS_OP_CTRL, RS_CTRL_DISCONNECT));
	while (!(base_load(&c->s->state->ends) & STREAM_IN_ENDED))
		stream_progress(c->s);
	return false;
}

Test(transfer, an_end_behind_a_readers_back_is_not_told_before_its_octets)
{
	struct rnic_stream_ops ops;
	struct scene c;
	char octet;

	scene_open(&c, 384, 4096);
	ops = *c.s->rnic;
	ops.owes = late_owes;
	c.s->rnic = &ops;
	late = &c;
	cr_expect_eq(stream_recv(c.s, &(struct iovec){ &octet, 1 }, 1, 0), -EAGAIN);
	cr_expect_eq(swallow(&c), 100u);
	cr_expect_eq(swallow(&c), 0u);
	scene_close(&c);
}

/* The kernel tells of it once, and here it is who sends that is told */
Test(transfer, a_reset_is_no_end)
{
	struct stream *s[2];
	struct iovec iov = { "octets", 6 };
	char c;
	struct iovec in = { &c, 1 };
	struct pollfd p;

	ends_open(s);
	p = (struct pollfd){ stream_fd(s[0]), 0, 0 };
	cr_assert_eq(stream_send(s[0], &iov, 1), 6);
	/* With octets unread, and nothing said: as when a process is killed */
	close(s[1]->fd);
	cr_assert_eq(poll(&p, 1, 30000), 1);
	cr_assert(p.revents & POLLHUP);
	cr_assert_eq(stream_send(s[0], &iov, 1), -ECONNRESET);
	cr_assert_eq(stream_recv(s[0], &in, 1, 0), 0, "told once");
	cr_assert(s[0]->state->broken);
	stream_destroy(s[1]);
	close(s[0]->fd);
	stream_destroy(s[0]);
}

/* Who reads dies over it: what is left may be other octets, and their end may be no end */
Test(transfer, what_the_dead_read_is_lost)
{
	struct stream *s[2];
	struct iovec iov = { "octets", 6 };
	char octets[6];
	struct iovec in = { octets, sizeof(octets) };
	pid_t pid;

	ends_open(s);
	cr_assert_eq(stream_send(s[0], &iov, 1), 6);
	stream_shutdown(s[0], SHUT_WR);
	for (int i = 0; i < 1000 && stream_readable(s[1]) < 6; i++, usleep(1000))
		stream_progress(s[1]);
	stream_share(s[1], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid) {
		stream_rx_lock(s[1]);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(stream_recv(s[1], &in, 1, 0), -ECONNRESET);
	cr_expect_eq(stream_recv(s[1], &in, 1, 0), 0, "told once");
	ends_destroy(s);
}
