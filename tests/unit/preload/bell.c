/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How processes wake each other.
 */
#include "preload/sock/bell.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/table/internal.h"

static bool rings(int ms)
{
	struct pollfd p = { .fd = bell_fd(), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

Test(bell, is_heard_once)
{
	uint64_t name = bell_name();

	cr_assert(name && name == bell_name());
	cr_assert(internal_is(bell_fd()));
	cr_assert(!rings(0) && !bell_heard());
	for (int times = 1; times < 4; times++) {
		for (int i = 0; i < times; i++)
			cr_assert_eq(bell_ring(name), 0);
		cr_assert(rings(0) && bell_heard());
		cr_assert(!rings(0) && !bell_heard());
	}
}

/* A queue has room for so many, and one is enough */
Test(bell, may_be_rung_for_ever)
{
	uint64_t name = bell_name();

	for (int i = 0; i < 2000; i++)
		cr_assert_eq(bell_ring(name), 0);
	for (int i = 0; bell_heard(); i++)
		cr_assert_lt(i, 2000);
	cr_assert(!rings(0));
}

Test(bell, of_nobody_cannot_be_rung)
{
	cr_assert_eq(bell_ring(12345), -ECONNREFUSED);
}

static pid_t forked(void)
{
	pid_t pid;

	bell_before_fork();
	pid = fork();
	bell_after_fork(!pid);
	return pid;
}

static void ended(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* The child rings its parent's, and hears its own */
Test(bell, is_of_one_process, .timeout = 60)
{
	uint64_t name = bell_name(), theirs;
	int to[2];
	pid_t pid;

	cr_assert_eq(pipe(to), 0);
	pid = forked();
	if (!pid) {
		bool good = bell_fd() < 0 && bell_name() != name;

		theirs = bell_name();
		good &= write(to[1], &theirs, sizeof(theirs)) == sizeof(theirs);
		good &= rings(30000) && bell_heard() && !bell_ring(name);
		_exit(!good);
	}
	cr_assert_eq(read(to[0], &theirs, sizeof(theirs)), sizeof(theirs));
	cr_assert_neq(theirs, name);
	cr_assert_eq(bell_ring(theirs), 0);
	cr_assert(rings(30000) && bell_heard());
	ended(pid);
	cr_assert_eq(bell_ring(theirs), -ECONNREFUSED);
}
