/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way into a job: who is let in, who is not, and who waits.
 */
#include "am/job_join.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

#define SECRET 0x1122334455667788ull

static struct am_join join;

static void setup(void)
{
	join.secret = SECRET;
	cr_assert_eq(am_join_open(&join, htonl(INADDR_LOOPBACK)), 0);
}

TestSuite(join, .init = setup, .timeout = 20);

static int visitor(const void *said, size_t n)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect(fd, (struct sockaddr *)&join.name, sizeof(join.name)), 0);
	cr_assert_eq(write(fd, said, n), (ssize_t)n);
	return fd;
}

static struct am_job_hello hello(uint32_t channel, uint64_t secret, uint32_t rank, uint32_t pid)
{
	return (struct am_job_hello){ htobe32(AM_JOB_MAGIC), htobe32(channel), htobe64(secret),
				      htobe32(rank), htobe32(pid) };
}

/* What has been said is there once the console may be told of it */
static int next(struct am_job_hello *out)
{
	struct pollfd fds[AM_JOIN_POLLED];

	poll(fds, (nfds_t)am_join_poll(&join, fds), 1000);
	return am_join_next(&join, out);
}

static bool is_open(int fd)
{
	char octet;

	return recv(fd, &octet, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

Test(join, who_knows_the_secret)
{
	struct am_job_hello said = hello(AM_JOB_STDERR, SECRET, 3, 4711), got;
	int fd = visitor(&said, sizeof(said)), in = next(&got);

	cr_assert_geq(in, 0);
	cr_assert_eq(got.channel, AM_JOB_STDERR);
	cr_assert_eq(got.rank, 3);
	cr_assert_eq(got.pid, 4711);
	cr_assert_eq(am_join_next(&join, &got), -EAGAIN);
	/* and nothing behind it is taken */
	cr_assert_eq(write(fd, "x", 1), 1);
	cr_assert_eq(read(in, &said, sizeof(said)), 1);
}

Test(join, who_does_not)
{
	struct am_job_hello said[] = { hello(AM_JOB_CONTROL, SECRET ^ 1, 0, 1),
				       hello(AM_JOB_CONTROL, 0, 0, 1),
				       hello(AM_JOB_CONTROL, SECRET, 0, 0),
				       hello(AM_JOB_CONTROL, SECRET, 0, UINT32_MAX),
				       hello(AM_JOB_CONTROL, SECRET, 0, 0x80000000u),
				       hello(AM_JOB_CONTROL, SECRET, 0, 1) };
	struct am_job_hello got;
	size_t i;

	said[5].magic ^= 1;
	for (i = 0; i < base_array_size(said); i++) {
		int fd = visitor(&said[i], sizeof(said[i]));

		cr_expect_eq(next(&got), -EAGAIN, "%zu", i);
		cr_expect_not(is_open(fd), "%zu", i);
		close(fd);
	}
	cr_assert_eq(join.num_pending, 0);
}

Test(join, a_hello_in_pieces)
{
	struct am_job_hello said = hello(AM_JOB_CONTROL, SECRET, 0, 1), got;
	int fd = visitor(&said, 10);

	cr_assert_eq(next(&got), -EAGAIN);
	cr_assert_eq(join.num_pending, 1);
	cr_assert_eq(write(fd, (char *)&said + 10, sizeof(said) - 10), sizeof(said) - 10);
	cr_assert_geq(next(&got), 0);
	cr_assert_eq(join.num_pending, 0);
}

Test(join, one_that_leaves_within_it)
{
	struct am_job_hello said = hello(AM_JOB_CONTROL, SECRET, 0, 1), got;
	int fd = visitor(&said, 10);

	cr_assert_eq(next(&got), -EAGAIN);
	close(fd);
	cr_assert_eq(next(&got), -EAGAIN);
	cr_assert_eq(join.num_pending, 0);
}

Test(join, the_oldest_of_too_many_goes)
{
	struct am_job_hello said = hello(AM_JOB_CONTROL, SECRET, 0, 1), got;
	int fds[AM_JOIN_PENDING + 1], i;

	for (i = 0; i <= AM_JOIN_PENDING; i++) {
		fds[i] = visitor(&said, 10);
		cr_assert_eq(next(&got), -EAGAIN);
	}
	cr_assert_eq(join.num_pending, AM_JOIN_PENDING);
	cr_assert_not(is_open(fds[0]));
	cr_assert(is_open(fds[1]));
	/* from the midst, and the others stay */
	cr_assert_eq(write(fds[7], (char *)&said + 10, sizeof(said) - 10), sizeof(said) - 10);
	cr_assert_geq(next(&got), 0);
	cr_assert_eq(join.num_pending, AM_JOIN_PENDING - 1);
	for (i = 1; i <= AM_JOIN_PENDING; i++)
		cr_assert(is_open(fds[i]), "%d", i);
}

/* A flood does not keep the console from its ranks. */
Test(join, many_are_turned_away_by_turns)
{
	struct am_job_hello wrong = hello(AM_JOB_CONTROL, 7, 0, 1), got;
	struct am_job_hello right = hello(AM_JOB_CONTROL, SECRET, 0, 1);
	int i;

	for (i = 0; i < AM_JOIN_PENDING; i++)
		close(visitor(&wrong, sizeof(wrong)));
	visitor(&right, sizeof(right));
	cr_assert_eq(next(&got), -EAGAIN);
	cr_assert_geq(next(&got), 0);
}

Test(join, no_descriptor_for_another_one)
{
	struct am_job_hello said = hello(AM_JOB_CONTROL, SECRET, 0, 1), got;
	int fd = visitor(&said, sizeof(said));
	struct rlimit limit = { (rlim_t)fd + 1, (rlim_t)fd + 1 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_eq(am_join_next(&join, &got), -EMFILE);
	close(fd);
}

Test(join, other_machines_only_where_workers_may_be_there)
{
	struct sockaddr_in bound;
	socklen_t len = sizeof(bound);
	struct am_join far = { .listener = -1 };

	getsockname(join.listener, (struct sockaddr *)&bound, &len);
	cr_assert_eq(bound.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_assert_eq(am_join_open(&far, htonl(0x0A000001)), 0);
	cr_assert_eq(far.name.sin_addr.s_addr, htonl(0x0A000001), "what workers are told");
	getsockname(far.listener, (struct sockaddr *)&bound, &len);
	cr_assert_eq(bound.sin_addr.s_addr, htonl(INADDR_ANY));
	cr_assert_eq(bound.sin_port, far.name.sin_port);
}
