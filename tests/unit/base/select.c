/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looking at descriptors where no more may be opened, judged by what poll() says where they may.
 */
#include "base/select.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sockutil.h"

/* The test's own frame needs poll(), so nothing is judged until @on is taken back */
static void none_more(bool on)
{
	static struct rlimit before;
	struct rlimit limit;

	if (on)
		getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	if (on)
		limit.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void fill(int fd)
{
	char some[4096] = "";

	while (send(fd, some, sizeof(some), MSG_DONTWAIT) > 0)
		;
}

/* Each in its state, by a high number and a low one */
Test(select, as_poll)
{
	int quiet[2], has[2], full[2], ended[2], closed, plain, ready, kept;
	struct timespec none = { 0 };

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, quiet), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, has), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, full), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ended), 0);
	cr_assert_eq(write(has[1], "x", 1), 1);
	fill(full[0]);
	shutdown(ended[1], SHUT_WR);
	closed = dup2(quiet[0], 700);
	cr_assert_eq(dup2(has[0], 701), 701);

	struct pollfd fds[] = {
		{ .fd = quiet[0], .events = POLLIN | POLLOUT },
		{ .fd = 701, .events = POLLIN },
		{ .fd = has[0], .events = POLLIN | POLLRDHUP },
		{ .fd = full[0], .events = POLLIN | POLLOUT },
		{ .fd = ended[0], .events = POLLIN | POLLRDHUP },
		{ .fd = -1, .events = POLLIN, .revents = 7 },
		{ .fd = has[0], .revents = 7 },
		{ .fd = has[0], .events = POLLPRI },
	};
	const unsigned int n = sizeof(fds) / sizeof(*fds);
	short wanted[sizeof(fds) / sizeof(*fds)];

	cr_assert_eq(poll(fds, n, 0), 4);
	for (unsigned int i = 0; i < n; i++) {
		wanted[i] = fds[i].revents;
		fds[i].revents = 7;
	}
	none_more(true);
	plain = poll(fds, 1, 0);
	errno = 77;
	ready = base_select(fds, n, &none, NULL);
	kept = errno;
	none_more(false);
	cr_assert_eq(plain, -1, "nothing is to be shown here");
	cr_expect_eq(kept, 77);
	cr_expect_eq(ready, 4);
	for (unsigned int i = 0; i < n; i++)
		cr_expect_eq(fds[i].revents, wanted[i], "%u: %x, not %x", i, fds[i].revents,
			     wanted[i]);
	close(closed);
	fds[0] = (struct pollfd){ .fd = closed, .events = POLLIN };
	cr_expect_eq(base_select(fds, 2, &none, NULL), 1);
	cr_expect_eq(fds[0].revents, POLLNVAL);
	fds[0].fd = 1 << 20;
	cr_expect_eq(base_select(fds, 1, &none, NULL), -EINVAL);
}

Test(select, who_polls_goes_by_it)
{
	struct pollfd p = { .events = POLLIN };
	short empty, filled;
	int fd[2], late, soon;
	uint64_t begin = base_now(), end;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	p.fd = fd[0];
	none_more(true);
	late = base_poll(&p, 1, base_deadline(begin, 20 * BASE_NS_PER_MS));
	end = base_now();
	empty = base_sock_ready(fd[0], POLLIN | POLLOUT);
	fill(fd[0]);
	filled = base_sock_ready(fd[0], POLLIN | POLLOUT);
	soon = write(fd[1], "x", 1) == 1 ? base_poll(&p, 1, BASE_NEVER) : 0;
	none_more(false);
	cr_expect_eq(late, 0);
	cr_expect_geq(end - begin, 20 * BASE_NS_PER_MS);
	cr_expect_eq(empty, POLLOUT);
	cr_expect_eq(filled, 0);
	cr_expect_eq(soon, 1);
	cr_expect_eq(p.revents, POLLIN);
}
