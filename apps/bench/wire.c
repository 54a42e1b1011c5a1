/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection of plain socket calls over loopback: to the kernel's TCP, or to DDP when the
 * interposer stands in between. Nothing here knows which.
 *
 * Before it is handed out an octet goes each way, so that whatever start-up there is has ended
 * before a clock runs. Spinning is the same calls with MSG_DONTWAIT.
 */
#include "apps/bench/bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int accept_one(struct bench_end *end, int listener)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd;

	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len))
		return -errno;
	bench_end_listens(end, ntohs(addr.sin_port));
	fd = accept(listener, NULL, NULL);
	return fd < 0 ? -errno : fd;
}

static int server_open(struct bench_end *end)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = listener < 0 ? -errno : accept_one(end, listener);

	if (listener >= 0)
		close(listener);
	return fd;
}

static int client_open(const struct bench_end *end)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(end->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int err, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int in_step(const struct bench_end *end, int fd)
{
	char octet = 0;
	int got;

	if (end->role == BENCH_CLIENT) {
		got = bench_wire_send(end, fd, &octet, 1);
		return got > 0 ? bench_wire_recv(end, fd, &octet, 1) : got;
	}
	got = bench_wire_recv(end, fd, &octet, 1);
	return got > 0 ? bench_wire_send(end, fd, &octet, 1) : got;
}

static int wire_open(struct bench_end *end)
{
	int on = 1, got;
	int fd = end->role == BENCH_SERVER ? server_open(end) : client_open(end);

	if (fd < 0)
		return fd;
	got = setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ? -errno : 1;
	if (got > 0)
		got = in_step(end, fd);
	if (got > 0)
		return fd;
	close(fd);
	return got < 0 ? got : -ECONNRESET;
}

static int option_of(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	getsockopt(fd, level, name, &value, &len);
	return value;
}

static void wire_close(struct bench_end *end, int fd)
{
	snprintf(end->said, sizeof(end->said),
		 "{\"cpu\": %d, \"sndbuf\": %d, \"rcvbuf\": %d, \"nodelay\": %d, \"mss\": %d}",
		 sched_getcpu(), option_of(fd, SOL_SOCKET, SO_SNDBUF),
		 option_of(fd, SOL_SOCKET, SO_RCVBUF), option_of(fd, IPPROTO_TCP, TCP_NODELAY),
		 option_of(fd, IPPROTO_TCP, TCP_MAXSEG));
	close(fd);
}

int bench_wire_run(struct bench_end *end, int (*work)(struct bench_end *end, int fd, char *buf))
{
	char *buf = malloc(end->plan->size);
	int fd = buf ? wire_open(end) : -ENOMEM;
	int err = fd;

	if (fd >= 0) {
		memset(buf, 1, end->plan->size);
		err = work(end, fd, buf);
		wire_close(end, fd);
	}
	free(buf);
	return err;
}

long bench_wire_some(const struct bench_end *end, int fd, void *p, size_t len)
{
	long got;

	do {
		got = recv(fd, p, len, end->plan->spin ? MSG_DONTWAIT : 0);
	} while (got < 0 && (errno == EAGAIN || errno == EINTR));
	return got < 0 ? -errno : got;
}

int bench_wire_recv(const struct bench_end *end, int fd, void *p, size_t len)
{
	for (size_t at = 0; at < len;) {
		long got = bench_wire_some(end, fd, (char *)p + at, len - at);

		if (got <= 0)
			return (int)got;
		at += (size_t)got;
	}
	return 1;
}

int bench_wire_send(const struct bench_end *end, int fd, const void *p, size_t len)
{
	int flags = MSG_NOSIGNAL | (end->plan->spin ? MSG_DONTWAIT : 0);

	for (size_t at = 0; at < len;) {
		long sent = send(fd, (const char *)p + at, len - at, flags);

		if (sent >= 0)
			at += (size_t)sent;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return 1;
}
