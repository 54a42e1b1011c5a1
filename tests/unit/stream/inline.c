/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets in Sends, under a window of octets: what a peer of ours may say, and what ends the
 * connection.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW 4096

static uint8_t octets[STREAM_RING + 64];

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

/* A Send of @msg and @len octets behind it */
static void say(struct ends_peer *p, uint32_t msg, const void *body, uint32_t len)
{
	static uint8_t buf[sizeof(octets) + 4];

	base_put_le32(buf, msg);
	if (len)
		memcpy(buf + 4, body, len);
	ends_peer_send(p, buf, 4 + len);
}

static void window(struct ends_peer *p, uint64_t limit, uint32_t len)
{
	uint64_t le[2] = { htole64(limit), 0 };

	say(p, rs_msg(RS_OP_WINDOW, 0), le, len);
}

static void say_inline(struct ends_peer *p, uint32_t told, uint32_t len)
{
	say(p, rs_msg(RS_OP_INLINE, told), octets, len);
}

/* --- what must not be said --- */

static void told_more(struct ends_peer *p)
{
	say_inline(p, 11, 10);
}

static void told_less(struct ends_peer *p)
{
	say_inline(p, 9, 10);
}

static void told_none(struct ends_peer *p)
{
	say_inline(p, 0, 0);
}

static void beyond_window(struct ends_peer *p)
{
	say_inline(p, STREAM_RING + 1, STREAM_RING + 1);
}

static void after_end(struct ends_peer *p)
{
	say(p, rs_msg(RS_OP_CTRL, RS_CTRL_SHUTDOWN), NULL, 0);
	say_inline(p, 1, 1);
}

static void old_write(struct ends_peer *p)
{
	ends_peer_write(p, be32toh(p->theirs.data_buf.key), be64toh(p->theirs.data_buf.addr),
			octets, 1);
}

static void old_sge(struct ends_peer *p)
{
	ends_peer_write(p, be32toh(p->theirs.target_sgl.key),
			be64toh(p->theirs.target_sgl.addr) + 16, octets, 16);
}

static void old_data(struct ends_peer *p)
{
	say(p, rs_msg(RS_OP_DATA, 1), NULL, 0);
}

static void old_sgl(struct ends_peer *p)
{
	say(p, rs_msg(RS_OP_SGL, 384), NULL, 0);
}

static void window_back(struct ends_peer *p)
{
	window(p, WINDOW - 1, 8);
}

static void window_short(struct ends_peer *p)
{
	window(p, 2 * WINDOW, 7);
}

static void window_long(struct ends_peer *p)
{
	window(p, 2 * WINDOW, 9);
}

static void window_none(struct ends_peer *p)
{
	window(p, 0, 0);
}

static void part(struct ends_peer *p, uint32_t value, uint32_t len)
{
	say(p, rs_msg(RS_OP_MESSAGE, value), octets, len);
}

static void message_more(struct ends_peer *p)
{
	part(p, 11, 10);
}

static void message_less(struct ends_peer *p)
{
	part(p, 9, 10);
}

static void message_window(struct ends_peer *p)
{
	part(p, STREAM_RING - STREAM_MESSAGE_COST + 1, STREAM_RING - STREAM_MESSAGE_COST + 1);
}

static struct stream *listening; /* to the peer at hand */

static void message_headers(struct ends_peer *p)
{
	for (unsigned int i = 0; i <= STREAM_RING / STREAM_MESSAGE_COST; i++) {
		part(p, 0, 0);
		if (i % 1000 == 0)
			stream_progress(listening);
	}
}

static void message_broken_into(struct ends_peer *p)
{
	part(p, STREAM_MESSAGE_MORE | 10, 10);
	say_inline(p, 5, 5);
}

static void message_after_end(struct ends_peer *p)
{
	say(p, rs_msg(RS_OP_CTRL, RS_CTRL_SHUTDOWN), NULL, 0);
	part(p, 5, 5);
}

static void write_unknown(struct ends_peer *p)
{
	ends_peer_write(p, 0x12345678, 4096, octets, 8);
}

static void control_long(struct ends_peer *p)
{
	say(p, rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE), octets, 1);
}

static void body_cut(struct ends_peer *p)
{
	ends_peer_send(p, octets, 2);
}

static const struct {
	const char *name;
	void (*say)(struct ends_peer *p);
} cases[] = {
	{ "more octets told of than there are", told_more },
	{ "fewer", told_less },
	{ "none", told_none },
	{ "more than the window", beyond_window },
	{ "octets after SHUTDOWN", after_end },
	{ "a Write into the ring", old_write },
	{ "a Write into the SGL", old_sge },
	{ "DATA", old_data },
	{ "SGL", old_sgl },
	{ "a window that shrinks", window_back },
	{ "a WINDOW that is cut", window_short },
	{ "a WINDOW too long", window_long },
	{ "a WINDOW of nothing", window_none },
	{ "a message of fewer octets than told", message_more },
	{ "one of more", message_less },
	{ "one beyond the window", message_window },
	{ "so many that their headers are", message_headers },
	{ "octets in the middle of one", message_broken_into },
	{ "one after SHUTDOWN", message_after_end },
	{ "a Write to no memory", write_unknown },
	{ "CTRL with a body", control_long },
	{ "half a message", body_cut },
};

static void one(unsigned int i)
{
	static char buf[STREAM_RING];
	struct iovec iov = { buf, sizeof(buf) };
	struct scene c;
	ssize_t got;

	scene_open(&c, STREAM_FEATURES);
	listening = c.s;
	ends_peer_say(&c.p, cases[i].say);
	for (int k = 0; k < 3; k++)
		stream_progress(c.s);
	got = stream_recv(c.s, &iov, 1, 0);
	cr_expect(got == -EPROTO || got == -ECONNRESET || got == -EBADMSG || got == 0,
		  "%s: recv gave %zd", cases[i].name, got);
	cr_expect(stream_levels(c.s, NULL) & STREAM_HUP, "%s: no HUP", cases[i].name);
	ends_peer_drain(&c.p);
	cr_expect(c.p.ended, "%s: the connection lives on", cases[i].name);
	scene_close(&c);
}

Test(inline, each_ends_its_connection)
{
	for (unsigned int i = 0; i < base_array_size(cases); i++)
		one(i);
}

/* Without the bit the same words are no words */
Test(inline, not_without_the_bit)
{
	struct scene c;
	char buf[16];
	struct iovec iov = { buf, sizeof(buf) };

	for (int i = 0; i < 2; i++) {
		scene_open(&c, STREAM_FEATURES & ~STREAM_FEATURE_INLINE);
		if (i)
			say_inline(&c.p, 5, 5);
		else
			window(&c.p, 2 * WINDOW, 8);
		usleep(5000);
		stream_progress(c.s);
		cr_expect_lt(stream_recv(c.s, &iov, 1, 0), 0);
		cr_expect(stream_levels(c.s, NULL) & STREAM_HUP);
		scene_close(&c);
	}
}

/* A message of which the last part never comes is a cut, whatever the end looks like */
Test(inline, a_message_cut_by_the_end)
{
	char buf[16];
	struct iovec iov = { buf, sizeof(buf) };
	struct scene c;
	size_t len;

	scene_open(&c, STREAM_FEATURES);
	say_inline(&c.p, 3, 3);
	part(&c.p, STREAM_MESSAGE_MORE | 10, 10);
	cr_assert_eq(shutdown(c.p.fd, SHUT_WR), 0);
	usleep(5000);
	stream_progress(c.s);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), 3);
	cr_expect_eq(stream_message_recv(c.s, &iov, 1, 0, &len), -ENODATA);
	cr_expect_eq(stream_recv(c.s, &iov, 1, 0), -ECONNRESET);
	scene_close(&c);
}

/* --- what may be said --- */

/* A Send of several FPDUs is one message; its octets are the program's when it is whole */
Test(inline, a_long_message)
{
	static char buf[STREAM_RING];
	struct iovec iov = { buf, sizeof(buf) };
	struct scene c;
	size_t sum = 0;

	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = ends_octet(i);
	scene_open(&c, STREAM_FEATURES);
	say_inline(&c.p, 200000, 200000);
	for (int i = 0; i < 1000 && sum < 200000; i++) {
		ssize_t got = stream_recv(c.s, &iov, 1, 0);

		if (got > 0)
			cr_assert_eq(memcmp(buf, octets + sum, (size_t)got), 0);
		sum += (size_t)base_max(got, 0);
		usleep(100);
	}
	cr_expect_eq(sum, 200000u);
	scene_close(&c);
}

/* The window is what bounds a sender, to the octet; WINDOW may say the same again */
Test(inline, a_sender_keeps_to_the_window)
{
	struct iovec iov = { octets, sizeof(octets) };
	struct stream_edges before, after;
	struct scene c;

	scene_open(&c, STREAM_FEATURES & ~STREAM_FEATURE_URGENT);
	window(&c.p, WINDOW, 8);
	usleep(2000);
	stream_progress(c.s);
	cr_expect_eq(stream_send(c.s, &iov, 1), WINDOW);
	cr_expect_eq(stream_send(c.s, &iov, 1), -EAGAIN);
	cr_expect_not(stream_levels(c.s, NULL) & STREAM_WRITABLE);
	window(&c.p, WINDOW + 1, 8);
	usleep(2000);
	cr_expect_eq(stream_send(c.s, &iov, 1), 1);
	cr_expect_eq(stream_send(c.s, &iov, 1), -EAGAIN);
	stream_levels(c.s, &before);
	window(&c.p, UINT64_MAX, 8);
	usleep(2000);
	stream_progress(c.s);
	cr_expect(stream_levels(c.s, &after) & STREAM_WRITABLE);
	cr_expect_neq(after.out, before.out);
	cr_expect_eq(after.in, before.in);
	scene_close(&c);
}

/* A block that offers INLINE and no window */
Test(inline, needs_a_window)
{
	uint8_t pd[54];
	struct rs_conn_data cd;
	struct ends_peer p;
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	s = ends_attach(fd[1], false);
	ends_peer_init(&p, fd[0]);
	cd = ends_conn_data(&p, 384, 4096);
	memcpy(pd, &cd, sizeof(cd));
	memcpy(pd + sizeof(cd), "WARP\1\0\0\6\1\4\0\0\0\4", 14);
	cr_expect_not(ends_peer_open(&p, s, pd, sizeof(pd)));
	close(fd[1]);
	stream_destroy(s);
	ends_peer_destroy(&p);
}
