/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes are to be woken: each that awaits, once, and never the one that asks.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/recv_sleep.h"

TestSuite(sleep, .init = place_begin, .fini = place_end, .timeout = 60);

#define PARENT 11
#define CHILD 22

static unsigned int woken(struct stream *s, uint64_t *wakeups)
{
	return stream_sleepers(s, wakeups, 4);
}

Test(sleep, alone)
{
	struct stream *s[2];
	uint64_t wakeups[4];

	ends_open(s);
	cr_expect_eq(stream_await(s[0], PARENT), STREAM_AWAIT_NEW);
	cr_expect_eq(stream_await(s[0], PARENT), 0);
	cr_expect_eq(stream_await(s[0], 0), STREAM_AWAIT_DEAF, "there is nothing to wake");
	cr_expect_eq(woken(s[0], wakeups), 0, "one does not wake oneself");
	ends_destroy(s);
}

/* The two take turns by a pipe each */
static void turn(int pipes[2][2], int who, bool wait)
{
	char c;

	if (wait && read(pipes[who][0], &c, 1) != 1)
		abort();
	if (!wait && write(pipes[who][1], "x", 1) != 1)
		abort();
}

static int in_child(struct stream *s, int pipes[2][2])
{
	uint64_t wakeups[4];

	stream_joined(s);
	if (woken(s, wakeups) != 1 || wakeups[0] != PARENT)
		return 1;
	if (woken(s, wakeups)) /* it knows */
		return 2;
	if (stream_await(s, CHILD) != STREAM_AWAIT_NEW)
		return 3;
	turn(pipes, 0, false);
	turn(pipes, 1, true);
	if (stream_await(s, CHILD) !=
	    (STREAM_AWAIT_NEW | STREAM_AWAIT_NOTIFIED | STREAM_AWAIT_DEAF))
		return 4;
	if (woken(s, wakeups) != 1 || wakeups[0] != PARENT)
		return 5;
	turn(pipes, 0, false);
	turn(pipes, 1, true);
	return 0;
}

Test(sleep, each_rings_the_other)
{
	struct stream *s[2];
	uint64_t wakeups[4];
	int pipes[2][2];
	pid_t pid;

	cr_assert(!pipe(pipes[0]) && !pipe(pipes[1]));
	ends_open(s);
	cr_expect_eq(stream_await(s[0], PARENT), STREAM_AWAIT_NEW);
	stream_share(s[0], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid)
		_exit(in_child(s[0], pipes));
	turn(pipes, 0, true);
	cr_expect_eq(stream_await(s[0], PARENT), STREAM_AWAIT_NEW | STREAM_AWAIT_NOTIFIED);
	cr_expect_eq(woken(s[0], wakeups), 1);
	cr_expect_eq(wakeups[0], CHILD);
	stream_unheard(s[0], CHILD);
	turn(pipes, 1, false);
	turn(pipes, 0, true);
	cr_expect_eq(stream_await(s[0], PARENT), STREAM_AWAIT_NEW | STREAM_AWAIT_NOTIFIED);
	turn(pipes, 1, false);
	cr_expect_eq(place_wait(pid), 0);
	ends_destroy(s);
}

/* The name that its parent gives it must not take away what it has said by then */
Test(sleep, named_when_it_sleeps)
{
	struct stream *s[2];
	uint64_t wakeups[4];
	int pipes[2][2];
	pid_t pid;

	cr_assert(!pipe(pipes[0]) && !pipe(pipes[1]));
	ends_open(s);
	stream_share(s[0], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid) {
		stream_joined(s[0]);
		stream_await(s[0], CHILD);
		turn(pipes, 0, false);
		turn(pipes, 1, true);
		_exit(0);
	}
	turn(pipes, 0, true);
	stream_named(s[0], (uint32_t)pid);
	cr_expect_eq(woken(s[0], wakeups), 1);
	cr_expect_eq(wakeups[0], CHILD);
	turn(pipes, 1, false);
	cr_expect_eq(place_wait(pid), 0);
	ends_destroy(s);
}

/* --- one that sleeps in the receive itself --- */

static bool at_once(struct base_recv_sleep *sleep)
{
	return true;
}

static void wait_for_sleep(const struct stream *s)
{
	while (!s->state->rx_lock.asleep)
		usleep(1000);
	usleep(20000);
}

static ssize_t say(struct stream *s, char c)
{
	struct iovec iov = { &c, 1 };

	return stream_send(s, &iov, 1);
}

static ssize_t hear(struct stream *s, char *c)
{
	struct iovec iov = { c, 1 };

	return stream_recv(s, &iov, 1, 0);
}

/* It comes by the descriptor alone, as one from pidfd_getfd(), and nobody told it to */
static int comes_unannounced(struct stream *s[2])
{
	struct stream *found[2];
	uint64_t begin;
	char c;
	int err;

	wait_for_sleep(s[0]);
	for (int i = 0; i < 2; i++)
		if (!(found[i] = place_adopt(s[i]->fd, &err)))
			return 1;
	begin = base_now();
	if (hear(found[0], &c) != -EAGAIN || stream_progress(found[0]) || say(found[0], 'a') != 1)
		return 2;
	if (base_now() - begin > BASE_NS_PER_S)
		return 3;
	if (hear(found[1], &c) != 1 || c != 'a')
		return 4;
	return say(found[1], 'b') == 1 ? 0 : 5;
}

Test(sleep, who_comes_meanwhile_is_not_kept_waiting)
{
	struct base_recv_sleep sleep = { .may = at_once };
	struct stream *s[2];
	char c;
	pid_t pid;

	ends_open(s);
	place_both_ways(s);
	pid = fork();
	if (!pid)
		_exit(comes_unannounced(s));
	cr_expect(stream_sleep(s[0], &sleep));
	cr_expect(sleep.slept);
	cr_expect_eq(hear(s[0], &c), 1);
	cr_expect_eq(c, 'b');
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(hear(s[0], &c), -EAGAIN, "it is whole");
	ends_destroy(s);
}

/* Where the state is rubbish: it says that a user message waits */
static int asks_for_messages(struct stream *s[2])
{
	struct iovec iov = { &(char){ 0 }, 1 };
	struct stream *found[2];
	uint64_t begin;
	size_t len;
	int err;

	wait_for_sleep(s[0]);
	for (int i = 0; i < 2; i++)
		if (!(found[i] = place_adopt(s[i]->fd, &err)))
			return 1;
	found[0]->state->rx.message_first = found[0]->state->rx.consumed;
	begin = base_now();
	if (stream_readable(found[0]) ||
	    stream_message_recv(found[0], &iov, 1, 0, &len) != -ENODATA)
		return 2;
	if (base_now() - begin > BASE_NS_PER_S)
		return 3;
	found[0]->state->rx.message_first = STREAM_NO_MESSAGE;
	return say(found[1], 'b') == 1 ? 0 : 4;
}

Test(sleep, who_asks_for_messages_is_not_kept_waiting)
{
	struct base_recv_sleep sleep = { .may = at_once };
	struct stream *s[2];
	char c;
	pid_t pid;

	ends_open(s);
	place_both_ways(s);
	pid = fork();
	if (!pid)
		_exit(asks_for_messages(s));
	cr_expect(stream_sleep(s[0], &sleep));
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(hear(s[0], &c), 1);
	cr_expect_eq(c, 'b');
	ends_destroy(s);
}

/* Others have it, and take in what this one would sleep for: it is to poll, and to be woken */
Test(sleep, not_where_others_have_it)
{
	struct base_recv_sleep sleep = { .may = at_once };
	struct stream *s[2];

	ends_open(s);
	stream_share(s[0], STREAM_SHARE_FORK);
	cr_expect_not(stream_sleep(s[0], &sleep));
	cr_expect_not(sleep.slept);
	stream_unshare(s[0], STREAM_SHARE_FORK);
	ends_destroy(s);
}

/* The comer finds out, and the connection ends, as if the dead had been at work there */
Test(sleep, one_that_is_killed_in_it)
{
	struct base_recv_sleep sleep = { .may = at_once };
	struct stream *s[2], *found;
	pid_t pid;
	char c;
	int err;

	ends_open(s);
	place_both_ways(s);
	stream_share(s[0], STREAM_SHARE_FORK);
	pid = ends_fork();
	if (!pid) {
		stream_joined(s[0]);
		for (;;) /* its parent may still have it */
			stream_sleep(s[0], &sleep);
	}
	stream_named(s[0], (uint32_t)pid);
	stream_close(s[0]);
	wait_for_sleep(s[0]);
	found = place_adopt(s[0]->fd, &err);
	cr_assert_not_null(found);
	cr_expect_eq(hear(found, &c), -EAGAIN);
	kill(pid, SIGKILL);
	cr_expect_eq(place_wait(pid), -SIGKILL);
	cr_expect_eq(hear(found, &c), -ECONNRESET);
	cr_expect_not(found->state->rx_lock.asleep);
	stream_destroy(found);
	ends_destroy(s);
}

/* One that has no place cannot be woken, and knows it */
Test(sleep, without_a_place)
{
	struct stream *s[2];

	ends_open(s);
	for (int i = 0; i < STREAM_HOLDERS; i++)
		stream_share(s[0], STREAM_SHARE_FORK);
	s[0]->slot = -1;
	cr_expect_eq(stream_await(s[0], PARENT), STREAM_AWAIT_DEAF);
	ends_destroy(s);
}
