/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes to who has gone: the errno, and no signal, but for one that waits already.
 */
#include "base/quiet.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int fd[2];
static volatile sig_atomic_t signals;

static void count(int sig)
{
	signals++;
}

static void pair(void)
{
	struct sigaction action = { .sa_handler = count };
	int taker, broken;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	cr_assert_eq(sigaction(SIGPIPE, &action, NULL), 0);
	cr_assert_eq(base_quiet_create(&taker, &broken), 0);
	base_quiet_init(taker, broken);
	signals = 0;
}

TestSuite(base_quiet, .init = pair);

static long put(const void *p, size_t n)
{
	struct iovec iov = { (void *)p, n };

	return base_quiet_write(fd[0], &iov, 1);
}

static bool waits(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGPIPE);
}

Test(base_quiet, pieces_are_one)
{
	static char part[3][BASE_QUIET_MAX], all[sizeof(part) + 1];
	struct iovec iov[] = {
		{ part[0], 5 }, { NULL, 0 }, { part[1], sizeof(part[1]) }, { part[2], 7 }
	};
	size_t sum = 5 + sizeof(part[1]) + 7;

	for (int i = 0; i < 3; i++)
		memset(part[i], 'a' + i, sizeof(part[i]));
	cr_assert_eq(base_quiet_write(fd[0], iov, 4), (long)sum);
	cr_assert_eq(recv(fd[1], all, sizeof(all), 0), (ssize_t)sum);
	cr_assert(all[4] == 'a' && all[5] == 'b' && all[5 + sizeof(part[1])] == 'c');
	cr_assert_eq(base_quiet_write(fd[0], NULL, 0), 0);
}

Test(base_quiet, what_does_not_fit)
{
	static char much[1 << 20];
	long n = put(much, sizeof(much)), sum = 0, got;

	cr_assert(n > 0 && n < (long)sizeof(much));
	cr_assert_eq(put("x", 1), -EAGAIN);
	while ((got = recv(fd[1], much, sizeof(much), 0)) > 0)
		sum += got;
	cr_assert_eq(sum, n);
}

Test(base_quiet, nobody_reads)
{
	close(fd[1]);
	errno = 77;
	cr_assert_eq(put("x", 1), -EPIPE);
	cr_assert_eq(errno, 77);
	cr_assert(!signals && !waits());
}

/* A program that blocks the signal, and finds the one that it waits for */
Test(base_quiet, one_that_waits_stays)
{
	sigset_t set, none;

	sigemptyset(&set);
	sigemptyset(&none);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	close(fd[1]);
	cr_assert_eq(put("x", 1), -EPIPE);
	cr_assert(!waits());
	raise(SIGPIPE);
	cr_assert_eq(put("x", 1), -EPIPE);
	cr_assert(waits());
	sigprocmask(SIG_SETMASK, &none, NULL);
	cr_assert_eq(signals, 1);
}

Test(base_quiet, without_what_it_needs)
{
	base_quiet_init(-1, -1);
	close(fd[1]);
	cr_assert_eq(put("x", 1), -EPIPE);
	cr_assert_eq(signals, 0);
	base_quiet_raise();
	cr_assert_eq(signals, 0);
}

Test(base_quiet, a_signal_when_it_is_wanted)
{
	base_quiet_raise();
	cr_assert_eq(signals, 1);
}

/* The limit for files of a program that may write none */
Test(base_quiet, around_a_write)
{
	struct rlimit none = { 0, 0 };
	struct sigaction action = { .sa_handler = count };
	struct base_quiet q;
	FILE *file = tmpfile();

	sigaction(SIGXFSZ, &action, NULL);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert(base_quiet_begin(&q));
		cr_assert(write(fileno(file), "x", 1) < 0 && errno == EFBIG);
		base_quiet_end(&q, true);
		cr_assert_eq(signals, 0);
		base_quiet_init(-1, -1);
	}
	cr_assert(write(fileno(file), "x", 1) < 0 && signals == 1);
}
