/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A wait costs what is ready, not what is there: among a thousand idle members a wait, and a change
 * of a member, take about as long as among eight. As calls.c, for the kernel's TCP and for
 * Warpsock. With the argument NUMBER it only makes so many members and waits: for callgrind.
 */
#include "tests/e2e/programs/calls.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum { FEW = 8, MANY = 1000, ROUNDS = 7, WAITS = 2000 };

struct crowd {
	int ep, n, active[2];
	int fd[MANY][2];
};

static struct crowd few, many;

static bool crowd_open(struct crowd *c, int n)
{
	struct epoll_event e = { .events = EPOLLIN };

	c->ep = epoll_create1(0);
	for (c->n = 0; c->n < n; c->n++) {
		need(pair(c->fd[c->n]));
		e.data.fd = c->fd[c->n][0];
		need(!epoll_ctl(c->ep, EPOLL_CTL_ADD, e.data.fd, &e));
	}
	need(pair(c->active));
	e.data.fd = c->active[0];
	need(!epoll_ctl(c->ep, EPOLL_CTL_ADD, e.data.fd, &e));
	need(epoll_wait(c->ep, &e, 1, 0) == 0);
	return true;
}

/* Some waits of which each second one has something to tell */
static bool waits(struct crowd *c, int n)
{
	struct epoll_event e[4];
	char octet;

	for (int i = 0; i < n; i++) {
		need(epoll_wait(c->ep, e, 4, 0) == 0);
		need(write(c->active[1], "x", 1) == 1);
		need(epoll_wait(c->ep, e, 4, 5000) == 1 && e[0].data.fd == c->active[0]);
		need(read(c->active[0], &octet, 1) == 1);
	}
	return true;
}

static bool changes(struct crowd *c, int n)
{
	struct epoll_event e = { .events = EPOLLIN };

	for (int i = 0; i < n; i++) {
		e.data.fd = c->fd[i % c->n][0];
		need(!epoll_ctl(c->ep, EPOLL_CTL_MOD, e.data.fd, &e));
		need(!epoll_ctl(c->ep, EPOLL_CTL_DEL, e.data.fd, NULL));
		need(!epoll_ctl(c->ep, EPOLL_CTL_ADD, e.data.fd, &e));
		need(epoll_wait(c->ep, &e, 1, 0) == 0);
	}
	return true;
}

/* The shortest of some rounds, in microseconds each; less than nothing: it went wrong */
static double cost(struct crowd *c, bool (*run)(struct crowd *, int))
{
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double begin = now(), took;

		if (!run(c, WAITS / 10))
			return -1;
		took = (now() - begin) / (WAITS / 10) * 1e6;
		best = took < best ? took : best;
	}
	return best;
}

static bool alike(bool (*run)(struct crowd *, int))
{
	double a = cost(&few, run), b = cost(&many, run);

	printf("# %.1f us among %d, %.1f us among %d\n", a, FEW, b, MANY);
	need(a > 0 && b > 0 && b < 4 * a);
	return true;
}

static bool made(void)
{
	struct rlimit limit;

	need(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	need(!setrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur >= 4 * MANY);
	return crowd_open(&few, FEW) && crowd_open(&many, MANY);
}

static bool waiting(void)
{
	return alike(waits);
}

static bool changing(void)
{
	return alike(changes);
}

/* A connection of the process is under way meanwhile, of which somebody must keep the time */
static bool waiting_meanwhile(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	bool good;

	need(connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)) == 0 || errno == EINPROGRESS);
	good = alike(waits);
	close(fd);
	return good;
}

int main(int argc, char **argv)
{
	static const struct call_case cases[] = {
		{ "a thousand connections", made },
		{ "waiting costs the same", waiting },
		{ "members change for the same", changing },
		{ "and while a connection begins", waiting_meanwhile },
	};

	if (argc == 1)
		return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
	setup();
	return crowd_open(&many, atoi(argv[1])) && waits(&many, WAITS) ? 0 : 1;
}
