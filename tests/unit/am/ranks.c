/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranks as the console has them: which worker gets which, and what each connection is polled for.
 */
#include "am/job_rank.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANY UINT32_MAX

static struct am_rank *came(const uint32_t *wanted, int n)
{
	struct am_rank *ranks = calloc((size_t)n, sizeof(*ranks));
	int i;

	for (i = 0; i < n; i++) {
		struct am_job_hello hello = { .rank = wanted[i], .pid = (uint32_t)i + 1 };

		am_rank_init(&ranks[i], -1, &hello);
	}
	return ranks;
}

/* By rank: the worker that came as the so-manieth, from 1 on. */
static void expect(const uint32_t *wanted, const uint32_t *got, int n)
{
	struct am_rank *ranks = came(wanted, n);
	int i;

	am_ranks_assign(&ranks, n);
	for (i = 0; i < n; i++)
		cr_expect_eq(ranks[i].pid, got[i], "rank %d is worker %u", i, ranks[i].pid);
	free(ranks);
}

Test(ranks, who_asks_for_none_gets_what_is_left)
{
	expect((uint32_t[]){ ANY, ANY, ANY }, (uint32_t[]){ 1, 2, 3 }, 3);
	expect((uint32_t[]){ ANY, 0, ANY }, (uint32_t[]){ 2, 1, 3 }, 3);
	expect((uint32_t[]){ 2, ANY, 1 }, (uint32_t[]){ 2, 3, 1 }, 3);
	expect((uint32_t[]){ 2, 1, 0 }, (uint32_t[]){ 3, 2, 1 }, 3);
}

Test(ranks, the_first_of_two_gets_it)
{
	expect((uint32_t[]){ 1, 1, ANY }, (uint32_t[]){ 2, 1, 3 }, 3);
	expect((uint32_t[]){ 0, 0, 0, 3 }, (uint32_t[]){ 1, 2, 3, 4 }, 4);
}

Test(ranks, there_is_no_such_rank)
{
	expect((uint32_t[]){ 3, 7, 0 }, (uint32_t[]){ 3, 1, 2 }, 3);
}

static int connection(void)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	return fds[0];
}

Test(ranks, connections)
{
	static const uint32_t any[] = { ANY };
	struct am_rank *r = came(any, 1);
	struct pollfd pfd;
	int i, fd;

	for (i = 0; i < AM_JOB_CHANNELS; i++) {
		cr_expect_not(am_rank_is_open(r, (uint32_t)i), "%d", i);
		cr_expect_lt(am_rank_poll(r, (uint32_t)i).fd, 0, "%d", i);
	}
	for (i = 0; i < AM_JOB_CHANNELS; i++) {
		fd = connection();
		cr_expect_eq(am_rank_may_join(r, (uint32_t)i), i > AM_JOB_CONTROL);
		am_rank_join(r, (uint32_t)i, fd, false);
		cr_expect(am_rank_is_open(r, (uint32_t)i));
		pfd = am_rank_poll(r, (uint32_t)i);
		cr_expect_eq(pfd.fd, fd);
		cr_expect_eq(pfd.events, POLLIN);
	}
	am_channel_close(&r->channel[AM_JOB_COLLECTIVE]);
	for (i = 0; i <= AM_JOB_CHANNELS; i++)
		cr_expect_not(am_rank_may_join(r, (uint32_t)i), "%d: a second time", i);
	am_channel_init(&r->channel[AM_JOB_COLLECTIVE], connection());
	cr_expect_eq(r->console[AM_CONSOLE_STDOUT].target, AM_CONSOLE_STDOUT);
	cr_expect_eq(r->console[AM_CONSOLE_STDERR].target, AM_CONSOLE_STDERR);
	r->channel[AM_JOB_COLLECTIVE].paused = true;
	cr_expect_lt(am_rank_poll(r, AM_JOB_COLLECTIVE).fd, 0, "no hang-up is heard");
	r->console[AM_CONSOLE_STDERR].in = -1;
	r->console[AM_CONSOLE_STDERR].due = 1;
	cr_expect(am_rank_is_open(r, AM_JOB_STDERR), "its last words are not out");
	cr_expect_lt(am_rank_poll(r, AM_JOB_STDERR).fd, 0);
	free(r);
}
