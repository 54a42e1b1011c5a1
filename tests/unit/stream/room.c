/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room in the kernel, for a writer that found none.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* As much as the kernel takes, at once: octets */
static uint64_t stuff(struct stream *s)
{
	static uint8_t octets[65536];
	struct iovec iov = { octets, sizeof(octets) };
	uint64_t sum = 0;
	ssize_t sent;

	while ((sent = OPS->send(s, &iov, 1)) > 0)
		sum += (uint64_t)sent;
	cr_assert_eq(sent, -EAGAIN, "send: %zd", sent);
	return sum;
}

static void take_all(struct stream *s)
{
	static uint8_t octets[65536];
	struct iovec iov = { octets, sizeof(octets) };

	while (OPS->recv(s, &iov, 1, 0) > 0)
		;
}

/*
 * Room in the kernel is an edge, whoever finds it and whatever leaves by it: nothing else wakes a
 * writer that waits for edges, for a peer grants nothing for so little. Was a frame cut?
 */
static bool room_finds(int room, void (*look)(struct stream *s))
{
	struct stream_edges full, after;
	struct stream *s[2];
	bool cut;

	ends_param.ring = STREAM_RING_MAX;
	ends_open(s);
	cr_assert_eq(setsockopt(s[0]->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	cr_assert_lt(stuff(s[0]), STREAM_RING_MAX / 2);
	cut = OPS->owes(s[0]);
	cr_assert_eq(OPS->levels(s[0], &full) & STREAM_WRITABLE, 0);
	for (int i = 0; i < 10000 && !(OPS->levels(s[0], &after) & STREAM_WRITABLE); i++) {
		take_all(s[1]);
		look(s[0]);
		usleep(100);
	}
	cr_expect(OPS->levels(s[0], &after) & STREAM_WRITABLE);
	cr_expect_neq(after.out, full.out);
	ends_destroy(s);
	return cut;
}

static void looks(struct stream *s)
{
	OPS->progress(s);
}

static void reads_and_looks(struct stream *s)
{
	take_all(s);
	OPS->progress(s);
}

Test(room, is_an_edge)
{
	unsigned int cut = 0;

	for (int room = 4096; room <= 40 * 4096; room += 4 * 4096) {
		cut += room_finds(room, looks);
		cut += room_finds(room, reads_and_looks);
	}
	/* What is left of a frame leaves by whatever comes first */
	cr_expect_gt(cut, 0);
}
