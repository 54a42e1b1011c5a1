/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The carrier by io_uring: what one call receives for many sockets is what each would have received
 * by itself, once and in order; and where there is no ring, or none any more, nothing is lost.
 */
#include "llp/uring.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/forbid.h"
#include "tests/unit/tcp_pair.h"

#define PAIRS LLP_URING_BATCH
#define ROOM 4096

/* The library's calls of dlopen() come here */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
static bool has_no_library;

void *__wrap_dlopen(const char *name, int flags)
{
	return __real_dlopen(has_no_library ? "/nowhere/liburing.so" : name, flags);
}

static struct llp_uring *ring;
static struct llp_uring_conn conn[PAIRS];
static int far[PAIRS];
static uint8_t in[PAIRS][ROOM];
static struct llp_uring_want wants[PAIRS];

static void pairs_make(void)
{
	if (llp_uring_create(&ring))
		cr_skip_test("no io_uring here");
	for (unsigned int i = 0; i < PAIRS; i++) {
		int two[2];

		tcp_pair(two, 0, 0);
		llp_uring_conn_init(&conn[i], two[0]);
		far[i] = two[1];
		wants[i] = (struct llp_uring_want){ &conn[i], { in[i], ROOM } };
	}
}

static void pairs_drop(void)
{
	for (unsigned int i = 0; ring && i < PAIRS; i++) {
		close(conn[i].llp.fd);
		close(far[i]);
	}
	llp_uring_destroy(ring);
}

TestSuite(llp_uring, .init = pairs_make, .fini = pairs_drop, .timeout = 30);

/* Something, or an end, has come */
static void arrived(unsigned int i)
{
	struct pollfd p = { .fd = conn[i].llp.fd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 5000), 1);
}

static void say(unsigned int i, const void *p, size_t n)
{
	cr_assert_eq(send(far[i], p, n, MSG_NOSIGNAL), (ssize_t)n);
	arrived(i);
}

static ssize_t take(unsigned int i)
{
	return conn[i].llp.ops->recv(&conn[i].llp, &wants[i].iov, 1);
}

/* Is there nothing more in the kernel, though the connection has not been asked? */
static bool is_drained(unsigned int i)
{
	char c;

	return recv(conn[i].llp.fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

Test(llp_uring, each_gets_its_own)
{
	uint8_t out[ROOM];

	for (unsigned int i = 0; i < PAIRS; i++) {
		memset(out, (int)i + 1, sizeof(out));
		say(i, out, i + 1);
	}
	llp_uring_receive(ring, wants, PAIRS);
	for (unsigned int i = 0; i < PAIRS; i++) {
		cr_assert(is_drained(i));
		cr_assert_eq(take(i), (ssize_t)i + 1);
		for (unsigned int k = 0; k <= i; k++)
			cr_assert_eq(in[i][k], i + 1);
		cr_assert_eq(take(i), -EAGAIN, "it is given out once");
	}
}

Test(llp_uring, again_and_again)
{
	for (unsigned int round = 0; round < 1000; round++) {
		for (unsigned int i = 0; i < PAIRS; i += 1 + round % 3)
			say(i, &round, sizeof(round));
		llp_uring_receive(ring, wants, PAIRS);
		for (unsigned int i = 0; i < PAIRS; i++) {
			bool has = i % (1 + round % 3) == 0;

			cr_assert_eq(take(i), has ? (ssize_t)sizeof(round) : -EAGAIN);
			if (has)
				cr_assert_arr_eq(in[i], &round, sizeof(round));
		}
	}
}

Test(llp_uring, ends_are_told)
{
	struct linger hard = { 1, 0 };

	say(0, "x", 1);
	shutdown(far[1], SHUT_WR);
	arrived(1);
	setsockopt(far[2], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(far[2]);
	arrived(2);
	llp_uring_receive(ring, wants, 4);
	cr_assert_eq(take(0), 1);
	cr_assert_eq(take(1), 0);
	cr_assert_eq(take(2), -ECONNRESET);
	cr_assert_eq(take(3), -EAGAIN);
	far[2] = -1;
}

Test(llp_uring, no_more_than_there_is_room_for)
{
	uint8_t out[ROOM];

	memset(out, 7, sizeof(out));
	say(0, out, sizeof(out));
	wants[0].iov.iov_len = 100;
	llp_uring_receive(ring, wants, 1);
	cr_assert_eq(take(0), 100);
	cr_assert_not(conn[0].llp.empty, "nobody knows that nothing waits");
	wants[0].iov.iov_len = ROOM;
	cr_assert_eq(take(0), ROOM - 100);
}

Test(llp_uring, sending_is_tcp_s)
{
	struct iovec iov = { "abc", 3 };
	char back[4];

	cr_assert_eq(conn[0].llp.ops->send(&conn[0].llp, &iov, 1, 0), 3);
	cr_assert_eq(read(far[0], back, sizeof(back)), 3);
	cr_assert_eq(conn[0].llp.ops->shutdown(&conn[0].llp), 0);
	cr_assert_eq(read(far[0], back, sizeof(back)), 0);
}

/* --- without a ring --- */

/* The number of the only ring of this process */
static int ring_number(void)
{
	char path[32], target[64];

	for (int fd = 0; fd < 8192; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (!strcmp(target, "anon_inode:[io_uring]"))
			return fd;
	}
	cr_assert_fail("no ring has a number");
	return -1;
}

Test(llp_uring, a_ring_that_was_closed_loses_nothing)
{
	int file[2];

	cr_assert_eq(pipe(file), 0);
	say(0, "one", 3);
	say(1, "other", 5);
	cr_assert_geq(dup2(file[0], ring_number()), 0);
	for (int i = 0; i < 3; i++)
		llp_uring_receive(ring, wants, 2);
	cr_assert_eq(take(0), 3);
	cr_assert_eq(take(1), 5);
	cr_assert_arr_eq(in[1], "other", 5);
}

Test(llp_uring, a_child_leaves_the_ring_alone)
{
	int status;
	pid_t child;

	say(0, "one", 3);
	say(1, "two", 3);
	child = fork();
	if (!child) {
		llp_uring_receive(ring, wants, 2);
		_exit(conn[0].there || conn[1].there);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	llp_uring_receive(ring, wants, 2);
	cr_assert(is_drained(0));
	cr_assert_eq(take(0), 3);
	cr_assert_eq(take(1), 3);
}

Test(llp_uring, a_filter_that_gives_no_ring_says_so)
{
	struct llp_uring *more = NULL;

	unit_forbid(SYS_io_uring_setup, ENOSYS);
	cr_assert_eq(llp_uring_create(&more), -ENOSYS);
	cr_assert_null(more);
}

Test(llp_uring, a_filter_that_comes_later_loses_nothing)
{
	say(0, "one", 3);
	say(1, "two", 3);
	unit_forbid(SYS_io_uring_enter, EPERM);
	llp_uring_receive(ring, wants, 2);
	cr_assert_eq(take(0), 3);
	cr_assert_eq(take(1), 3);
}

Test(llp_uring_missing, a_host_without_the_library_says_so)
{
	has_no_library = true;
	cr_assert_lt(llp_uring_create(&ring), 0);
	cr_assert_null(ring);
	has_no_library = false;
	cr_assert_lt(llp_uring_create(&ring), 0, "it is looked for once");
}
