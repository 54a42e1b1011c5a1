/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets that an end holds until it can send, and its process is killed: the peer must not take
 * what came for all there was.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING 8192u
#define HELD 20000u

static uint8_t octets[HELD], got[HELD];

static ssize_t take(struct stream *s, size_t at)
{
	struct iovec iov = { got + at, sizeof(got) - at };

	return stream_recv(s, &iov, 1, 0);
}

static void hold(struct stream *s)
{
	struct iovec iov = { octets, sizeof(octets) };

	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = ends_octet(i);
	cr_assert_eq(stream_send(s, &iov, 1), (ssize_t)sizeof(octets));
}

/* Each writes before it can send, if it @holds, more than the other one's ring has room for */
static void open_ends(struct stream *s[2], bool first_holds, bool second_holds)
{
	int fd[2];

	ends_tcp(fd);
	ends_param.opts.ring = RING;
	ends_param.hold = first_holds;
	s[0] = ends_attach(fd[0], true);
	cr_assert_eq(stream_progress(s[0]), -EAGAIN);
	if (first_holds)
		hold(s[0]);
	ends_param.hold = second_holds;
	s[1] = ends_attach(fd[1], false);
	for (int i = 0; i < 1000 && stream_progress(s[1]); i++)
		usleep(100);
	if (second_holds)
		hold(s[1]);
	for (int i = 0; i < 1000 && stream_progress(s[0]); i++)
		usleep(100);
}

static void both_go(struct stream *s[2])
{
	stream_progress(s[0]);
	stream_progress(s[1]);
	usleep(100);
}

/* All its input was read, so the kernel says FIN */
static void kill_end(struct stream *s[2], int who)
{
	for (int i = 0; i < 20; i++)
		both_go(s);
	close(s[who]->fd);
	stream_destroy(s[who]);
}

static void end(struct stream *s)
{
	close(s->fd);
	stream_destroy(s);
}

/* What comes next when all that came is read: 0, -errno */
static ssize_t end_of(struct stream *s, size_t *sum)
{
	ssize_t n = -EAGAIN;

	for (int i = 0; i < 5000 && (n == -EAGAIN || n > 0); i++) {
		n = take(s, *sum);
		if (n > 0)
			*sum += (size_t)n;
		else if (n == -EAGAIN)
			usleep(1000);
	}
	return n;
}

/* The holder is killed when its peer has read nothing yet, which is @told */
static void killed_early(int holder, int told)
{
	struct stream *s[2];
	size_t sum = 0;

	open_ends(s, !holder, holder);
	kill_end(s, holder);
	cr_expect_eq(end_of(s[!holder], &sum), told, "end %d", holder);
	cr_expect(sum && sum < HELD, "end %d: %zu octets", holder, sum);
	cr_expect_eq(memcmp(got, octets, sum), 0);
	end(s[!holder]);
}

/* Who holds something reads, and grants, meanwhile */
static void killed_granting(int holder)
{
	struct stream *s[2];
	size_t sum = 0;

	open_ends(s, true, true);
	for (int i = 0; i < 200; i++) {
		both_go(s);
		take(s[holder], 0);
	}
	kill_end(s, holder);
	cr_expect_eq(end_of(s[!holder], &sum), -ECONNRESET, "end %d", holder);
	cr_expect(sum && sum < HELD, "end %d: %zu octets", holder, sum);
	end(s[!holder]);
}

Test(held, a_grant_is_no_word)
{
	killed_granting(0);
	killed_granting(1);
}

Test(held, no_end_before_all)
{
	killed_early(0, -ECONNRESET);
	killed_early(1, -ECONNRESET);
}

/* A peer that does not know of it says nothing, and its end is what it was */
Test(held, without_the_feature)
{
	for (int i = 0; i < 2; i++) {
		ends_without[0] = i ? 0 : STREAM_FEATURE_HELD;
		ends_without[1] = i ? STREAM_FEATURE_HELD : 0;
		killed_early(0, 0);
		killed_early(1, 0);
	}
}

/* Before the server has answered, which shows of an older client, too */
Test(held, no_end_of_who_has_not_begun)
{
	for (int i = 0; i < 2; i++) {
		struct stream *s[2];
		size_t sum = 0;
		int fd[2];

		ends_without[0] = i ? STREAM_FEATURE_HELD : 0;
		ends_tcp(fd);
		ends_param.hold = true;
		s[0] = ends_attach(fd[0], true);
		cr_assert_eq(stream_progress(s[0]), -EAGAIN);
		hold(s[0]);
		end(s[0]);
		ends_param.hold = false;
		s[1] = ends_attach(fd[1], false);
		cr_expect_eq(end_of(s[1], &sum), -ECONNRESET, "case %d", i);
		cr_expect_eq(sum, 0u);
		end(s[1]);
	}
}

/* All has gone: an end as TCP's */
Test(held, an_end_behind_all)
{
	for (int holder = 0; holder < 2; holder++) {
		struct stream *s[2];
		size_t sum = 0;
		ssize_t n;

		open_ends(s, !holder, holder);
		for (int i = 0; i < 5000 && sum < HELD; i++) {
			both_go(s);
			n = take(s[!holder], sum);
			sum += (size_t)base_max(n, 0);
		}
		cr_expect_eq(sum, HELD);
		kill_end(s, holder);
		cr_expect_eq(take(s[!holder], 0), 0, "end %d", holder);
		cr_expect_eq(memcmp(got, octets, sum), 0);
		end(s[!holder]);
	}
}

/* Who has said nothing has held nothing; a server says so behind its peer's SHUTDOWN, too */
Test(held, an_end_of_who_said_nothing)
{
	for (int i = 0; i < 4; i++) {
		struct stream *s[2];

		open_ends(s, false, false);
		if (i / 2)
			cr_expect_eq(stream_shutdown(s[i % 2], SHUT_WR), 0);
		kill_end(s, !(i % 2));
		cr_expect_eq(take(s[i % 2], 0), 0, "case %d", i);
		end(s[i % 2]);
	}
}

/* Each waits for room of the other one's, which reads */
Test(held, both_hold_more_than_a_ring)
{
	for (int i = 0; i < 3; i++) {
		struct stream *s[2];
		size_t sum[2] = { 0, 0 };

		ends_without[0] = i == 0 ? 0 : i == 1 ? STREAM_FEATURE_HELD : ~0u;
		open_ends(s, true, true);
		for (int k = 0; k < 2000 && (sum[0] < HELD || sum[1] < HELD); k++) {
			both_go(s);
			for (int j = 0; j < 2; j++)
				sum[j] += (size_t)base_max(take(s[j], sum[j]), (ssize_t)0);
		}
		cr_expect_eq(sum[0], HELD, "case %d", i);
		cr_expect_eq(sum[1], HELD, "case %d", i);
		kill_end(s, i % 2);
		cr_expect_eq(take(s[!(i % 2)], 0), 0, "case %d: behind all of it", i);
		end(s[!(i % 2)]);
	}
}

/* --- against a raw peer --- */

static void window(struct ends_peer *p, uint32_t value)
{
	uint8_t msg[RS_MSG_LEN + sizeof(struct stream_window)] = { 0 };

	base_put_le32(msg, rs_msg(RS_OP_WINDOW, value));
	base_put_le32(msg + RS_MSG_LEN, 2 * RING);
	ends_peer_send(p, msg, sizeof(msg));
}

static struct stream *peer_open(struct ends_peer *p, bool holds)
{
	uint8_t pd[RS_CONN_DATA_LEN + STREAM_EXT_MAX];
	struct stream_ext ext = { .features = STREAM_FEATURES, .window = RING };
	struct rs_conn_data cd;
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	ends_param.hold = holds;
	s = ends_attach(fd[1], false);
	ends_peer_init(p, fd[0]);
	cd = ends_conn_data(p, 384, RING);
	memcpy(pd, &cd, sizeof(cd));
	cr_assert(ends_peer_open(p, s, pd, sizeof(cd) + stream_ext_put(pd + sizeof(cd), &ext)));
	return s;
}

/* What a peer's window says of what it holds */
Test(held, a_word_of_the_peer)
{
	static const struct {
		int first, then; /* -1: none */
		ssize_t told;
	} cases[] = {
		{ -1, -1, -ECONNRESET },
		{ STREAM_WINDOW_HELD, -1, -ECONNRESET },
		{ 0, -1, 0 },
		{ STREAM_WINDOW_HELD, 0, 0 },
		{ 0, STREAM_WINDOW_HELD, 0 },
	};

	for (unsigned int i = 0; i < base_array_size(cases); i++) {
		struct ends_peer p;
		struct stream *s = peer_open(&p, false);
		size_t sum = 0;

		ends_peer_message(&p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE));
		if (cases[i].first >= 0)
			window(&p, (uint32_t)cases[i].first);
		if (cases[i].then >= 0)
			window(&p, (uint32_t)cases[i].then);
		stream_progress(s);
		ends_peer_drain(&p);
		ends_peer_destroy(&p);
		cr_expect_eq(end_of(s, &sum), cases[i].told, "case %u", i);
		end(s);
	}
}

static unsigned int windows(const struct ends_peer *p, uint32_t value)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n; i++)
		n += p->messages[i] == rs_msg(RS_OP_WINDOW, value);
	return n;
}

/* What we say of ours: nothing while there is some, and once that there is none */
Test(held, a_word_of_ours)
{
	for (int holds = 0; holds < 2; holds++) {
		struct ends_peer p;
		struct stream *s = peer_open(&p, holds);

		if (holds)
			hold(s);
		ends_peer_message(&p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE));
		usleep(2000);
		stream_progress(s);
		ends_peer_drain(&p);
		cr_expect_eq(windows(&p, 0), !holds);
		window(&p, 0);
		usleep(2000);
		stream_progress(s);
		ends_peer_drain(&p);
		cr_expect_eq(windows(&p, 0), !holds, "there is more than the window");
		cr_expect_eq(windows(&p, STREAM_WINDOW_HELD), 0);
		end(s);
		ends_peer_destroy(&p);
	}
}
