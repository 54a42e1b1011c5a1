/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions to a TCP socket, judged by what was done to it.
 */
#include "base/sockutil.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/tcp_pair.h"

Test(sockutil, readiness_and_octets)
{
	int fd[2];

	tcp_pair(fd, 0, 0);
	cr_expect_eq(base_sock_ready(fd[1], POLLIN | POLLOUT), POLLOUT);
	cr_expect_eq(base_sock_unread(fd[1]), 0);
	cr_assert_eq(write(fd[0], "abc", 3), 3);
	usleep(2000);
	cr_expect_eq(base_sock_ready(fd[1], POLLIN | POLLOUT), POLLIN | POLLOUT);
	cr_expect_eq(base_sock_unread(fd[1]), 3);
	cr_expect_eq(base_sock_unacked(fd[0]), 0);
	cr_expect_eq(base_sock_unread(-1), -EBADF);
	close(fd[0]);
	close(fd[1]);
}

Test(sockutil, acknowledged)
{
	uint64_t before;
	int fd[2];

	tcp_pair(fd, 0, 0);
	before = base_sock_acked(fd[0]);
	cr_assert_eq(write(fd[0], "abc", 3), 3);
	for (int i = 0; i < 1000 && base_sock_unacked(fd[0]); i++)
		usleep(1000);
	cr_expect_eq(base_sock_acked(fd[0]) - before, 3);
	cr_expect_eq(base_sock_acked(-1), 0);
	close(fd[0]);
	close(fd[1]);
}

/* The one before @urgent, and no other */
Test(sockutil, send_all)
{
	char buf[8] = "", c = '-';
	int fd[2];

	for (size_t urgent = 0; urgent <= 5; urgent++) {
		tcp_pair(fd, 0, 0);
		cr_expect_eq(base_sock_send_all(fd[0], "abcde", 5, urgent, 0), 0);
		usleep(2000);
		cr_expect_eq(recv(fd[1], &c, 1, MSG_OOB), urgent ? 1 : -1);
		if (urgent)
			cr_expect_eq(c, "abcde"[urgent - 1]);
		cr_expect_eq(recv(fd[1], buf, sizeof(buf), MSG_DONTWAIT),
			     urgent == 1 ? 4
			     : urgent	 ? (ssize_t)urgent - 1
					 : 5);
		close(fd[0]);
		close(fd[1]);
	}
}

Test(sockutil, poll_keeps_its_deadline)
{
	struct pollfd p = { .fd = -1 };
	uint64_t begin = base_now();

	cr_expect_eq(base_poll(&p, 1, 0), 0);
	cr_expect_eq(base_poll(&p, 1, base_deadline(begin, 20 * BASE_NS_PER_MS)), 0);
	cr_expect_geq(base_now() - begin, 20 * BASE_NS_PER_MS);
}

Test(sockutil, abort_resets_and_leaves_no_error)
{
	int fd[2];
	char c;

	tcp_pair(fd, 0, 0);
	errno = 77;
	base_sock_abort(fd[0]);
	cr_expect_eq(errno, 77);
	cr_expect_eq(base_sock_error(fd[0]), 0);
	usleep(2000);
	cr_expect_eq(base_sock_error(fd[1]), ECONNRESET);
	cr_expect_eq(read(fd[1], &c, 1), 0);
	cr_expect_eq(fcntl(fd[0], F_GETFD), 0, "the descriptor is gone");
	close(fd[0]);
	close(fd[1]);
}

Test(sockutil, options)
{
	struct timeval tv = { 1, 500000 };
	struct linger hard = { 1, 0 };
	int fd[2];

	tcp_pair(fd, 0, 0);
	cr_expect_eq(base_sock_number(fd[0], SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	cr_expect_eq(base_sock_number(fd[0], IPPROTO_TCP, 255), -ENOPROTOOPT);
	cr_expect_not(base_sock_is_nonblock(fd[0]));
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	cr_expect(base_sock_is_nonblock(fd[0]));
	cr_expect_eq(base_sock_timeout(fd[0], SO_RCVTIMEO), BASE_NEVER);
	setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	cr_expect_eq(base_sock_timeout(fd[0], SO_RCVTIMEO), 1500 * BASE_NS_PER_MS);
	cr_expect_eq(base_sock_timeout(fd[0], SO_SNDTIMEO), BASE_NEVER);
	cr_expect_eq(base_sock_lowat(fd[0]), 1);
	base_sock_set_lowat(fd[0], 17);
	cr_expect_eq(base_sock_lowat(fd[0]), 17);
	cr_expect_eq(base_sock_linger(fd[0]), -1);
	setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	cr_expect_eq(base_sock_linger(fd[0]), 0);
	hard.l_linger = 5;
	setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	cr_expect_eq(base_sock_linger(fd[0]), 5);
	close(fd[0]);
	close(fd[1]);
}
