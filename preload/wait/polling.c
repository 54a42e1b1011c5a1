/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Polling a list of descriptors of which some are ours.
 *
 * The kernel sleeps on a copy of the program's list, in which ours are asked for what makes
 * them move on, and an epoll set for what wakes its waiters; what they are ready for is computed.
 * What another thread takes in meanwhile writes to the wakeup fd at the end of the list.
 */
#include "preload/wait/polling.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/map.h"
#include "preload/guard/intr_sleep.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/table/user_iov.h"
#include "preload/wait/epoll.h"
#include "preload/wait/wait.h"

/* Lists up to this length lie on the stack */
#define SMALL 64
#define WAKEUPS 2
/* Where the kernel takes no descriptor more, the wakeup fd is replaced by a look so often */
#define NO_WAKEUP_POLL (10 * BASE_NS_PER_MS)

struct entry {
	struct sock *sock; /* with a stream */
	struct epset *set;
	struct wait_watch watch;
};

struct list {
	struct pollfd *fds; /* the program's */
	unsigned int n;
	struct pollfd *raw; /* n, the wakeup fd, and that of other processes */
	struct entry *entry;
	struct wait_wakeup wakeup;
	bool exact; /* as poll(), which looks at no more than there may be descriptors */
	bool full;  /* the kernel takes no more: no room for wakeup fds */
	bool more;  /* a look has stopped at its bound: no sleep before the next one */
	void *map;  /* both of them, when the list is long */
	size_t map_len;
	struct pollfd small_raw[SMALL + WAKEUPS];
	struct entry small_entry[SMALL];
};

/* The kernel's limit of a list's length is that of descriptors */
static bool is_too_long(unsigned int n)
{
	struct rlimit limit;

	return !syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) && n > limit.rlim_cur;
}

/* No branch for each number: a long list of the kernel's own is to cost next to nothing */
static bool may_have_ours(const struct pollfd *fds, unsigned int n)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < n; i++)
		any |= fdtab_had_bit(fds[i].fd);
	return any & 1;
}

bool polling_has_ours(const struct pollfd *fds, nfds_t n)
{
	if (!__atomic_load_n(&fdtab_entries, __ATOMIC_ACQUIRE) ||
	    user_iov_wild(fds, (unsigned int)n * sizeof(*fds)) ||
	    (n > SMALL && is_too_long((unsigned int)n)) || !may_have_ours(fds, (unsigned int)n))
		return false; /* libc gives the error, if there is one */
	for (unsigned int i = 0; i < (unsigned int)n; i++)
		if (fdtab_is_ours(fds[i].fd))
			return true;
	return false;
}

/* --- the list --- */

static void entry_init(struct entry *e, const struct pollfd *p, const struct wait_wakeup *wakeup)
{
	struct sock *s = p->fd >= 0 ? sock_get_stream(p->fd) : NULL;

	e->sock = s;
	e->set = !s && p->fd >= 0 ? epoll_get(p->fd) : NULL;
	if (s)
		wait_watch(&e->watch, wakeup, s);
	if (e->set)
		epoll_poll_begin(e->set);
}

static void sock_leave(struct entry *e)
{
	wait_unwatch(&e->watch, e->sock);
	sock_put(e->sock);
	e->sock = NULL;
}

static void entry_uninit(struct entry *e)
{
	if (e->sock)
		sock_leave(e);
	if (e->set)
		epoll_poll_end(e->set);
	epoll_put(e->set);
}

static int list_map(struct list *l)
{
	int err;

	l->raw = l->small_raw;
	l->entry = l->small_entry;
	l->map = NULL;
	if (l->n <= SMALL)
		return 0;
	l->map_len = l->n * sizeof(*l->entry) + (l->n + WAKEUPS) * sizeof(*l->raw);
	err = base_map_create(l->map_len, &l->map);
	if (err)
		return err;
	l->entry = l->map;
	l->raw = (struct pollfd *)(void *)(l->entry + l->n);
	return 0;
}

static int list_init(struct list *l, struct pollfd *fds, unsigned int n)
{
	int err;

	l->fds = fds;
	l->n = n;
	l->full = false;
	err = list_map(l);
	if (err)
		return err;
	wait_wakeup_get(&l->wakeup);
	for (unsigned int i = 0; i < n; i++)
		entry_init(&l->entry[i], &fds[i], &l->wakeup);
	return 0;
}

static void list_uninit(struct list *l)
{
	for (unsigned int i = 0; i < l->n; i++)
		entry_uninit(&l->entry[i]);
	wait_wakeup_put(&l->wakeup);
	base_map_destroy(l->map, l->map_len);
}

/* --- looking --- */

static unsigned int wanted_of(short events)
{
	return (events & (POLLIN | POLLRDNORM) ? STREAM_READABLE : 0u) |
	       (events & (POLLOUT | POLLWRNORM) ? STREAM_WRITABLE : 0u);
}

/*
 * What a stream is ready for and was asked for; @raw: what to ask the kernel. One that has ended
 * is always ready for the kernel, which is asked only about what may change
 */
static short sock_look(struct list *l, const struct entry *e, const struct pollfd *p,
		       struct pollfd *raw)
{
	struct stream *stream = e->sock->stream;
	uint32_t ready = wait_level_events(stream_levels(stream, NULL));

	l->more |= stream_more(stream);
	raw->events = stream_wait_events(stream, wanted_of(p->events));
	raw->fd = raw->events ? stream_wait_fd(stream) : -1;
	return (short)ready & (p->events | POLLERR | POLLHUP);
}

static short set_look(struct entry *e, const struct pollfd *p, struct pollfd *raw)
{
	short asked = p->events & (POLLIN | POLLRDNORM);
	int fd = -1;
	bool ready = asked && epoll_poll_look(e->set, &fd);

	raw->fd = fd;
	raw->events = POLLIN;
	return ready ? asked : 0;
}

/* Takes in what there is. A socket that turns out to be plain is the kernel's from now on */
static void entry_move(struct entry *e, struct pollfd *p, struct pollfd *raw)
{
	*raw = *p;
	if (e->set)
		p->revents = set_look(e, p, raw);
	if (!e->sock)
		return;
	if (others_have(e->sock))
		others_await(e->sock);
	if (sock_progress(e->sock) == -ENOMSG)
		sock_leave(e);
}

static short entry_look(struct list *l, struct entry *e, const struct pollfd *p, struct pollfd *raw)
{
	if (e->set) {
		l->more |= epoll_poll_more(e->set);
		return p->revents;
	}
	if (e->sock && sock_role(e->sock) == SOCK_STREAM_ON)
		return sock_look(l, e, p, raw);
	if (e->sock)
		sock_leave(e);
	raw->fd = p->fd >= 0 ? listener_proxy_wait_fd(p->fd) : -1;
	return 0;
}

/*
 * Looks at ours and makes the kernel's list: how many of ours are ready. A socket may be there more
 * than once, by several numbers or in a set as well: what is taken in for one entry is for the
 * others too, and no wakeup fd is written to for a process's only thread. So all is taken in before
 * a level is looked at; of a set that was looked at by then, the shadow says so.
 */
static int list_look(struct list *l)
{
	int ready = 0;

	others_await_all();
	l->more = false;
	for (unsigned int i = 0; i < l->n; i++)
		entry_move(&l->entry[i], &l->fds[i], &l->raw[i]);
	for (unsigned int i = 0; i < l->n; i++) {
		l->fds[i].revents = entry_look(l, &l->entry[i], &l->fds[i], &l->raw[i]);
		ready += l->fds[i].revents != 0;
	}
	l->raw[l->n] = (struct pollfd){ .fd = l->wakeup.fd, .events = POLLIN };
	l->raw[l->n + 1] = (struct pollfd){ .fd = others_fd(), .events = POLLIN };
	return ready;
}

/* After the kernel's answer: how many of its own are ready */
static int list_answer(struct list *l)
{
	int ready = 0;

	if (l->raw[l->n].revents)
		base_eventfd_drain(l->wakeup.fd);
	if (l->raw[l->n + 1].revents)
		others_heard();
	for (unsigned int i = 0; i < l->n; i++) {
		if (l->raw[i].revents && spin_self())
			spin_place_of(spin_of_polls(), l->raw[i].fd);
		if (l->entry[i].sock || l->entry[i].set)
			continue;
		l->fds[i].revents = l->raw[i].revents;
		ready += l->raw[i].revents != 0;
	}
	return ready;
}

static uint64_t entry_deadline(const struct entry *e)
{
	if (e->set)
		return epoll_poll_limit(e->set);
	return e->sock ? stream_wait_deadline(e->sock->stream) : BASE_NEVER;
}

/* The first time at which one of ours must be looked at again */
static uint64_t list_deadline(const struct list *l)
{
	uint64_t first = l->full ? base_deadline(base_now(), NO_WAKEUP_POLL) : BASE_NEVER;

	first = base_min(first, base_min(others_limit(), wait_wakeup_limit(&l->wakeup)));
	for (unsigned int i = 0; i < l->n && stream_starting(); i++)
		first = base_min(first, entry_deadline(&l->entry[i]));
	return first;
}

/* As long a list as there may be descriptors is the longest that the kernel takes */
static int list_sleep(struct list *l, uint64_t deadline, const sigset_t *mask)
{
	bool wakeups = (l->wakeup.fd >= 0 || l->raw[l->n + 1].fd >= 0) && !l->full;
	uint64_t limit = deadline ? base_min(deadline, list_deadline(l)) : 0;
	struct spin_place *place = spin_of_polls();
	int n;

	if (!l->exact)
		return intr_sleep_final(l->raw, l->n + WAKEUPS, limit, mask, place);
	n = intr_sleep_exact(l->raw, l->n + (wakeups ? WAKEUPS : 0), limit, mask, place);
	if (n != -EINVAL || !wakeups)
		return n;
	l->full = true;
	return intr_sleep_exact(l->raw, l->n, base_min(deadline, list_deadline(l)), mask, place);
}

static int list_poll(struct list *l, uint64_t deadline, const sigset_t *mask)
{
	unsigned int vain = 0;
	int ready, n, ends = 0;

	for (;;) {
		ready = list_look(l);
		/* A call that has something to tell leaves pending what its mask lets through */
		n = list_sleep(l, ready || l->more ? 0 : deadline, ready ? NULL : mask);
		if (n < 0)
			return ready && n == -EINTR ? ready : n;
		ready += list_answer(l);
		if (ready || (!n && !l->more && base_deadline_passed(deadline, base_now())))
			return ready;
		/* What has come brings nothing: that was the last look */
		if (ends)
			return ends == -EAGAIN ? 0 : ends;
		ends = wait_ends(deadline, mask, ++vain);
	}
}

/* Of the length, the kernel takes as much */
static int polled(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask, bool exact)
{
	struct list l;
	int ready = list_init(&l, fds, (unsigned int)n);

	l.exact = exact;
	if (ready)
		return ready;
	ready = list_poll(&l, deadline, mask);
	list_uninit(&l);
	return ready;
}

int polling_list(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask)
{
	return polled(fds, n, deadline, mask, true);
}

int polling_sets(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask)
{
	return polled(fds, n, deadline, mask, false);
}
