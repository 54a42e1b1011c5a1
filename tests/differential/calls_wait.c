/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The operations that wait: poll and select over slots of one process, and epoll sets. One that
 * waits for ever waits for an eventfd too, by which the player ends it at last.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "op.h"

#define EVERYTHING (POLLIN | POLLOUT | POLLRDHUP | POLLPRI | POLLRDNORM | POLLWRNORM)
#define RELEASE_DATA 99u

/* --- poll --- */

static short poll_events(uint32_t bits)
{
	static const short events[] = {
		POLLIN, POLLOUT, POLLIN | POLLOUT, POLLRDHUP, POLLIN | POLLRDHUP,
		0,	POLLPRI, EVERYTHING
	};

	return events[bits & 7];
}

/* The slots of op.b that are open here, at least the operation's own */
static nfds_t list_make(struct call *c, struct pollfd *fds, unsigned int *slots)
{
	unsigned int proc = op_proc(c->op->slot);
	uint32_t bits = c->op->b, events = c->op->c;
	nfds_t n = 0;

	for (unsigned int i = 0; i < SLOTS; i++, bits >>= 1, events >>= 3) {
		if (op_proc(i) != proc || c->w->fd[i] < 0 || !(bits & 1 || i == c->op->slot))
			continue;
		slots[n] = i;
		fds[n++] = (struct pollfd){ .fd = c->w->fd[i], .events = poll_events(events) };
	}
	if (c->op->timeout < 0)
		fds[n++] = (struct pollfd){ .fd = c->w->release[proc], .events = POLLIN };
	return n;
}

static long list_values(struct call *c, const struct pollfd *fds, nfds_t n, long r)
{
	for (nfds_t i = 0; i < n; i++)
		call_value(c, fds[i].revents);
	return r;
}

static struct timespec *timespec_of(const struct op *op, struct timespec *ts)
{
	*ts = (struct timespec){ .tv_nsec = op->timeout * 1000000l };
	return op->timeout < 0 ? NULL : ts;
}

long call_poll(struct call *c)
{
	struct pollfd fds[SLOTS + 1];
	unsigned int slots[SLOTS];
	nfds_t n = list_make(c, fds, slots);

	return list_values(c, fds, n, poll(fds, n, c->op->timeout));
}

long call_ppoll(struct call *c)
{
	struct pollfd fds[SLOTS + 1];
	unsigned int slots[SLOTS];
	struct timespec ts;
	sigset_t mask;
	nfds_t n = list_make(c, fds, slots);

	sigemptyset(&mask);
	return list_values(c, fds, n, ppoll(fds, n, timespec_of(c->op, &ts), &mask));
}

/* --- select --- */

struct sets {
	fd_set set[3];
	int max;
};

static void sets_make(struct call *c, const struct pollfd *fds, nfds_t n, struct sets *s)
{
	uint32_t bits = c->op->c;

	memset(s, 0, sizeof(*s));
	for (nfds_t i = 0; i < n; i++, bits >>= 3) {
		for (unsigned int k = 0; k < 3; k++)
			if (bits & 1u << k)
				FD_SET(fds[i].fd, &s->set[k]);
		if (fds[i].fd == c->w->release[op_proc(c->op->slot)])
			FD_SET(fds[i].fd, &s->set[0]);
		s->max = fds[i].fd > s->max ? fds[i].fd : s->max;
	}
}

static long sets_values(struct call *c, const struct pollfd *fds, nfds_t n, const struct sets *s,
			long r)
{
	for (nfds_t i = 0; i < n && r >= 0; i++)
		for (unsigned int k = 0; k < 3; k++)
			call_value(c, FD_ISSET(fds[i].fd, &s->set[k]) != 0);
	return r;
}

long call_select(struct call *c)
{
	struct pollfd fds[SLOTS + 1];
	unsigned int slots[SLOTS];
	struct timeval tv = { .tv_usec = c->op->timeout * 1000 };
	nfds_t n = list_make(c, fds, slots);
	struct sets s;
	long r;

	sets_make(c, fds, n, &s);
	r = select(s.max + 1, &s.set[0], &s.set[1], c->op->c & 1u << 30 ? &s.set[2] : NULL,
		   c->op->timeout < 0 ? NULL : &tv);
	return sets_values(c, fds, n, &s, r);
}

long call_pselect(struct call *c)
{
	struct pollfd fds[SLOTS + 1];
	unsigned int slots[SLOTS];
	nfds_t n = list_make(c, fds, slots);
	struct timespec ts;
	struct sets s;
	sigset_t mask;
	long r;

	sigemptyset(&mask);
	sets_make(c, fds, n, &s);
	r = pselect(s.max + 1, &s.set[0], &s.set[1], &s.set[2], timespec_of(c->op, &ts), &mask);
	return sets_values(c, fds, n, &s, r);
}

/* --- epoll --- */

static int set_fd(struct call *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = RELEASE_DATA };
	int *set = &c->w->set[c->op->set];

	if (*set < 0) {
		*set = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(*set, EPOLL_CTL_ADD, c->w->release[op_proc(c->op->set)], &event);
	}
	return *set;
}

static uint32_t epoll_mask(uint32_t bits)
{
	static const uint32_t what[] = { EPOLLIN,
					 EPOLLOUT,
					 EPOLLIN | EPOLLOUT,
					 EPOLLRDHUP,
					 EPOLLIN | EPOLLRDHUP,
					 0,
					 EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI,
					 EPOLLIN | EPOLLRDNORM | EPOLLWRNORM };
	static const uint32_t how[] = {
		0, 0, EPOLLET, EPOLLET, EPOLLONESHOT, EPOLLONESHOT | EPOLLET, 0, EPOLLET
	};

	return what[bits & 7] | how[bits >> 3 & 7];
}

long call_epoll_ctl(struct call *c)
{
	static const int ops[] = { EPOLL_CTL_ADD,
				   EPOLL_CTL_ADD,
				   EPOLL_CTL_ADD,
				   EPOLL_CTL_MOD,
				   EPOLL_CTL_MOD,
				   EPOLL_CTL_DEL,
				   77 };
	struct epoll_event event = { .events = epoll_mask(c->op->b), .data.u32 = c->op->slot };
	int op = ops[c->op->c % 7];

	call_value(c, op);
	return epoll_ctl(set_fd(c), op, c->fd, &event);
}

/* By number of the slot, for sets have no order that one could rely on */
long call_epoll_wait(struct call *c)
{
	struct epoll_event events[SLOTS + 2];
	int max = c->op->b % 16 == 15 ? 0 : SLOTS + 2;
	uint32_t told[SLOTS] = { 0 };
	bool released = false;
	int n = c->op->c & 1 ? epoll_pwait(set_fd(c), events, max, c->op->timeout, NULL)
			     : epoll_wait(set_fd(c), events, max, c->op->timeout);

	for (int i = 0; i < n; i++) {
		released |= events[i].data.u32 == RELEASE_DATA;
		if (events[i].data.u32 < SLOTS)
			told[events[i].data.u32] |= events[i].events | 1u << 20;
	}
	for (unsigned int i = 0; i < SLOTS; i++)
		call_value(c, told[i]);
	call_value(c, released);
	return n;
}

/* --- the player's --- */

long call_set_ready(struct call *c)
{
	struct pollfd p = { .fd = set_fd(c), .events = POLLIN };

	return poll(&p, 1, 0);
}

long call_release(struct call *c)
{
	uint64_t n = 1;
	unsigned int proc = op_proc(c->op->slot);
	int fd = c->w->release[proc];

	if (!c->op->a)
		return write(fd, &n, sizeof(n));
	/* The program is over */
	for (unsigned int i = 0; i < SLOTS; i++)
		if (op_proc(i) == proc && c->w->fd[i] >= 0)
			close(c->w->fd[i]);
	for (unsigned int i = 0; i < SETS; i++)
		if (op_proc(i) == proc && c->w->set[i] >= 0)
			close(c->w->set[i]);
	return read(fd, &n, sizeof(n)) < 0 ? 0 : 1;
}

long call_observe(struct call *c)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct pollfd p = { .fd = c->w->fd[i], .events = EVERYTHING };
		int unread = -1;

		if (op_proc(i) != op_proc(c->op->slot) || p.fd < 0) {
			p.revents = 0;
		} else {
			poll(&p, 1, 0);
			ioctl(p.fd, FIONREAD, &unread);
		}
		call_value(c, p.fd >= 0);
		call_value(c, p.revents);
		call_value(c, unread);
		call_value(c, p.fd >= 0 ? fcntl(p.fd, F_GETFL) : 0);
	}
	return 0;
}
