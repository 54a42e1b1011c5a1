/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll, select and their kin over descriptors of which some are ours, and the calls on epoll
 * sets.
 *
 * The kernel sleeps on a copy of the program's list, in which ours are asked for what makes
 * them move on; what they are ready for is computed. A list without any of ours goes to libc as
 * it is. select() is poll() in other clothes.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/map.h"
#include "preload/epoll.h"
#include "preload/libc.h"
#include "preload/wait.h"

/* Lists up to this length lie on the stack */
#define SMALL 64

struct entry {
	struct sock *sock; /* NULL: the kernel's */
	struct wait_watch watch;
};

struct list {
	struct pollfd *fds; /* the program's */
	unsigned int n;
	struct pollfd *raw; /* n and the bell */
	struct entry *entry;
	struct wait_bell bell;
	void *map; /* both of them, when the list is long */
	size_t map_len;
	struct pollfd small_raw[SMALL + 1];
	struct entry small_entry[SMALL];
};

static bool any_ours(const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].fd >= 0 && fdtab_is_ours(fds[i].fd))
			return true;
	return false;
}

static short levels_events(unsigned int levels)
{
	short events = 0;

	events |= levels & STREAM_READABLE ? POLLIN | POLLRDNORM : 0;
	events |= levels & STREAM_WRITABLE ? POLLOUT | POLLWRNORM : 0;
	events |= levels & STREAM_RDHUP ? POLLRDHUP : 0;
	events |= levels & STREAM_HUP ? POLLHUP : 0;
	events |= levels & STREAM_ERROR ? POLLERR : 0;
	return events;
}

static int list_init(struct list *l, struct pollfd *fds, unsigned int n)
{
	int err;

	l->fds = fds;
	l->n = n;
	l->raw = l->small_raw;
	l->entry = l->small_entry;
	l->map = NULL;
	if (n > SMALL) {
		l->map_len = n * sizeof(*l->entry) + (n + 1) * sizeof(*l->raw);
		err = base_map_create(l->map_len, &l->map);
		if (err)
			return err;
		l->entry = l->map;
		l->raw = (struct pollfd *)(void *)(l->entry + n);
	}
	wait_bell_get(&l->bell);
	for (unsigned int i = 0; i < n; i++) {
		struct sock *s = fds[i].fd >= 0 ? sock_get(fds[i].fd) : NULL;

		if (s && sock_role(s) != SOCK_STREAM_ON) {
			sock_put(s);
			s = NULL;
		}
		l->entry[i].sock = s;
		if (s)
			wait_watch(&l->entry[i].watch, &l->bell, s);
	}
	return 0;
}

static void list_uninit(struct list *l)
{
	for (unsigned int i = 0; i < l->n; i++) {
		if (!l->entry[i].sock)
			continue;
		wait_unwatch(&l->entry[i].watch, l->entry[i].sock);
		sock_put(l->entry[i].sock);
	}
	wait_bell_put(&l->bell);
	base_map_destroy(l->map, l->map_len);
}

/*
 * What entry @i is ready for and was asked for; a socket that turns out to be plain is the
 * kernel's from now on
 */
static short entry_look(struct list *l, unsigned int i)
{
	struct entry *e = &l->entry[i];
	struct stream *stream;

	if (!e->sock)
		return 0;
	if (sock_progress(e->sock) == -ENOMSG || sock_role(e->sock) != SOCK_STREAM_ON) {
		wait_unwatch(&e->watch, e->sock);
		sock_put(e->sock);
		e->sock = NULL;
		return 0;
	}
	stream = e->sock->stream;
	return levels_events(stream->ops->levels(stream, NULL)) &
	       (l->fds[i].events | POLLERR | POLLHUP);
}

static unsigned int wanted_of(short events)
{
	return (events & (POLLIN | POLLRDNORM) ? STREAM_READABLE : 0u) |
	       (events & (POLLOUT | POLLWRNORM) ? STREAM_WRITABLE : 0u);
}

/* Looks at ours and makes the kernel's list: how many of ours are ready */
static int list_look(struct list *l)
{
	int ready = 0;

	for (unsigned int i = 0; i < l->n; i++) {
		struct stream *stream;

		l->fds[i].revents = entry_look(l, i);
		ready += l->fds[i].revents != 0;
		l->raw[i] = l->fds[i];
		if (!l->entry[i].sock)
			continue;
		stream = l->entry[i].sock->stream;
		l->raw[i].fd = stream->fd;
		l->raw[i].events = stream->ops->wait_events(stream, wanted_of(l->fds[i].events));
		/*
		 * One that has ended is always ready for the kernel; asked only when it may
		 * change
		 */
		if (!l->raw[i].events)
			l->raw[i].fd = -1;
	}
	l->raw[l->n] = (struct pollfd){ .fd = l->bell.fd, .events = POLLIN };
	return ready;
}

/* After the kernel's answer: how many of its own are ready */
static int list_answer(struct list *l)
{
	int ready = 0;

	if (l->raw[l->n].revents)
		base_eventfd_drain(l->bell.fd);
	for (unsigned int i = 0; i < l->n; i++) {
		if (l->entry[i].sock)
			continue;
		l->fds[i].revents = l->raw[i].revents;
		ready += l->raw[i].revents != 0;
	}
	return ready;
}

/* The first time at which a stream of ours must be looked at again */
static uint64_t list_deadline(const struct list *l)
{
	uint64_t first = BASE_NEVER;

	for (unsigned int i = 0; i < l->n && stream_starting(); i++) {
		struct stream *s = l->entry[i].sock ? l->entry[i].sock->stream : NULL;

		if (s)
			first = base_min(first, s->ops->wait_deadline(s));
	}
	return first;
}

static int list_poll(struct list *l, uint64_t deadline, const sigset_t *mask)
{
	int ready, n;

	for (;;) {
		ready = list_look(l);
		n = wait_sleep(l->raw, l->n + 1, ready ? 0 : base_min(deadline, list_deadline(l)),
			       mask);
		if (n < 0)
			return ready ? ready : n;
		ready += list_answer(l);
		if (ready || (!n && base_deadline_passed(deadline, base_now())))
			return ready;
	}
}

static int poll_mixed(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask)
{
	struct list l;
	int ready = n <= 1u << 20 ? list_init(&l, fds, (unsigned int)n) : -EINVAL;

	if (ready)
		return ready;
	ready = list_poll(&l, deadline, mask);
	list_uninit(&l);
	return ready;
}

static uint64_t deadline_ms(int ms)
{
	if (ms < 0)
		return BASE_NEVER;
	return ms ? base_deadline(base_now(), (uint64_t)ms * BASE_NS_PER_MS) : 0;
}

static uint64_t deadline_ts(const struct timespec *ts)
{
	uint64_t ns;

	if (!ts)
		return BASE_NEVER;
	ns = (uint64_t)ts->tv_sec * BASE_NS_PER_S + (uint64_t)ts->tv_nsec;
	return ns ? base_deadline(base_now(), ns) : 0;
}

static bool ts_is_bad(const struct timespec *ts)
{
	return ts && (ts->tv_sec < 0 || ts->tv_nsec < 0 || ts->tv_nsec >= (long)BASE_NS_PER_S);
}

long call_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (!any_ours(fds, n))
		return CALL_THEIRS;
	return poll_mixed(fds, n, deadline_ms(timeout), NULL);
}

long call___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (!any_ours(fds, n))
		return CALL_THEIRS;
	return poll_mixed(fds, n, deadline_ms(timeout), NULL);
}

long call_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	if (ts_is_bad(timeout) || !any_ours(fds, n))
		return CALL_THEIRS;
	return poll_mixed(fds, n, deadline_ts(timeout), mask);
}

long call___ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		      const sigset_t *mask, size_t room)
{
	if (ts_is_bad(timeout) || !any_ours(fds, n))
		return CALL_THEIRS;
	return poll_mixed(fds, n, deadline_ts(timeout), mask);
}

/* --- select --- */

struct sets {
	fd_set *in, *out, *except;
};

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static short wanted_events(const struct sets *sets, int fd)
{
	return (short)((is_in(fd, sets->in) ? POLLIN | POLLRDHUP : 0) |
		       (is_in(fd, sets->out) ? POLLOUT : 0) |
		       (is_in(fd, sets->except) ? POLLPRI : 0));
}

static unsigned int sets_list(const struct sets *sets, int n, struct pollfd *fds, bool *ours)
{
	unsigned int k = 0;

	*ours = false;
	for (int fd = 0; fd < n; fd++) {
		short events = wanted_events(sets, fd);

		if (!events)
			continue;
		fds[k++] = (struct pollfd){ .fd = fd, .events = events };
		*ours |= fdtab_is_ours(fd);
	}
	return k;
}

/* As the kernel maps what poll() says: an error is readable and writable, a hang-up readable */
static int set_answer(fd_set *set, const struct pollfd *p, short asked, short counts)
{
	if (!set || !(p->events & asked))
		return 0;
	if (p->revents & counts)
		return 1;
	FD_CLR(p->fd, set);
	return 0;
}

static int sets_answer(const struct sets *sets, const struct pollfd *fds, unsigned int k)
{
	int bits = 0;

	for (unsigned int i = 0; i < k; i++) {
		bits += set_answer(sets->in, &fds[i], POLLIN, POLLIN | POLLHUP | POLLERR);
		bits += set_answer(sets->out, &fds[i], POLLOUT, POLLOUT | POLLERR);
		bits += set_answer(sets->except, &fds[i], POLLPRI, POLLPRI);
	}
	return bits;
}

static bool invalid_among(const struct pollfd *fds, unsigned int k)
{
	for (unsigned int i = 0; i < k; i++)
		if (fds[i].revents & POLLNVAL)
			return true;
	return false;
}

/* A number of bits, -errno, or -ENOMSG: none of ours is among them */
static long select_mixed(int n, const struct sets *sets, uint64_t deadline, const sigset_t *mask)
{
	struct pollfd fds[FD_SETSIZE];
	unsigned int k;
	bool ours;
	int ready;

	if (n < 0 || n > FD_SETSIZE)
		return -ENOMSG;
	k = sets_list(sets, n, fds, &ours);
	if (!ours)
		return -ENOMSG;
	ready = poll_mixed(fds, k, deadline, mask);
	if (ready < 0)
		return ready;
	return invalid_among(fds, k) ? -EBADF : sets_answer(sets, fds, k);
}

static void time_left(struct timeval *tv, uint64_t deadline)
{
	uint64_t left = deadline ? base_deadline_left(deadline, base_now()) : 0;

	tv->tv_sec = (time_t)(left / BASE_NS_PER_S);
	tv->tv_usec = (suseconds_t)(left % BASE_NS_PER_S / BASE_NS_PER_US);
}

long call_select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets sets = { in, out, except };
	struct timespec ts = { 0 };
	uint64_t deadline;
	long r;

	if (timeout)
		ts = (struct timespec){ timeout->tv_sec, timeout->tv_usec * 1000 };
	if (ts_is_bad(&ts))
		return CALL_THEIRS;
	deadline = deadline_ts(timeout ? &ts : NULL);
	r = select_mixed(n, &sets, deadline, NULL);
	if (r == -ENOMSG)
		return CALL_THEIRS;
	if (timeout)
		time_left(timeout, deadline);
	return r;
}

long call_pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
		  const sigset_t *mask)
{
	struct sets sets = { in, out, except };
	long r = ts_is_bad(timeout) ? -ENOMSG : select_mixed(n, &sets, deadline_ts(timeout), mask);

	return r;
}

/* --- epoll --- */

/* A listener is the kernel's affair, as everything that is no stream and will not become one */
static struct sock *member_get(int fd)
{
	struct sock *s = sock_get(fd);

	if (s && (sock_role(s) == SOCK_NEW || sock_role(s) == SOCK_STREAM_ON))
		return s;
	sock_put(s);
	return NULL;
}

/* One that is not known works, but for a duplicate made before its first member */
static long set_made(long epfd)
{
	if (epfd >= 0)
		epoll_set_create((int)epfd);
	return epfd;
}

long call_epoll_create(int size)
{
	return set_made(libc_try(libc.epoll_create(size)));
}

long call_epoll_create1(int flags)
{
	return set_made(libc_try(libc.epoll_create1(flags)));
}

long call_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct sock *s = member_get(fd);
	int err;

	if (!s)
		return libc_try(libc.epoll_ctl(epfd, op, fd, event));
	err = epoll_member_ctl(epfd, op, fd, s, event);
	sock_put(s);
	return err;
}

long call_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
		      const sigset_t *mask)
{
	struct epset *set = epoll_get(epfd);
	int n;

	if (!set)
		return CALL_THEIRS;
	n = epoll_set_wait(set, events, max, deadline_ms(timeout), mask);
	epoll_put(set);
	return n;
}

long call_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return call_epoll_pwait(epfd, events, max, timeout, NULL);
}
