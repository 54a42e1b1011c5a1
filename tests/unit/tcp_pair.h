/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_TCP_PAIR_H
#define TESTS_UNIT_TCP_PAIR_H

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* TCP over loopback; @mss and @sndbuf of the first socket, which connects; 0: the system's */
static inline void tcp_pair(int fd[2], int mss, int sndbuf)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int lfd = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(lfd, (struct sockaddr *)&a, len), 0);
	cr_assert_eq(listen(lfd, 1), 0);
	cr_assert_eq(getsockname(lfd, (struct sockaddr *)&a, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (mss)
		cr_assert_eq(setsockopt(fd[0], IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
	if (sndbuf)
		cr_assert_eq(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)), 0);
	cr_assert_eq(connect(fd[0], (struct sockaddr *)&a, len), 0);
	fd[1] = accept(lfd, NULL, NULL);
	cr_assert_geq(fd[1], 0);
	close(lfd);
}

#endif
