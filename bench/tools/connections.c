/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections, many of them:
 *
 *     bench_connections serve HOST PORT
 *     bench_connections accept HOST PORT [HELD]
 *     bench_connections blocking|epoll HOST PORT SECONDS COUNT [HELD]
 *     bench_connections hold HOST PORT NUMBER
 *
 * blocking: connect() and close(), one after another, and the server ("accept") accepts and waits
 * for the end likewise. epoll: 16 under way at a time, with non-blocking sockets, and a server
 * ("serve") of that kind, too. Both end after that time or that many. The first HELD connections
 * stay open meanwhile. hold: opens that many, sends and receives 1 KiB by each, says so, and does
 * nothing until its input ends. "serve" sends back what it gets.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/tools/tool.h"

#define UNDER_WAY 16
#define EVENTS 64
#define MESSAGE 1024
#define NUMBER_MAX 100000

/* Descriptors for all of them */
static void limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		tool_die("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		tool_die("setrlimit");
}

static int epoll_make(void)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0)
		tool_die("epoll_create1");
	return set;
}

static void epoll_put(int set, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &e))
		tool_die("epoll_ctl");
}

/* --- the servers --- */

static void echo(int fd)
{
	char buf[4 * MESSAGE];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n > 0)
		tool_write(fd, buf, (size_t)n);
	else if (!n || errno != EAGAIN)
		close(fd);
}

static void accept_all(int set, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		epoll_put(set, fd, EPOLLIN);
	if (errno != EAGAIN)
		tool_die("accept4");
}

static void serve(const char *host, const char *port)
{
	int listener = tool_listen(host, port), set = epoll_make();
	struct epoll_event events[EVENTS];

	if (fcntl(listener, F_SETFL, O_NONBLOCK))
		tool_die("fcntl");
	epoll_put(set, listener, EPOLLIN);
	for (;;) {
		int n = epoll_wait(set, events, EVENTS, -1);

		for (int i = 0; i < n; i++)
			if (events[i].data.fd == listener)
				accept_all(set, listener);
			else
				echo(events[i].data.fd);
	}
}

static void accept_in_turn(const char *host, const char *port, unsigned int held)
{
	int listener = tool_listen(host, port);
	char byte;

	for (unsigned int i = 0;; i++) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			tool_die("accept");
		if (i < held)
			continue;
		if (read(fd, &byte, 1) < 0)
			tool_die("read");
		close(fd);
	}
}

/* --- the clients --- */

struct plan {
	const char *host, *port;
	uint64_t until;
	unsigned int count, done;
};

static void blocking(struct plan *plan)
{
	while (plan->done < plan->count && tool_now() < plan->until) {
		close(tool_connect(plan->host, plan->port));
		plan->done++;
	}
}

static void begin_one(const struct plan *plan, int set)
{
	struct sockaddr_in a = tool_address(plan->host, plan->port);
	int fd = tool_socket(SOCK_NONBLOCK);

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno != EINPROGRESS)
		tool_die("connect");
	epoll_put(set, fd, EPOLLOUT);
}

static void end_one(int fd)
{
	socklen_t size = sizeof(errno);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errno, &size) || errno)
		tool_die("a connection");
	close(fd);
}

static void under_way(struct plan *plan)
{
	struct epoll_event events[UNDER_WAY];
	unsigned int begun = UNDER_WAY;
	int set = epoll_make();

	for (int i = 0; i < UNDER_WAY; i++)
		begin_one(plan, set);
	while (plan->done < begun) {
		int n = epoll_wait(set, events, UNDER_WAY, -1);

		for (int i = 0; i < n; i++, plan->done++) {
			end_one(events[i].data.fd);
			if (begun >= plan->count || tool_now() >= plan->until)
				continue;
			begin_one(plan, set);
			begun++;
		}
	}
	close(set);
}

static void measure(struct plan *plan, void (*go)(struct plan *plan), double seconds,
		    unsigned int held)
{
	uint64_t begin, cpu;

	for (unsigned int i = 0; i < held; i++)
		tool_connect(plan->host, plan->port);
	begin = tool_now();
	cpu = tool_cpu();
	plan->until = begin + (uint64_t)(seconds * TOOL_NS);
	go(plan);
	seconds = (double)(tool_now() - begin) / TOOL_NS;
	printf("{\"rate\": %.2f, \"count\": %u, \"seconds\": %.6f, \"held\": %u, "
	       "\"cpu_client\": %.6f}\n",
	       plan->done / seconds, plan->done, seconds, held,
	       (double)(tool_cpu() - cpu) / TOOL_NS);
}

static void hold(const char *host, const char *port, unsigned int number)
{
	char buf[MESSAGE] = "";

	for (unsigned int i = 0; i < number; i++) {
		int fd = tool_connect(host, port);

		tool_write(fd, buf, sizeof(buf));
		if (!tool_read(fd, buf, sizeof(buf)))
			tool_die("the server ended connection %u", i);
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static unsigned int number(int argc, char **argv, int at)
{
	return at < argc ? (unsigned int)tool_number(argv[at], 0, NUMBER_MAX) : 0;
}

static int usage(void)
{
	fputs("usage: bench_connections serve HOST PORT\n"
	      "       bench_connections accept HOST PORT [HELD]\n"
	      "       bench_connections blocking|epoll HOST PORT SECONDS COUNT [HELD]\n"
	      "       bench_connections hold HOST PORT NUMBER\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct plan plan;

	if (argc < 4)
		return usage();
	plan = (struct plan){ .host = argv[2], .port = argv[3], .count = number(argc, argv, 5) };
	limit_raise();
	if (!strcmp(argv[1], "serve"))
		serve(argv[2], argv[3]);
	else if (!strcmp(argv[1], "accept"))
		accept_in_turn(argv[2], argv[3], number(argc, argv, 4));
	else if (!strcmp(argv[1], "hold"))
		hold(argv[2], argv[3], number(argc, argv, 4));
	else if (argc >= 6 && !strcmp(argv[1], "blocking"))
		measure(&plan, blocking, tool_number(argv[4], 0, 600), number(argc, argv, 6));
	else if (argc >= 6 && !strcmp(argv[1], "epoll"))
		measure(&plan, under_way, tool_number(argv[4], 0, 600), number(argc, argv, 6));
	else
		return usage();
	return 0;
}
