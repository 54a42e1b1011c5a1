/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two processes that send each other a few octets in turns, and wait for them by one call.
 *
 *	rounds HOW COUNT [-s CPU] [-c CPU] [-f] [-l US]
 *
 * HOW is recv, poll, select, epoll; accept: as many connections, one after another; or both: two
 * connections in turns, where the server alone waits, on the second one for 2 ms. -s and -c
 * confine server and client to a processor, -f gives both SCHED_FIFO, -l lets the client wait
 * between two rounds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how;
static int count, cpu[2] = { -1, -1 }, lull;
static bool fifo, both;

static void need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void settle(int where)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	if (where >= 0)
		CPU_SET(where, &set);
	need(where < 0 || !sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
	need(!fifo || !sched_setscheduler(0, SCHED_FIFO, &param), "sched_setscheduler");
}

static void by_poll(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	need(poll(&p, 1, -1) == 1, "poll");
}

static void by_select(int fd)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	need(select(fd + 1, &set, NULL, NULL, NULL) == 1, "select");
}

static void by_epoll(int fd)
{
	static int epfd = -1;
	struct epoll_event event = { .events = EPOLLIN };

	if (epfd < 0) {
		epfd = epoll_create1(0);
		need(!epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
	}
	need(epoll_wait(epfd, &event, 1, -1) == 1, "epoll_wait");
}

static void await(int fd)
{
	if (!strcmp(how, "poll"))
		by_poll(fd);
	else if (!strcmp(how, "select"))
		by_select(fd);
	else if (!strcmp(how, "epoll"))
		by_epoll(fd);
}

static void take(int fd)
{
	char text[8];

	await(fd);
	need(recv(fd, text, sizeof(text), MSG_WAITALL) == sizeof(text), "recv");
}

static void give(int fd)
{
	need(send(fd, "octets..", 8, 0) == 8, "send");
}

static int reach(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	need(fd >= 0 && !connect(fd, (const struct sockaddr *)to, sizeof(*to)), "connect");
	return fd;
}

/* Without a wait, so that all waits are the server's */
static void look_for(int fd)
{
	char text[8];
	ssize_t n;

	do {
		n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	need(n == sizeof(text), "recv");
}

static int client_of_both(const struct sockaddr_in *to)
{
	int soon = reach(to), late = reach(to);

	for (int i = 0; i < count; i++) {
		give(soon);
		look_for(soon);
		usleep(2000);
		give(late);
		look_for(late);
	}
	return 0;
}

static void serve_both(int listener)
{
	int soon = accept(listener, NULL, NULL), late = accept(listener, NULL, NULL);

	need(soon >= 0 && late >= 0, "accept");
	for (int i = 0; i < count; i++) {
		take(soon);
		give(soon);
		take(late);
		give(late);
	}
}

static int client(const struct sockaddr_in *to)
{
	bool many = !strcmp(how, "accept");
	int fd = many ? -1 : reach(to);

	for (int i = 0; i < count; i++) {
		if (lull)
			usleep((useconds_t)lull);
		if (many)
			fd = reach(to);
		give(fd);
		take(fd);
		if (many)
			close(fd);
	}
	return 0;
}

static void serve(int listener)
{
	bool many = !strcmp(how, "accept");
	int fd = -1;

	for (int i = 0; i < count; i++) {
		if (many || fd < 0)
			fd = accept(listener, NULL, NULL);
		need(fd >= 0, "accept");
		take(fd);
		give(fd);
		if (many)
			close(fd);
	}
}

static void arguments(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:c:fl:")) != -1) {
		if (c == 's' || c == 'c')
			cpu[c == 'c'] = atoi(optarg);
		else if (c == 'l')
			lull = atoi(optarg);
		else
			fifo = true;
	}
	need(argc - optind == 2, "arguments");
	how = argv[optind];
	count = atoi(argv[optind + 1]);
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), status;
	socklen_t len = sizeof(here);

	arguments(argc, argv);
	need(!bind(listener, (struct sockaddr *)&here, len) && !listen(listener, 8) &&
		     !getsockname(listener, (struct sockaddr *)&here, &len),
	     "listen");
	both = !strcmp(how, "both");
	if (!fork()) {
		settle(cpu[1]);
		return both ? client_of_both(&here) : client(&here);
	}
	settle(cpu[0]);
	if (both)
		serve_both(listener);
	else
		serve(listener);
	need(wait(&status) > 0 && !status, "the client");
	return 0;
}
