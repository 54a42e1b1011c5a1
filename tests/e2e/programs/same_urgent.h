/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs about urgent data share.
 */
#ifndef TESTS_E2E_PROGRAMS_SAME_URGENT_H
#define TESTS_E2E_PROGRAMS_SAME_URGENT_H

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "tests/e2e/programs/same.h"

static inline void put(int fd, const char *text, int flags)
{
	if (send(fd, text, strlen(text), flags) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
	same_sleep(5);
}

static inline void get(int fd, size_t n, int flags)
{
	char buf[32] = "";
	long got = recv(fd, buf, n, flags | MSG_DONTWAIT);

	if (got < 0)
		same_say("got %s", strerrorname_np(errno));
	else
		same_say("got \"%.*s\"", (int)got, buf);
}

static inline void oob(int fd, int flags)
{
	char c = '-';
	long got = recv(fd, &c, 1, flags | MSG_OOB);

	if (got < 0)
		same_say("urgent: %s", strerrorname_np(errno));
	else
		same_say("urgent: %ld '%c'", got, c);
}

/* What can be known of it: poll(), the mark, FIONREAD */
static inline void look(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI | POLLRDBAND | POLLRDHUP };
	int at = -1, there = -1;

	poll(&p, 1, 0);
	ioctl(fd, SIOCATMARK, &at);
	ioctl(fd, FIONREAD, &there);
	same_say("%s%s%s%s at mark %d %d, %d there", p.revents & POLLIN ? " in" : "",
		 p.revents & POLLPRI ? " pri" : "", p.revents & POLLRDBAND ? " band" : "",
		 p.revents & POLLRDHUP ? " rdhup" : "", at, sockatmark(fd), there);
}

static inline void in_line(int fd, int on)
{
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

static inline void send_urgent(void *arg)
{
	put(*(int *)arg, "u", MSG_OOB);
}

static inline void send_both(void *arg)
{
	put(*(int *)arg, "u", MSG_OOB);
	same_sleep(20);
	put(*(int *)arg, "xyz", 0);
}

#endif
