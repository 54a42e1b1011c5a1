/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping.
 *
 * On one socket the order is: be watched, look, sleep. What another thread takes in after the
 * look rings the bell. Bells are few and kept for the next sleeper.
 *
 * The kernel takes the time of a sleep from the thread's record when it begins. A signal's note,
 * and pthread_cancel(), set that to nothing: come they before the kernel has read it, there is
 * no sleep; come they later, they interrupt it. So a nap needs no mask of its own and cannot
 * miss what it is to wake for.
 */
#include "preload/wait/wait.h"

#include <errno.h>
#include <limits.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/select.h"
#include "base/sockutil.h"
#include "preload/calls/fork.h"
#include "preload/guard/edge.h"
#include "preload/sock/others.h"
#include "preload/table/internal.h"

#define BELLS 16
/* Where the kernel takes no descriptor more, a look so often */
#define LOOK_AGAIN (10 * BASE_NS_PER_MS)

/* --- naps --- */

/* In parts that fit a time_t of any width */
static struct timespec nap_length(uint64_t deadline)
{
	uint64_t left = deadline ? base_deadline_left(deadline, base_now()) : 0;

	if (left == BASE_NEVER)
		return (struct timespec){ .tv_sec = INT_MAX };
	return (struct timespec){ (time_t)(left / BASE_NS_PER_S), (long)(left % BASE_NS_PER_S) };
}

/*
 * False: something waits for the call to come back. Pairs with note() in preload/guard/signals.c
 * and nap_end() in preload/guard/edge.c
 */
static bool nap_begin(struct edge *e, struct timespec left)
{
	__atomic_store_n(&e->nap.tv_sec, left.tv_sec, __ATOMIC_RELAXED);
	__atomic_store_n(&e->nap.tv_nsec, left.tv_nsec, __ATOMIC_RELAXED);
	__atomic_store_n(&e->napping, true, __ATOMIC_SEQ_CST);
	return !edge_wanted(e);
}

struct nap {
	struct pollfd *fds; /* or of an epoll set: */
	unsigned int n;
	int epfd;
	struct epoll_event *events;
	int max;
	const sigset_t *mask;
	bool exact; /* the kernel's bound of a list counts */
	bool final; /* the call is never restarted */
};

static long nap_kernel(const struct nap *nap, struct timespec *left)
{
	long n;

	if (nap->fds) {
		n = base_ppoll(nap->fds, nap->n, left, nap->mask);
		if (n != -EINVAL || nap->exact)
			return n;
		return base_select(nap->fds, nap->n, left, nap->mask);
	}
	n = syscall(SYS_epoll_pwait2, nap->epfd, nap->events, nap->max, left, nap->mask, _NSIG / 8);
	return n < 0 ? -errno : n;
}

/*
 * Interrupted, and nothing noted: by a handler that we do not know of, one of libc's own, or, of an
 * epoll set, by a stop and SIGCONT. Linux ends the calls that it never restarts. A thread that was
 * cancelled, and does not want to be, was woken by that
 */
static bool counts(const struct edge *e, const struct nap *nap)
{
	return nap->final && !__atomic_load_n(&e->canceled, __ATOMIC_SEQ_CST);
}

/* -EAGAIN: an interruption that was not meant for the call, once more */
static long nap_once(struct edge *e, const struct nap *nap, uint64_t deadline)
{
	struct timespec left = nap_length(deadline);
	long n = -EINTR;

	if (!e)
		return nap_kernel(nap, &left);
	if (nap_begin(e, left))
		n = nap_kernel(nap, &e->nap);
	__atomic_store_n(&e->napping, false, __ATOMIC_RELEASE);
	if (n > 0 || (n < 0 && n != -EINTR))
		return n;
	if (!n)
		return edge_wanted(e) ? -EINTR : 0;
	return edge_wanted(e) || counts(e, nap) ? -EINTR : -EAGAIN;
}

/* The program's own mask comes back with the end of a nap that has another one */
static void mask_keep(struct edge *e)
{
	uint64_t mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
	e->kept |= mask & ~e->blocked;
}

/* WARPSOCK_SPIN: looks for so long, or until there is something, or @deadline */
static void spin(const struct edge *e, const struct nap *nap, uint64_t deadline)
{
	struct pollfd set = { .fd = nap->epfd, .events = POLLIN };
	uint64_t now, end;

	if (!sock_config.spin || !deadline)
		return;
	now = base_now();
	end = base_min(deadline, base_deadline(now, sock_config.spin));
	while (!(e && edge_wanted(e)) && !base_deadline_passed(end, base_now()) &&
	       !base_poll(nap->fds ? nap->fds : &set, nap->fds ? nap->n : 1, 0))
		;
}

static int nap_whole(const struct nap *nap, uint64_t deadline)
{
	struct edge *e = edge_self;
	int saved = errno;
	long n;

	spin(e, nap, deadline);
	if (e && nap->mask)
		mask_keep(e);
	do {
		n = nap_once(e, nap, deadline);
		/* A slice (base_ppoll()) is no time-out */
	} while (n == -EAGAIN || (!n && !base_deadline_passed(deadline, base_now())));
	/* Else it counts until the handlers have run */
	if (e && nap->mask && !e->noted)
		e->kept = 0;
	errno = saved;
	return (int)n;
}

int wait_sleep(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask)
{
	struct nap nap = { .fds = fds, .n = n, .mask = mask };

	return nap_whole(&nap, deadline);
}

int wait_sleep_final(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask)
{
	struct nap nap = { .fds = fds, .n = n, .mask = mask, .final = true };

	return nap_whole(&nap, deadline);
}

int wait_sleep_exact(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask)
{
	struct nap nap = { .fds = fds, .n = n, .mask = mask, .final = true, .exact = true };

	return nap_whole(&nap, deadline);
}

int wait_sleep_epoll(int epfd, struct epoll_event *events, int max, uint64_t deadline,
		     const sigset_t *mask)
{
	struct nap nap = { .epfd = epfd, .events = events, .max = max, .mask = mask };
	struct pollfd p = { .fd = epfd, .events = POLLIN };
	int n;

	nap.final = true;
	n = nap_whole(&nap, deadline);
	/* Linux before 5.11, or a filter that does not know of it */
	if (n != -ENOSYS && n != -EPERM)
		return n;
	n = wait_sleep_final(&p, 1, deadline, mask);
	return n > 0 ? wait_epoll_now(epfd, events, max) : n;
}

int wait_epoll_now(int epfd, struct epoll_event *events, int max)
{
	int saved = errno;
	int n = (int)libc_try(syscall(SYS_epoll_pwait, epfd, events, max, 0, NULL, _NSIG / 8));

#ifdef SYS_epoll_wait
	if (n == -EPERM)
		n = (int)libc_try(syscall(SYS_epoll_wait, epfd, events, max, 0));
#endif
	errno = saved;
	return n;
}

/* --- bells --- */

static struct {
	pthread_mutex_t lock;
	int fd[BELLS];
	unsigned int n;
} bells = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int bell_create(void)
{
	int fd;

	return base_eventfd_create(&fd) ? -1 : internal_move(fd);
}

void wait_bell_get(struct wait_bell *bell)
{
	*bell = (struct wait_bell){ .fd = -1 };
	if (__libc_single_threaded)
		return;
	pthread_mutex_lock(&bells.lock);
	if (bells.n)
		bell->fd = bells.fd[--bells.n];
	pthread_mutex_unlock(&bells.lock);
	if (bell->fd < 0)
		bell->fd = bell_create();
	bell->lacking = bell->fd < 0;
}

uint64_t wait_bell_limit(const struct wait_bell *bell)
{
	return bell->lacking ? base_deadline(base_now(), LOOK_AGAIN) : BASE_NEVER;
}

void wait_bell_put(struct wait_bell *bell)
{
	if (bell->fd < 0)
		return;
	/* It may have been rung: then the next sleeper looks once more, which is rarer than this */
	pthread_mutex_lock(&bells.lock);
	if (bells.n < BELLS) {
		bells.fd[bells.n++] = bell->fd;
		bell->fd = -1;
	}
	pthread_mutex_unlock(&bells.lock);
	internal_close(bell->fd);
}

void wait_prepare(void)
{
	int fd;

	pthread_mutex_lock(&bells.lock);
	while (bells.n < BELLS && (fd = bell_create()) >= 0)
		bells.fd[bells.n++] = fd;
	pthread_mutex_unlock(&bells.lock);
}

void wait_before_fork(void)
{
	pthread_mutex_lock(&bells.lock);
}

void wait_after_fork(bool child)
{
	fork_lock_drop(&bells.lock, child);
	if (!child)
		return;
	while (bells.n)
		internal_close(bells.fd[--bells.n]);
}

static bool wake(struct sock_watch *watch)
{
	base_eventfd_ring(base_container_of(watch, struct wait_watch, watch)->bell);
	return false;
}

void wait_watch(struct wait_watch *w, const struct wait_bell *bell, struct sock *s)
{
	w->bell = bell->fd;
	w->watch.wake = wake;
	w->watch.exclusive = w->watch.lasting = false;
	base_list_init(&w->watch.node);
	if (bell->fd >= 0)
		sock_watch(s, &w->watch);
}

void wait_unwatch(struct wait_watch *w, struct sock *s)
{
	if (w->bell >= 0)
		sock_unwatch(s, &w->watch);
}

/* --- on a socket --- */

_Static_assert(EPOLLIN == POLLIN && EPOLLRDNORM == POLLRDNORM && EPOLLOUT == POLLOUT &&
		       EPOLLWRNORM == POLLWRNORM && EPOLLRDHUP == POLLRDHUP &&
		       EPOLLHUP == POLLHUP && EPOLLERR == POLLERR,
	       "poll() and epoll have names of their own for the same bits");

uint32_t wait_level_events(unsigned int levels)
{
	uint32_t events = 0;

	events |= levels & STREAM_READABLE ? EPOLLIN | EPOLLRDNORM : 0;
	events |= levels & STREAM_WRITABLE ? EPOLLOUT | EPOLLWRNORM : 0;
	events |= levels & STREAM_RDHUP ? EPOLLRDHUP : 0;
	events |= levels & STREAM_HUP ? EPOLLHUP : 0;
	events |= levels & STREAM_ERROR ? EPOLLERR : 0;
	return events;
}

/* As many as the kernel lets us look at; else looks again. @final: the call is never restarted */
static int sleep_on(struct pollfd *fds, unsigned int n, bool final, uint64_t deadline)
{
	struct nap nap = { .fds = fds, .n = n, .final = final };
	int got = nap_whole(&nap, deadline);

	while (got == -EINVAL && nap.n--)
		got = nap_whole(&nap, base_min(deadline, base_deadline(base_now(), LOOK_AGAIN)));
	return got;
}

/* Before the last look; until when other processes allow to sleep */
static uint64_t others_begin(struct sock *s)
{
	if (!others_have(s))
		return BASE_NEVER;
	others_await(s);
	return others_limit();
}

/*
 * One sleep: 0 something happened (*@events), or it is time to look again, -EAGAIN, -EINTR. @limit
 * as others_begin() gave it
 */
static int sleep_once(struct sock *s, unsigned int wanted, const struct wait_bell *bell,
		      uint64_t deadline, uint64_t limit, short *events)
{
	struct stream *stream = s->stream;
	struct pollfd fds[3] = {
		stream_pollfd(stream, wanted),
		{ .fd = bell->fd, .events = POLLIN },
		{ .fd = others_fd(), .events = POLLIN },
	};
	unsigned int n = fds[2].fd >= 0 ? 3 : fds[1].fd >= 0 ? 2 : 1;
	uint64_t bells = base_min(limit, wait_bell_limit(bell));
	uint64_t look = base_min(bells, stream->ops->wait_deadline(stream));
	int got = sleep_on(fds, n, deadline != BASE_NEVER, base_min(deadline, look));

	if (got > 0 && fds[1].revents)
		base_eventfd_drain(bell->fd);
	if (got > 0 && fds[2].revents)
		others_heard();
	*events = fds[0].revents;
	return got < 0 ? got : !got && base_deadline_passed(deadline, base_now()) ? -EAGAIN : 0;
}

int wait_levels(struct sock *s, unsigned int wanted, uint64_t deadline)
{
	struct stream *stream = s->stream;
	struct wait_bell bell;
	struct wait_watch watch;
	uint64_t limit;
	short events;
	int err = 0;

	wait_bell_get(&bell);
	wait_watch(&watch, &bell, s);
	while (!err && sock_has(s, stream)) {
		limit = others_begin(s);
		if (sock_progress(s) == -ENOMSG) {
			err = -ENOMSG;
			break;
		}
		if (s->stream->ops->levels(s->stream, NULL) & (wanted | STREAM_HUP))
			break;
		err = sleep_once(s, wanted, &bell, deadline, limit, &events);
	}
	wait_unwatch(&watch, s);
	wait_bell_put(&bell);
	return err;
}

int wait_once(struct sock *s, struct stream *stream, unsigned int wanted, uint64_t deadline)
{
	struct wait_bell bell;
	struct wait_watch watch;
	uint64_t limit;
	short events = 0;
	int err = 0;

	wait_bell_get(&bell);
	wait_watch(&watch, &bell, s);
	limit = others_begin(s);
	if (sock_has(s, stream) && !(stream->ops->levels(stream, NULL) & (wanted | STREAM_HUP)))
		err = sleep_once(s, wanted, &bell, deadline, limit, &events);
	wait_unwatch(&watch, s);
	wait_bell_put(&bell);
	/* Room in the kernel is no reader's affair, yet it must not wake one for ever */
	if (!err && events & ~POLLIN)
		sock_progress(s);
	return err;
}
