/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Urgent octets: what a peer may say of them, where reads stop, and what is kept free for them.
 * What programs see of them is compared with TCP (tests/e2e/programs/same_urgent.c).
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW 4096
/* As stream/urgent.c has it */
#define RESERVE 16

static uint8_t octets[STREAM_RING + 64];
static unsigned int told;

static void on_urgent(void *ctx)
{
	++told;
}

static void begin(void)
{
	ends_param = (struct stream_param){ .urgent = on_urgent };
	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = ends_octet(i);
}

TestSuite(urgent, .init = begin);

struct scene {
	struct stream *s;
	struct ends_peer p;
	int fd;
};

static void scene_open(struct scene *c, uint32_t features)
{
	uint8_t pd[RS_CONN_DATA_LEN + STREAM_EXT_MAX];
	struct stream_ext ext = { .features = features, .window = WINDOW };
	struct rs_conn_data cd;
	int fd[2];

	ends_tcp(fd);
	c->fd = fd[1];
	c->s = ends_attach(fd[1], false);
	ends_peer_init(&c->p, fd[0]);
	cd = ends_conn_data(&c->p, 384, 4096);
	memcpy(pd, &cd, sizeof(cd));
	cr_assert(ends_peer_open(&c->p, c->s, pd,
				 sizeof(cd) + stream_ext_put(pd + sizeof(cd), &ext)));
}

static void scene_close(struct scene *c)
{
	close(c->fd);
	stream_destroy(c->s);
	ends_peer_destroy(&c->p);
}

static void say(struct ends_peer *p, enum rs_op op, uint32_t value, uint32_t len)
{
	static uint8_t buf[sizeof(octets) + RS_MSG_LEN];

	base_put_le32(buf, rs_msg(op, value));
	memcpy(buf + RS_MSG_LEN, octets, len);
	ends_peer_send(p, buf, RS_MSG_LEN + len);
}

static void say_urgent(struct ends_peer *p, uint32_t value, uint32_t len)
{
	say(p, (enum rs_op)RS_OP_INLINE, value | STREAM_INLINE_URGENT, len);
}

static ssize_t take(struct stream *s, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };

	return stream_recv(s, &iov, 1, flags);
}

static ssize_t give(struct stream *s, const char *text, bool urgent)
{
	struct iovec iov = { (void *)text, strlen(text) };

	return urgent ? stream_urgent_send(s, &iov, 1) : stream_send(s, &iov, 1);
}

static unsigned int levels_of(struct stream *s)
{
	stream_progress(s);
	return stream_levels(s, NULL) & (STREAM_READABLE | STREAM_URGENT | STREAM_AT_MARK);
}

/* --- what must not be said --- */

static void none(struct ends_peer *p)
{
	say_urgent(p, 0, 0);
}

static void more(struct ends_peer *p)
{
	say_urgent(p, 3, 2);
}

static void fewer(struct ends_peer *p)
{
	say_urgent(p, 1, 2);
}

static void beyond_window(struct ends_peer *p)
{
	say_urgent(p, STREAM_RING + 1, STREAM_RING + 1);
}

static void twice_beyond(struct ends_peer *p)
{
	say_urgent(p, STREAM_RING, STREAM_RING);
	say_urgent(p, 1, 1);
}

static void after_end(struct ends_peer *p)
{
	say(p, RS_OP_CTRL, RS_CTRL_SHUTDOWN, 0);
	say_urgent(p, 1, 1);
}

static void in_a_message(struct ends_peer *p)
{
	say(p, (enum rs_op)RS_OP_MESSAGE, STREAM_MESSAGE_MORE | 10, 10);
	say_urgent(p, 1, 1);
}

static void another_bit(struct ends_peer *p)
{
	say(p, (enum rs_op)RS_OP_INLINE, 0x08000000 | 1, 1);
}

static void half(struct ends_peer *p)
{
	base_put_le32(octets, rs_msg((enum rs_op)RS_OP_INLINE, STREAM_INLINE_URGENT | 1));
	ends_peer_send(p, octets, 3);
}

static const struct {
	const char *name;
	void (*say)(struct ends_peer *p);
	uint32_t without; /* features that the peer does not offer */
} cases[] = {
	{ "an urgent octet of none", none, 0 },
	{ "fewer octets than told", more, 0 },
	{ "more", fewer, 0 },
	{ "one beyond the window", beyond_window, 0 },
	{ "a second one beyond the window", twice_beyond, 0 },
	{ "one after SHUTDOWN", after_end, 0 },
	{ "one in the middle of a user message", in_a_message, 0 },
	{ "a bit that is none", another_bit, 0 },
	{ "half the four octets", half, 0 },
	{ "without leave", fewer, STREAM_FEATURE_URGENT },
	{ "without INLINE", fewer, STREAM_FEATURE_INLINE },
};

static void one(unsigned int i)
{
	static char buf[STREAM_RING];
	struct scene c;
	uint8_t octet;

	scene_open(&c, STREAM_FEATURES & ~cases[i].without);
	ends_peer_say(&c.p, cases[i].say);
	for (int k = 0; k < 3; k++)
		stream_progress(c.s);
	for (int k = 0; k < 3 && take(c.s, buf, sizeof(buf), 0) > 0; k++)
		;
	cr_expect(stream_levels(c.s, NULL) & STREAM_HUP, "%s: no HUP", cases[i].name);
	cr_expect_lt(stream_urgent_recv(c.s, &octet, 0), 0, "%s: an octet", cases[i].name);
	ends_peer_drain(&c.p);
	cr_expect(c.p.ended, "%s: the connection lives on", cases[i].name);
	scene_close(&c);
}

Test(urgent, each_ends_its_connection)
{
	for (unsigned int i = 0; i < base_array_size(cases); i++)
		one(i);
}

/* With the right number of octets, too: the bit is not passed over */
Test(urgent, not_without_leave)
{
	struct scene c;

	scene_open(&c, STREAM_FEATURES & ~STREAM_FEATURE_URGENT);
	say_urgent(&c.p, 2, 2);
	usleep(5000);
	stream_progress(c.s);
	cr_expect(stream_levels(c.s, NULL) & STREAM_HUP);
	cr_expect_eq(told, 0u);
	scene_close(&c);
}

/* --- what may --- */

/* In one segment: octets before the one, the one, octets behind it */
static void three(struct ends_peer *p)
{
	say(p, (enum rs_op)RS_OP_INLINE, 5, 5);
	say_urgent(p, 3, 3);
	say(p, (enum rs_op)RS_OP_INLINE, 4, 4);
}

Test(urgent, reads_stop_before_it)
{
	uint8_t buf[64] = "", octet = 0;
	struct scene c;

	scene_open(&c, STREAM_FEATURES);
	ends_peer_say(&c.p, three);
	/* Straight from the transport */
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP), 7);
	cr_expect_eq(told, 1u);
	cr_expect_arr_eq(buf, octets, 5);
	cr_expect_arr_eq(buf + 5, octets, 2);
	cr_expect_eq(levels_of(c.s), STREAM_READABLE | STREAM_URGENT | STREAM_AT_MARK);
	cr_expect_eq(stream_readable(c.s), 0u);
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP), -ESTALE);
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP | MSG_PEEK), -ESTALE);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, MSG_PEEK), 1);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), 1);
	cr_expect_eq(octet, octets[2]);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), -EINVAL);
	cr_expect_eq(levels_of(c.s), STREAM_READABLE | STREAM_AT_MARK);
	cr_expect_eq(take(c.s, buf, sizeof(buf), 0), 4);
	cr_expect_arr_eq(buf, octets, 4);
	cr_expect_eq(levels_of(c.s), 0u);
	cr_expect_eq(c.s->state->urgent.octet, 0u);
	scene_close(&c);
}

Test(urgent, it_is_among_the_others)
{
	uint8_t buf[64] = "", octet;
	struct scene c;

	scene_open(&c, STREAM_FEATURES);
	stream_set_inline(c.s, true);
	ends_peer_say(&c.p, three);
	stream_progress(c.s);
	cr_expect_eq(stream_readable(c.s), 12u);
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP), 7);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), -EINVAL);
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP), -ESTALE);
	cr_expect_eq(take(c.s, buf, sizeof(buf), 0), 5);
	cr_expect_eq(buf[0], octets[2]);
	cr_expect_arr_eq(buf + 1, octets, 4);
	scene_close(&c);
}

/* A message of several FPDUs: only its last octet is urgent */
Test(urgent, the_last_of_many)
{
	static uint8_t buf[STREAM_RING];
	uint8_t octet = 0;
	struct scene c;
	size_t sum = 0;

	scene_open(&c, STREAM_FEATURES);
	say_urgent(&c.p, 200000, 200000);
	for (int i = 0; i < 1000 && sum < 199999; i++) {
		ssize_t got = take(c.s, buf + sum, sizeof(buf) - sum, STREAM_STOP);

		sum += (size_t)base_max(got, 0);
		usleep(100);
	}
	cr_expect_eq(sum, 199999u);
	cr_expect_eq(memcmp(buf, octets, sum), 0);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), 1);
	cr_expect_eq(octet, octets[199999]);
	scene_close(&c);
}

static void two(struct ends_peer *p)
{
	say_urgent(p, 1, 1);
	say_urgent(p, 2, 2);
}

/* The reader stands at the first one: that is left out when the second comes */
Test(urgent, a_second_one)
{
	uint8_t buf[8] = "", octet = 0;
	struct scene c;

	scene_open(&c, STREAM_FEATURES);
	ends_peer_say(&c.p, two);
	stream_progress(c.s);
	cr_expect_eq(told, 2u);
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP), 1);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), 1);
	cr_expect_eq(octet, octets[1]);
	scene_close(&c);
}

static void urgent_then_abort(struct ends_peer *p)
{
	say_urgent(p, 1, 1);
	say(p, RS_OP_CTRL, RS_CTRL_ABORT, 0);
}

static void urgent_then_end(struct ends_peer *p)
{
	say_urgent(p, 1, 1);
	say(p, RS_OP_CTRL, RS_CTRL_DISCONNECT, 0);
}

Test(urgent, ends_behind_it)
{
	struct scene c;
	uint8_t octet;
	char buf[8];

	scene_open(&c, STREAM_FEATURES);
	ends_peer_say(&c.p, urgent_then_abort);
	stream_progress(c.s);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), -ENOTCONN);
	scene_close(&c);
	scene_open(&c, STREAM_FEATURES);
	ends_peer_say(&c.p, urgent_then_end);
	stream_progress(c.s);
	cr_expect_not(stream_urgent_may(c.s));
	cr_expect_eq(take(c.s, buf, sizeof(buf), MSG_PEEK), 0);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), 1);
	cr_expect_eq(take(c.s, buf, sizeof(buf), 0), 0);
	cr_expect_eq(stream_urgent_recv(c.s, &octet, 0), -EINVAL);
	scene_close(&c);
}

static void a_first(struct ends_peer *p)
{
	say(p, (enum rs_op)RS_OP_INLINE, 2, 2);
	say_urgent(p, 1, 1);
}

/* The read ends before the first one, though by then a later one has come that takes it out */
Test(urgent, a_second_one_comes_in_a_read)
{
	uint8_t buf[8] = "";
	struct scene c;

	scene_open(&c, STREAM_FEATURES);
	ends_peer_say(&c.p, a_first);
	stream_progress(c.s);
	ends_peer_say(&c.p, two);
	/* With MSG_TRUNC it asks the transport in any case */
	cr_expect_eq(take(c.s, buf, sizeof(buf), STREAM_STOP | MSG_TRUNC), 2);
	scene_close(&c);
}

/* Whatever another process has written there: no octet that did not come, and nothing hangs */
Test(urgent, a_place_that_cannot_be)
{
	static const uint64_t places[] = { 0, 1, 8, 11, 12, 13, 4096, UINT64_MAX / 2, UINT64_MAX };
	uint8_t buf[64];

	for (unsigned int i = 0; i < 2 * base_array_size(places); i++) {
		struct stream_urgent *u;
		struct scene c;
		size_t sum = 0;

		scene_open(&c, STREAM_FEATURES);
		ends_peer_say(&c.p, three);
		stream_progress(c.s);
		u = &c.s->state->urgent;
		u->at = places[i / 2];
		u->octet = ~0u;
		u->in_line = i % 2 ? ~0u : 0;
		stream_levels(c.s, NULL);
		cr_expect_leq(stream_readable(c.s), 12u);
		for (int k = 0; k < 4; k++)
			sum += (size_t)base_max(take(c.s, buf, sizeof(buf), 0), 0);
		cr_expect(sum >= 11 && sum <= 12, "place %u: %zu", i, sum);
		scene_close(&c);
	}
}

/* --- what we say --- */

/* A responder sends nothing before the first word of the peer's */
static void speaking_open(struct scene *c)
{
	scene_open(c, STREAM_FEATURES);
	ends_peer_message(&c->p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE));
	usleep(2000);
	stream_progress(c->s);
}

Test(urgent, room_is_kept)
{
	static const char many[] = "0123456789abcde";
	struct iovec iov = { octets, sizeof(octets) };
	struct scene c;

	speaking_open(&c);
	cr_expect_eq(stream_send(c.s, &iov, 1), WINDOW - RESERVE);
	cr_expect_eq(stream_send(c.s, &iov, 1), -EAGAIN);
	cr_expect_eq(give(c.s, many, true), (ssize_t)strlen(many));
	cr_expect_eq(give(c.s, "u", true), 1);
	cr_expect_eq(give(c.s, "v", true), -EAGAIN);
	ends_peer_drain(&c.p);
	cr_expect_eq(c.p.messages[c.p.n - 1],
		     rs_msg((enum rs_op)RS_OP_INLINE, STREAM_INLINE_URGENT | 1));
	cr_expect_eq(c.p.messages[c.p.n - 2],
		     rs_msg((enum rs_op)RS_OP_INLINE, STREAM_INLINE_URGENT | 15));
	scene_close(&c);
}

/* Of a part none is urgent, for the rest is still to come */
Test(urgent, a_part_has_none)
{
	struct iovec iov = { octets, sizeof(octets) };
	struct scene c;

	speaking_open(&c);
	cr_expect_eq(stream_urgent_send(c.s, &iov, 1), WINDOW);
	ends_peer_drain(&c.p);
	for (unsigned int i = 0; i < c.p.n; i++)
		cr_expect_not(c.p.messages[i] & STREAM_INLINE_URGENT);
	scene_close(&c);
}

/* In many messages: of the last one the last octet */
Test(urgent, a_long_send)
{
	struct iovec iov = { octets, 300000 };
	static uint8_t buf[300000];
	struct stream *s[2];
	uint8_t octet = 0;
	size_t sum = 0;

	ends_open(s);
	cr_expect_eq(stream_urgent_send(s[0], &iov, 1), 300000);
	for (int i = 0; i < 1000 && sum < 299999; i++) {
		ssize_t got = take(s[1], buf, sizeof(buf), STREAM_STOP);

		cr_expect_neq(got, -ESTALE);
		sum += (size_t)base_max(got, 0);
		usleep(100);
	}
	cr_expect_eq(sum, 299999u);
	cr_expect_eq(told, 1u);
	cr_expect_eq(stream_urgent_recv(s[1], &octet, 0), 1);
	cr_expect_eq(octet, octets[299999]);
	ends_destroy(s);
}

/* A peer of rsockets, and one of ours that has not the bit */
Test(urgent, not_to_others)
{
	static const uint32_t without[] = { ~0u, STREAM_FEATURE_URGENT, STREAM_FEATURE_INLINE };
	struct stream *s[2];
	uint8_t octet;
	char buf[4];

	for (unsigned int i = 0; i < base_array_size(without); i++) {
		ends_without[1] = without[i];
		ends_open(s);
		cr_expect_eq(give(s[0], "u", true), -EOPNOTSUPP);
		cr_expect_eq(give(s[1], "u", true), -EOPNOTSUPP);
		cr_expect_not(stream_urgent_may(s[0]));
		cr_expect_eq(stream_urgent_recv(s[0], &octet, 0), -EINVAL);
		cr_expect_eq(give(s[0], "x", false), 1);
		usleep(2000);
		cr_expect_eq(take(s[1], buf, sizeof(buf), 0), 1);
		ends_destroy(s);
	}
}

/* --- before the connection is open --- */

static void open_held(struct stream *s[2])
{
	int fd[2];

	ends_tcp(fd);
	ends_param.hold = true;
	s[0] = ends_attach(fd[0], true);
	ends_param.hold = false;
	cr_assert_eq(stream_progress(s[0]), -EAGAIN);
	cr_expect_eq(give(s[0], "ab", false), 2);
	cr_expect_eq(give(s[0], "c!", true), 2);
	cr_expect_eq(give(s[0], "du", true), 2);
	cr_expect_eq(give(s[0], "ef", false), 2);
	s[1] = ends_attach(fd[1], false);
	for (int i = 0; i < 1000 && !(stream_levels(s[1], NULL) & STREAM_READABLE); i++) {
		stream_progress(s[0]);
		stream_progress(s[1]);
		usleep(100);
	}
	stream_progress(s[0]);
	usleep(2000);
}

/* Of two the later one */
Test(urgent, held)
{
	struct stream *s[2];
	uint8_t octet = 0;
	char buf[16] = "";

	open_held(s);
	cr_expect_eq(take(s[1], buf, sizeof(buf), STREAM_STOP), 5);
	cr_expect_str_eq(buf, "abc!d");
	cr_expect_eq(stream_urgent_recv(s[1], &octet, 0), 1);
	cr_expect_eq(octet, 'u');
	cr_expect_eq(take(s[1], buf, sizeof(buf), 0), 2);
	cr_expect_eq(buf[0], 'e');
	ends_destroy(s);
}

/* It was taken, so it goes; the peer has no name for it */
Test(urgent, held_for_others)
{
	static const uint32_t without[] = { ~0u, STREAM_FEATURE_URGENT };
	struct stream *s[2];

	for (unsigned int i = 0; i < base_array_size(without); i++) {
		char buf[16] = "";

		ends_without[1] = without[i];
		open_held(s);
		cr_expect_eq(take(s[1], buf, sizeof(buf), STREAM_STOP), 8);
		cr_expect_str_eq(buf, "abc!duef");
		ends_destroy(s);
	}
}

/* A probe that comes to nothing: plain TCP is to have the same octet as its urgent one */
Test(urgent, held_for_plain)
{
	struct stream *s;
	const void *held;
	size_t urgent = 0;
	int fd[2];

	ends_tcp(fd);
	ends_auto = true;
	ends_param.hold = ends_param.probe = true;
	s = ends_attach(fd[0], true);
	cr_assert_eq(stream_progress(s), -EAGAIN);
	cr_expect_eq(give(s, "ab", false), 2);
	cr_expect_eq(give(s, "cu", true), 2);
	cr_expect_eq(give(s, "d", false), 1);
	cr_assert_eq(write(fd[1], "-ERR unknown command\r\n", 22), 22);
	for (int i = 0; i < 100 && stream_progress(s) == -EAGAIN; i++)
		usleep(1000);
	cr_expect_eq(stream_held(s, &held, &urgent), 5u);
	cr_expect_eq(urgent, 4u);
	cr_expect_eq(memcmp(held, "abcud", 5), 0);
	stream_destroy(s);
	close(fd[0]);
	close(fd[1]);
}
