/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How processes wake each other.
 */
#include "preload/sock/wakeup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/table/internal.h"

static bool readable(int ms)
{
	struct pollfd p = { .fd = wakeup_fd(), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

Test(wakeup, is_heard_once)
{
	uint64_t name = wakeup_name();

	cr_assert(name && name == wakeup_name());
	cr_assert(internal_is(wakeup_fd()));
	cr_assert(!readable(0) && !wakeup_take());
	for (int times = 1; times < 4; times++) {
		for (int i = 0; i < times; i++)
			cr_assert_eq(wakeup_send(name), 0);
		cr_assert(readable(0) && wakeup_take());
		cr_assert(!readable(0) && !wakeup_take());
	}
}

/* A queue has room for so many, and one is enough */
Test(wakeup, may_be_rung_for_ever)
{
	uint64_t name = wakeup_name();

	for (int i = 0; i < 2000; i++)
		cr_assert_eq(wakeup_send(name), 0);
	for (int i = 0; wakeup_take(); i++)
		cr_assert_lt(i, 2000);
	cr_assert(!readable(0));
}

Test(wakeup, of_nobody_cannot_be_rung)
{
	cr_assert_eq(wakeup_send(12345), -ECONNREFUSED);
}

static pid_t forked(void)
{
	pid_t pid;

	wakeup_before_fork();
	pid = fork();
	wakeup_after_fork(!pid);
	return pid;
}

static void ended(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* The child wakes its parent, and is woken by its own */
Test(wakeup, is_of_one_process, .timeout = 60)
{
	uint64_t name = wakeup_name(), theirs;
	int to[2];
	pid_t pid;

	cr_assert_eq(pipe(to), 0);
	pid = forked();
	if (!pid) {
		bool good = wakeup_fd() < 0 && wakeup_name() != name;

		theirs = wakeup_name();
		good &= write(to[1], &theirs, sizeof(theirs)) == sizeof(theirs);
		good &= readable(30000) && wakeup_take() && !wakeup_send(name);
		_exit(!good);
	}
	cr_assert_eq(read(to[0], &theirs, sizeof(theirs)), sizeof(theirs));
	cr_assert_neq(theirs, name);
	cr_assert_eq(wakeup_send(theirs), 0);
	cr_assert(readable(30000) && wakeup_take());
	ended(pid);
	cr_assert_eq(wakeup_send(theirs), -ECONNREFUSED);
}
