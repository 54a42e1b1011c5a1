/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes that are one message and one frame, which go by themselves.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

#define LONGEST 65000

/* One direction of a connection whose kernel has little room */
struct line {
	struct stream *s[2];
	uint64_t sent, got;
};

static void line_open(struct line *l)
{
	int room = 60000;

	*l = (struct line){ .sent = 0 };
	ends_param.opts.ring = STREAM_RING_MAX;
	ends_open(l->s);
	cr_assert_eq(setsockopt(l->s[0]->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	cr_assert_eq(setsockopt(l->s[1]->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
}

static void fill(uint8_t *buf, size_t len, uint64_t at)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = ends_octet(at + i);
}

static bool line_send(struct line *l, size_t len)
{
	static uint8_t buf[LONGEST];
	struct iovec iov = { buf, len };
	ssize_t sent;

	fill(buf, len, l->sent);
	sent = stream_send(l->s[0], &iov, 1);
	cr_assert(sent > 0 || sent == -EAGAIN, "send: %zd", sent);
	l->sent += (uint64_t)base_max(sent, (ssize_t)0);
	return sent > 0;
}

/* Does the kernel have a part of a frame? */
static bool line_is_cut(const struct line *l)
{
	const struct stream *s = l->s[0];

	return s->rnic->owes(&s->mem);
}

static void line_recv(struct line *l)
{
	static uint8_t buf[4 * LONGEST], want[sizeof(buf)];
	struct iovec iov = { buf, sizeof(buf) };
	ssize_t got = stream_recv(l->s[1], &iov, 1, 0);

	cr_assert(got > 0 || got == -EAGAIN, "recv: %zd", got);
	if (got < 0)
		return;
	fill(want, (size_t)got, l->got);
	cr_assert_eq(memcmp(buf, want, (size_t)got), 0, "octets from %lu on", l->got);
	l->got += (uint64_t)got;
}

/*
 * Two connections of one process, whose memory for the rest of a frame must be two. What did not
 * go is not in the books
 */
Test(single, a_full_transport)
{
	unsigned int both = 0;
	struct line lines[2];
	uint32_t seed = 1;

	for (int i = 0; i < 2; i++)
		line_open(&lines[i]);
	for (int turn = 0; turn < 1000; turn++) {
		for (int i = 0; i < 2; i++)
			while (line_send(&lines[i],
					 1 + (seed = seed * 1664525 + 1013904223) % LONGEST))
				;
		both += line_is_cut(&lines[0]) && line_is_cut(&lines[1]);
		for (int i = 0; i < 2; i++)
			line_recv(&lines[i]);
	}
	cr_expect_gt(both, 10u);
	for (int i = 0; i < 2; i++) {
		struct line *l = &lines[i];

		cr_expect_eq(l->s[0]->state->tx.placed, l->sent);
		while (l->got < l->sent) {
			stream_progress(l->s[0]);
			line_recv(l);
		}
		ends_destroy(l->s);
	}
}

/* Twice, since what a reader has looked for counts for one write */
Test(single, a_program_that_only_writes_hears_of_the_end)
{
	struct iovec iov = { "x", 1 };
	struct stream *s[2];

	ends_open(s);
	cr_assert_eq(stream_shutdown(s[1], SHUT_WR), 0);
	cr_assert_eq(stream_send(s[0], &iov, 1), 1);
	usleep(3000);
	cr_assert_eq(stream_send(s[0], &iov, 1), 1);
	cr_expect(stream_levels(s[0], NULL) & STREAM_RDHUP);
	ends_destroy(s);
}
