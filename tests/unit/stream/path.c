/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The path's segments become smaller while octets go, and the kernel is full.
 *
 * What was cut for the old path, and left in part, is finished before anything else; a writer that
 * comes back with other octets than it had offered loses none and repeats none. No test can make
 * the path of a loopback narrower, but it can have a stream believe that it was wider.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpa/mpa.h"
#include "tests/unit/tcp_pair.h"

#define NARROW 1400
#define WIDE 30000
/* Octets each way */
#define SIZE 20000000u

static void open_narrow(struct stream *s[2])
{
	int fd[2], room = 1;

	tcp_pair(fd, NARROW, room);
	cr_assert_eq(setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (int i = 0; i < 2; i++)
		s[i] = ends_attach(fd[i], !i);
	for (int i = 0; i < 1000 && !(stream_levels(s[1], NULL) & STREAM_WRITABLE); i++) {
		stream_progress(s[0]);
		stream_progress(s[1]);
		usleep(100);
	}
	cr_assert(stream_levels(s[1], NULL) & STREAM_WRITABLE);
}

/* The numbers of the segment size lie side by side in the provider's state */
static uint16_t *segment_of(struct stream *s)
{
	struct stream *r = s;
	struct rnic_stream_info info;
	uint16_t *at = r->mem.state;

	r->rnic->info(&r->mem, &info);
	for (size_t i = 0; i < RNIC_STREAM_STATE / sizeof(*at) - 1; i++)
		if (at[i + 1] == info.mulpdu && mpa_mulpdu(at[i], false) == info.mulpdu)
			return &at[i];
	cr_assert_fail("the state does not have a segment size");
	return NULL;
}

/* Has it found the path narrow since the last time? */
static bool believe_wide(struct stream *s)
{
	uint16_t *segment = segment_of(s);
	bool was = segment[0] < NARROW;

	segment[0] = WIDE;
	segment[1] = mpa_mulpdu(WIDE, false);
	return was;
}

struct way {
	struct stream *from, *to;
	uint64_t sent, got;
	size_t offers;	    /* another length each time */
	unsigned int found; /* that the path is narrow */
};

static void way_go(struct way *w)
{
	static uint8_t octets[100000], back[100000];
	struct iovec iov = { octets, 1 + w->offers++ * 7919 % sizeof(octets) };
	struct iovec room = { back, sizeof(back) };
	ssize_t n;

	if (w->offers % 8 == 0)
		w->found += believe_wide(w->from);
	for (size_t i = 0; i < iov.iov_len; i++)
		octets[i] = ends_octet(w->sent + i);
	n = stream_send(w->from, &iov, 1);
	cr_assert(n > 0 || n == -EAGAIN, "send: %zd", n);
	w->sent += n > 0 ? (uint64_t)n : 0;
	n = stream_recv(w->to, &room, 1, 0);
	cr_assert(n > 0 || n == -EAGAIN, "recv: %zd", n);
	for (ssize_t i = 0; i < n; i++)
		cr_assert_eq(back[i], ends_octet(w->got + (uint64_t)i));
	w->got += n > 0 ? (uint64_t)n : 0;
}

static void both_ways(void)
{
	struct stream *s[2];
	struct way ways[2];

	open_narrow(s);
	for (int i = 0; i < 2; i++)
		ways[i] = (struct way){ .from = s[i], .to = s[!i] };
	for (int i = 0; i < 100000 && (ways[0].got < SIZE || ways[1].got < SIZE); i++) {
		way_go(&ways[0]);
		way_go(&ways[1]);
	}
	for (int i = 0; i < 2; i++) {
		cr_expect_geq(ways[i].got, SIZE);
		cr_expect_gt(ways[i].found, 1u);
	}
	ends_destroy(s);
}

Test(path, becomes_narrower)
{
	both_ways();
	ends_without[0] = ~0u;
	both_ways();
}
