/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the compared programs about epoll sets share.
 */
#ifndef TESTS_E2E_PROGRAMS_SAME_SETS_H
#define TESTS_E2E_PROGRAMS_SAME_SETS_H

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "tests/e2e/programs/same.h"

/* Long enough for what must come, and short for what must not */
enum { COMES = 30000, NOT = 30 };

#define CTL(ep, op, fd, mask, name) R(sets_ctl(ep, op, fd, mask, name))
#define ADD(ep, fd, mask, name) CTL(ep, EPOLL_CTL_ADD, fd, mask, name)
#define MOD(ep, fd, mask, name) CTL(ep, EPOLL_CTL_MOD, fd, mask, name)
#define DEL(ep, fd) R(epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL))
/* Says what a wait told, in the order of the members' names */
#define WAIT(ep, max, ms) sets_wait(#ep, ep, max, ms)

static inline int sets_ctl(int ep, int op, int fd, uint32_t mask, char name)
{
	struct epoll_event e = { .events = mask, .data.u64 = (unsigned char)name };

	return epoll_ctl(ep, op, fd, &e);
}

static inline void sets_events(char *to, uint32_t events)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = { { EPOLLIN, " in" },	  { EPOLLOUT, " out" },
		      { EPOLLPRI, " pri" },	  { EPOLLRDNORM, " rdnorm" },
		      { EPOLLWRNORM, " wrnorm" }, { EPOLLRDHUP, " rdhup" },
		      { EPOLLHUP, " hup" },	  { EPOLLERR, " err" } };

	*to = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (events & names[i].bit)
			strcat(to, names[i].name);
		events &= ~names[i].bit;
	}
	if (events)
		strcat(to, " ?");
}

static inline int by_name(const void *a, const void *b)
{
	uint64_t left = ((const struct epoll_event *)a)->data.u64;
	uint64_t right = ((const struct epoll_event *)b)->data.u64;

	return (left > right) - (left < right);
}

static inline void sets_told(const char *ep, struct epoll_event *e, int n)
{
	char text[80];

	if (n < 0) {
		same_say("wait %s: %s", ep, strerrorname_np(errno));
		return;
	}
	qsort(e, (size_t)n, sizeof(*e), by_name);
	same_say("wait %s: %d", ep, n);
	for (int i = 0; i < n; i++) {
		sets_events(text, e[i].events);
		same_say("  %c:%s", (int)e[i].data.u64, text);
	}
}

static inline int sets_wait(const char *text, int ep, int max, int ms)
{
	struct epoll_event e[64];
	int n = epoll_wait(ep, e, max, ms);

	sets_told(text, e, n);
	return n;
}

static inline void sets_put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		same_say("put: %s", strerror(errno));
}

/* Takes so many octets; waits for them */
static inline void sets_take(int fd, size_t len)
{
	char buf[256];

	if (recv(fd, buf, len, MSG_WAITALL) != (ssize_t)len)
		same_say("take: %s", strerror(errno));
}

/* Writes until nothing more fits; how much did */
static inline size_t sets_stuff(int fd)
{
	static char buf[65536];
	size_t sum = 0;
	ssize_t n;

	while ((n = send(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		sum += (size_t)n;
	return sum;
}

static inline void sets_drain(int fd, size_t sum)
{
	static char buf[65536];
	ssize_t n;

	for (; sum; sum -= (size_t)n) {
		n = recv(fd, buf, sum < sizeof(buf) ? sum : sizeof(buf), 0);
		if (n <= 0) {
			same_say("drain: %s", strerror(errno));
			return;
		}
	}
}

#endif
