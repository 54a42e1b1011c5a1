/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Room in the kernel, for a writer that found none.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sockutil.h"

/* As much as the kernel takes, at once: octets */
static uint64_t stuff(struct stream *s)
{
	static uint8_t octets[65536];
	struct iovec iov = { octets, sizeof(octets) };
	uint64_t sum = 0;
	ssize_t sent;

	while ((sent = stream_send(s, &iov, 1)) > 0)
		sum += (uint64_t)sent;
	cr_assert_eq(sent, -EAGAIN, "send: %zd", sent);
	return sum;
}

static uint64_t take_all(struct stream *s)
{
	static uint8_t octets[65536];
	struct iovec iov = { octets, sizeof(octets) };
	uint64_t sum = 0;
	ssize_t got;

	while ((got = stream_recv(s, &iov, 1, 0)) > 0)
		sum += (uint64_t)got;
	return sum;
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

	ends_param.opts.ring = STREAM_RING_MAX;
	ends_open(s);
	cr_assert_eq(setsockopt(s[0]->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	cr_assert_lt(stuff(s[0]), STREAM_RING_MAX / 2);
	cut = stream_owes(s[0]);
	cr_assert_eq(stream_levels(s[0], &full) & STREAM_WRITABLE, 0);
	for (int i = 0; i < 10000 && !(stream_levels(s[0], &after) & STREAM_WRITABLE); i++) {
		take_all(s[1]);
		look(s[0]);
		usleep(100);
	}
	cr_expect(stream_levels(s[0], &after) & STREAM_WRITABLE);
	cr_expect_neq(after.out, full.out);
	ends_destroy(s);
	return cut;
}

static void looks(struct stream *s)
{
	stream_progress(s);
}

static void reads_and_looks(struct stream *s)
{
	take_all(s);
	stream_progress(s);
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

/*
 * Who has sent it in a message is the last that has it if nobody receives that. What is not there
 * yet when it closes would be lost to the first grant, which finds a closed socket.
 */
static void sent_and_closed(struct stream *s[2], uint64_t *sum)
{
	bool safe = true;

	ends_param.opts.ring = STREAM_RING_MAX;
	ends_open(s);
	*sum = stuff(s[0]);
	stream_share(s[0], STREAM_SHARE_FLIGHT);
	cr_expect_eq(stream_close(s[0]), -EAGAIN);
	cr_expect_eq(stream_close_more(s[0], &safe), -EAGAIN);
	cr_expect_not(safe);
}

Test(room, of_what_is_in_flight_is_waited_for)
{
	struct stream *s[2];
	uint64_t sum, got = 0;
	bool safe = false;
	int left = -EAGAIN;

	sent_and_closed(s, &sum);
	for (int i = 0; i < 10000 && left; i++) {
		got += take_all(s[1]);
		left = stream_close_more(s[0], &safe);
		usleep(100);
	}
	cr_expect_eq(left, 0);
	cr_expect(safe);
	close(s[0]->fd);
	stream_set_fd(s[0], -1);
	got += take_all(s[1]);
	cr_expect_eq(got, sum);
	ends_destroy(s);
}

/* A process that is short of descriptors lets go when only the end may be under way */
Test(room, an_end_alone_is_told_from_octets)
{
	struct stream *s[2];
	bool safe = false;

	ends_param.opts.ring = STREAM_RING_MAX;
	ends_open(s);
	cr_expect_not(stream_only_end_left(s[0]), "nobody has closed it");
	stuff(s[0]);
	cr_expect_eq(stream_close(s[0]), -EAGAIN);
	for (int i = 0; i < 10000 && !safe; i++) {
		bool only = stream_only_end_left(s[0]);

		cr_expect(!only || base_sock_unacked(s[0]->fd) <= 33);
		take_all(s[1]);
		stream_close_more(s[0], &safe);
		usleep(100);
	}
	cr_expect(safe);
	cr_expect(stream_only_end_left(s[0]), "all of it is acknowledged");
	ends_destroy(s);
}

/* Who has received it sees to the rest, also if it was sent twice */
Test(room, of_what_has_landed_is_another_ones, .timeout = 20)
{
	struct stream *s[2];
	uint64_t sum;
	bool safe;
	pid_t pid;

	sent_and_closed(s, &sum);
	stream_share(s[0], STREAM_SHARE_FLIGHT);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stream_holder_enter(s[0]);
		pause();
	}
	while (stream_close_more(s[0], &safe))
		usleep(100);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	ends_destroy(s);
}
