/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server of two connections: flooded HOW. The first is a peer's that sends messages which bring
 * nothing, the second a good client's, which is echoed. It prints its port, then how a read of the
 * first one ended, as soon as that is known: an errno and a reason code, and at the end of the
 * second one the longest that a call which was to wait 20 ms has taken, in ms.
 *
 * HOW it waits: poll, lt and et (epoll), nested (a set in a set), ppoll (which lets a signal in
 * that is blocked elsewhere), recv (with SO_RCVTIMEO), handler (a read without a time-out, which a
 * signal ends).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <warp/ddp.h>

#define TURN_MS 20

enum { FLOODED, GOOD };

static const char *how;
static int fds[2], set = -1, outer = -1;
static double longest;
static bool told, spoke[2]; /* of et: what a wait has told of */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool is(const char *name)
{
	return !strcmp(how, name);
}

static void told_once(const char *what)
{
	struct ddp_info info = { .reason = 0 };
	socklen_t len = sizeof(info);

	if (told)
		return;
	told = true;
	getsockopt(fds[FLOODED], SOL_DDP, DDP_INFO, &info, &len);
	printf("%s %u\n", what, (unsigned int)info.reason);
	fflush(stdout);
}

static void took(ssize_t n)
{
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		told_once(strerrorname_np(errno));
	else if (!n)
		told_once("end");
}

/* All that there is; false: it has ended */
static bool serve(int i)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fds[i], buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		if (i == GOOD && send(fds[i], buf, (size_t)n, MSG_NOSIGNAL) != n)
			return false;
	if (i == FLOODED)
		took(n);
	return n < 0 && errno == EAGAIN;
}

static void noted(int signal)
{
}

static int ppolled(struct pollfd *p)
{
	struct timespec time = { 1, 0 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(p, 2, &time, &none);
}

static int by_list(void)
{
	struct pollfd p[2] = { { .fd = told ? -1 : fds[FLOODED], .events = POLLIN },
			       { .fd = fds[GOOD], .events = POLLIN } };

	return is("ppoll") ? ppolled(p) : poll(p, 2, TURN_MS);
}

static int by_set(void)
{
	struct epoll_event events[4];

	int n = epoll_wait(outer >= 0 ? outer : set, events, 4, TURN_MS);

	spoke[FLOODED] = spoke[GOOD] = !is("et");
	for (int i = 0; i < n && is("et"); i++)
		spoke[events[i].data.u32] = true;
	return n;
}

static int by_read(void)
{
	char octet;
	ssize_t n = told ? (ssize_t)usleep(TURN_MS * 1000) : recv(fds[FLOODED], &octet, 1, 0);

	took(told ? 1 : n);
	return 1;
}

static int wait_once(void)
{
	if (is("recv") || is("handler"))
		return by_read();
	return set >= 0 ? by_set() : by_list();
}

/* A call that was to wait for so long */
static void timed_wait(void)
{
	double before = now_ms(), spent;

	if (wait_once() < 0 && errno != EINTR)
		told_once(strerrorname_np(errno));
	spent = now_ms() - before;
	longest = spent > longest ? spent : longest;
}

static void add(int to, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.u32 = fd == fds[GOOD] ? GOOD : FLOODED };

	if (epoll_ctl(to, EPOLL_CTL_ADD, fd, &e))
		perror("epoll_ctl");
}

static void ticks_begin(void)
{
	struct itimerval tick = { { 0, TURN_MS * 1000 }, { 0, TURN_MS * 1000 } };
	struct sigaction act = { .sa_handler = noted };
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	if (is("ppoll"))
		sigprocmask(SIG_BLOCK, &alarm, NULL);
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
}

static void waits_begin(void)
{
	struct timeval turn = { 0, TURN_MS * 1000 };

	if (is("handler") || is("ppoll"))
		ticks_begin();
	if (is("recv"))
		setsockopt(fds[FLOODED], SOL_SOCKET, SO_RCVTIMEO, &turn, sizeof(turn));
	if (!is("lt") && !is("et") && !is("nested"))
		return;
	set = epoll_create1(0);
	for (int i = 0; i < 2; i++)
		add(set, fds[i], EPOLLIN | (is("et") ? EPOLLET : 0u));
	if (!is("nested"))
		return;
	outer = epoll_create1(0);
	add(outer, set, EPOLLIN);
}

static void connections_get(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		exit(1);
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		fds[i] = accept(fd, NULL, NULL);
}

int main(int argc, char **argv)
{
	bool open = true;

	if (argc != 2)
		return 2;
	how = argv[1];
	connections_get();
	waits_begin();
	while (open) {
		timed_wait();
		if (!told && !is("recv") && !is("handler") && (set < 0 || spoke[FLOODED]))
			serve(FLOODED);
		open = (set >= 0 && !spoke[GOOD]) || serve(GOOD);
	}
	printf("longest %.0f\n", longest);
	return 0;
}
