/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What single calls cost:
 *
 *     bench_calls plain SECONDS
 *     bench_calls serve HOST PORT
 *     bench_calls write|read HOST PORT NUMBER
 *
 * plain: calls on descriptors that are no sockets of ours, in nanoseconds each: the median of
 * many batches. write, read: so many calls for 64 bytes each, with a server ("serve") at the other
 * end: for a counter of instructions.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/tools/tool.h"

#define MANY 1000
#define MESSAGE 64
#define BATCHES 4096

static int zero, null, pair[2], set;
static struct pollfd many[MANY];
static char buf[MESSAGE];

static void call_read(void)
{
	if (read(zero, buf, 1) != 1)
		tool_die("read");
}

static void call_write(void)
{
	if (write(null, buf, 1) != 1)
		tool_die("write");
}

static void call_recv(void)
{
	if (recv(pair[0], buf, 1, MSG_DONTWAIT) != -1)
		tool_die("recv");
}

static void call_poll(void)
{
	if (poll(many, 1, 0))
		tool_die("poll");
}

static void call_poll_many(void)
{
	if (poll(many, MANY, 0))
		tool_die("poll");
}

static void call_epoll(void)
{
	struct epoll_event e;

	if (epoll_wait(set, &e, 1, 0))
		tool_die("epoll_wait");
}

static const struct call {
	const char *name;
	void (*go)(void);
	int batch;
} calls[] = {
	{ "read", call_read, 256 },
	{ "write", call_write, 256 },
	{ "recv", call_recv, 256 },
	{ "poll", call_poll, 256 },
	{ "poll of 1,000", call_poll_many, 8 },
	{ "epoll_wait of 1,000", call_epoll, 256 },
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static void descriptors_make(void)
{
	struct epoll_event e = { .events = EPOLLIN };

	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	set = epoll_create1(EPOLL_CLOEXEC);
	if (zero < 0 || null < 0 || set < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		tool_die("descriptors");
	for (int i = 0; i < MANY; i++) {
		many[i] = (struct pollfd){ .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
		if (many[i].fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, many[i].fd, &e))
			tool_die("descriptors");
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double batch(const struct call *call)
{
	uint64_t begin = tool_now();

	for (int i = 0; i < call->batch; i++)
		call->go();
	return (double)(tool_now() - begin) / call->batch;
}

static double median(const struct call *call, double seconds)
{
	static double ns[BATCHES];
	uint64_t until = tool_now() + (uint64_t)(seconds * TOOL_NS);
	size_t n = 0;

	do
		ns[n++] = batch(call);
	while (n < BATCHES && tool_now() < until);
	qsort(ns, n, sizeof(ns[0]), compare);
	return ns[n / 2];
}

static void plain(double seconds)
{
	descriptors_make();
	for (size_t i = 0; i < CALLS; i++)
		printf("%s\"%s\": %.3f", i ? ", " : "{", calls[i].name,
		       median(&calls[i], seconds / CALLS));
	puts("}");
}

/* --- calls on a connection --- */

struct order {
	uint32_t number;
	uint32_t reads; /* by the client */
};

static void serve_one(int fd)
{
	static char piece[64 << 10];
	struct order order;

	if (!tool_read(fd, &order, sizeof(order)))
		return;
	for (uint32_t i = 0; i < order.number && order.reads; i++)
		tool_write(fd, buf, MESSAGE);
	while (read(fd, piece, sizeof(piece)) > 0)
		;
}

static void serve(const char *host, const char *port)
{
	int listener = tool_listen(host, port);

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			tool_die("accept");
		serve_one(fd);
		close(fd);
	}
}

/* What is read has arrived before, so that no call waits */
static void on_connection(const char *host, const char *port, uint32_t n, bool reads)
{
	struct order order = { n, reads };
	int fd = tool_connect(host, port);

	tool_write(fd, &order, sizeof(order));
	if (reads)
		tool_sleep_until(tool_now() + TOOL_NS / 2);
	for (uint32_t i = 0; i < n; i++)
		if (!reads)
			tool_write(fd, buf, MESSAGE);
		else if (!tool_read(fd, buf, MESSAGE))
			tool_die("the server ended");
	printf("{\"calls\": %u}\n", n);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve")) {
		serve(argv[2], argv[3]);
	} else if (argc == 3 && !strcmp(argv[1], "plain")) {
		plain(tool_number(argv[2], 0.001, 60));
	} else if (argc == 5 && (!strcmp(argv[1], "write") || !strcmp(argv[1], "read"))) {
		on_connection(argv[2], argv[3], (uint32_t)tool_number(argv[4], 1, 2000),
			      argv[1][0] == 'r');
	} else {
		fputs("usage: bench_calls plain SECONDS\n"
		      "       bench_calls serve HOST PORT\n"
		      "       bench_calls write|read HOST PORT NUMBER\n",
		      stderr);
		return 2;
	}
	return 0;
}
