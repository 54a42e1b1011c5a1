/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping.
 *
 * On one socket the order is: be watched, look, sleep. What another thread takes in after the
 * look writes to the wakeup fd. Wakeup fds are few and kept for the next sleeper.
 */
#include "preload/wait/wait.h"

#include <errno.h>
#include <sys/single_threaded.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/guard/sandbox.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

#define WAKEUPS 16
/* Looks that found nothing, after each of which something had come */
#define VAIN_MAX 8
/* Where the kernel takes no descriptor more, a look so often */
#define NO_WAKEUP_POLL (10 * BASE_NS_PER_MS)

/* --- wakeup fds --- */

static struct {
	pthread_mutex_t lock;
	int fd[WAKEUPS];
	unsigned int n;
} wakeups = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int wakeup_create(void)
{
	int fd;

	return base_eventfd_create(&fd) ? -1 : internal_move(fd);
}

void wait_wakeup_get(struct wait_wakeup *wakeup)
{
	*wakeup = (struct wait_wakeup){ .fd = -1 };
	/* Who does a thread's work may move what it waits for */
	if (__libc_single_threaded && !__atomic_load_n(&intr_sleep_chore, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&wakeups.lock);
	if (wakeups.n)
		wakeup->fd = wakeups.fd[--wakeups.n];
	pthread_mutex_unlock(&wakeups.lock);
	if (wakeup->fd < 0)
		wakeup->fd = wakeup_create();
	wakeup->lacking = wakeup->fd < 0;
}

uint64_t wait_wakeup_limit(const struct wait_wakeup *wakeup)
{
	return wakeup->lacking ? base_deadline(base_now(), NO_WAKEUP_POLL) : BASE_NEVER;
}

void wait_wakeup_put(struct wait_wakeup *wakeup)
{
	if (wakeup->fd < 0)
		return;
	/* It may have been written to: then the next sleeper looks once more, which is rare */
	pthread_mutex_lock(&wakeups.lock);
	if (wakeups.n < WAKEUPS) {
		wakeups.fd[wakeups.n++] = wakeup->fd;
		wakeup->fd = -1;
	}
	pthread_mutex_unlock(&wakeups.lock);
	internal_close(wakeup->fd);
}

void wait_prepare(void)
{
	int fd;

	pthread_mutex_lock(&wakeups.lock);
	while (wakeups.n < WAKEUPS && (fd = wakeup_create()) >= 0)
		wakeups.fd[wakeups.n++] = fd;
	pthread_mutex_unlock(&wakeups.lock);
}

void wait_before_fork(void)
{
	pthread_mutex_lock(&wakeups.lock);
}

void wait_after_fork(bool child)
{
	fork_gen_lock_drop(&wakeups.lock, child);
	if (!child)
		return;
	while (wakeups.n)
		internal_close(wakeups.fd[--wakeups.n]);
}

/* What a thread moves itself it sees without a wakeup fd */
static bool wake(struct sock_watch *watch)
{
	struct wait_watch *w = base_container_of(watch, struct wait_watch, watch);

	if (!__atomic_load_n(&w->looks, __ATOMIC_RELAXED) || w->looks != pthread_self())
		base_eventfd_notify(w->wakeup);
	return false;
}

void wait_watch(struct wait_watch *w, const struct wait_wakeup *wakeup, struct sock *s)
{
	w->wakeup = wakeup->fd;
	w->looks = 0;
	w->watch.wake = wake;
	w->watch.exclusive = w->watch.lasting = false;
	base_list_init(&w->watch.node);
	if (wakeup->fd >= 0)
		sock_watch(s, &w->watch);
}

void wait_unwatch(struct wait_watch *w, struct sock *s)
{
	if (w->wakeup >= 0)
		sock_unwatch(s, &w->watch);
}

int wait_progress(struct wait_watch *w, struct sock *s)
{
	int left;

	__atomic_store_n(&w->looks, pthread_self(), __ATOMIC_RELAXED);
	left = sock_progress(s);
	__atomic_store_n(&w->looks, 0, __ATOMIC_RELAXED);
	return left;
}

/* --- on a socket --- */

_Static_assert(EPOLLIN == POLLIN && EPOLLRDNORM == POLLRDNORM && EPOLLOUT == POLLOUT &&
		       EPOLLWRNORM == POLLWRNORM && EPOLLRDHUP == POLLRDHUP &&
		       EPOLLHUP == POLLHUP && EPOLLERR == POLLERR && EPOLLPRI == POLLPRI,
	       "poll() and epoll have names of their own for the same bits");

uint32_t wait_level_events(unsigned int levels)
{
	uint32_t events = 0;

	events |= levels & STREAM_READABLE ? EPOLLIN | EPOLLRDNORM : 0;
	events |= levels & STREAM_WRITABLE ? EPOLLOUT | EPOLLWRNORM : 0;
	events |= levels & STREAM_RDHUP ? EPOLLRDHUP : 0;
	events |= levels & STREAM_HUP ? EPOLLHUP : 0;
	events |= levels & STREAM_ERROR ? EPOLLERR : 0;
	events |= levels & STREAM_URGENT ? EPOLLPRI : 0;
	return events;
}

typedef int sleep_fn(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place);

/* As many as the kernel lets us look at; else looks again. @final: the call is never restarted */
static int sleep_on(struct pollfd *fds, unsigned int n, bool final, uint64_t deadline,
		    struct spin_place *place)
{
	sleep_fn *sleep = final ? intr_sleep_final : intr_sleep;
	int got = sleep(fds, n, deadline, NULL, place);

	while (got == -EINVAL && n--)
		got = sleep(fds, n, base_min(deadline, base_deadline(base_now(), NO_WAKEUP_POLL)),
			    NULL, NULL);
	return got;
}

/* Each direction waits for something else of the peer: octets, or room */
static struct spin_place *place_of(struct sock *s, unsigned int wanted)
{
	return &s->places[(wanted & STREAM_WRITABLE) != 0];
}

/* Before the last look; until when other processes allow to sleep */
static uint64_t others_begin(struct sock *s)
{
	if (!others_have(s))
		return BASE_NEVER;
	others_await(s);
	return others_limit();
}

int wait_ends(uint64_t deadline, const sigset_t *mask, unsigned int vain)
{
	struct pollfd none = { .fd = -1 };

	if (deadline != BASE_NEVER && base_deadline_passed(deadline, base_now()))
		return -EAGAIN;
	/*
	 * What only the call's mask lets through comes in a sleep, also in one of no time. A call
	 * that has something to tell leaves it pending, so not while that may still be
	 */
	if (mask && vain > VAIN_MAX)
		return base_min(intr_sleep_final(&none, 1, 0, mask, NULL), 0);
	return call_self && call_wanted(call_self) ? -EINTR : 0;
}

static bool receive(void *ctx, struct base_recv_sleep *sleep)
{
	struct stream *stream = ctx;

	return stream_sleep(stream, sleep);
}

/*
 * Nothing but bytes of this socket, or a signal, ends the sleep: then the kernel's receive may be
 * where it sleeps, which saves a system call. It holds a lock there, so no other thread may be
 */
static bool is_for_bytes(const struct stream *stream, const struct pollfd *fds, unsigned int n,
			 uint64_t until)
{
	return n == 1 && until == BASE_NEVER && fds->fd == stream_fd(stream) &&
	       fds->events == POLLIN && __libc_single_threaded &&
	       !__atomic_load_n(&intr_sleep_chore, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED);
}

/*
 * One sleep: 0 something happened (*@events), or it is time to look again, -EAGAIN, -EINTR. @limit
 * as others_begin() gave it
 */
static int sleep_once(struct sock *s, unsigned int wanted, const struct wait_wakeup *wakeup,
		      uint64_t deadline, uint64_t limit, short *events)
{
	struct stream *stream = s->stream;
	struct pollfd fds[3] = {
		stream_pollfd(stream, wanted),
		{ .fd = wakeup->fd, .events = POLLIN },
		{ .fd = others_fd(), .events = POLLIN },
	};
	unsigned int n = fds[2].fd >= 0 ? 3 : fds[1].fd >= 0 ? 2 : 1;
	uint64_t wakeups = base_min(limit, wait_wakeup_limit(wakeup));
	uint64_t look = base_min(wakeups, stream_wait_deadline(stream));
	struct spin_place *place = place_of(s, wanted);
	bool more = stream_more(stream);
	uint64_t until = more ? 0 : base_min(deadline, look);
	int got;

	if (is_for_bytes(stream, fds, n, until))
		got = intr_sleep_receive(fds, place, receive, stream);
	else
		got = sleep_on(fds, n, deadline != BASE_NEVER, until, more ? NULL : place);
	if (got > 0 && fds[0].revents & POLLIN)
		spin_place_learn(place, fds[0].fd);
	if (got > 0 && fds[1].revents)
		base_eventfd_drain(wakeup->fd);
	if (got > 0 && fds[2].revents)
		others_heard();
	*events = fds[0].revents;
	if (more && got >= 0)
		return 0;
	return got < 0 ? got : !got && base_deadline_passed(deadline, base_now()) ? -EAGAIN : 0;
}

/* A process that came to it unannounced (pidfd_getfd()): it is to wake us from now on */
static void newcomer_note(struct sock *s)
{
	if (stream_shared(s->stream) && !others_have(s))
		others_come(s);
}

int wait_levels(struct sock *s, unsigned int wanted, uint64_t deadline)
{
	struct stream *stream = s->stream;
	struct wait_wakeup wakeup;
	struct wait_watch watch;
	uint64_t limit;
	short events;
	int err = 0, ends = 0;

	wait_wakeup_get(&wakeup);
	wait_watch(&watch, &wakeup, s);
	while (!err && sock_has(s, stream)) {
		newcomer_note(s);
		limit = others_begin(s);
		if (wait_progress(&watch, s) == -ENOMSG) {
			err = -ENOMSG;
			break;
		}
		if (stream_levels(s->stream, NULL) & (wanted | STREAM_HUP))
			break;
		err = ends ? ends : sleep_once(s, wanted, &wakeup, deadline, limit, &events);
		ends = wait_ends(deadline, NULL, 0);
	}
	wait_unwatch(&watch, s);
	wait_wakeup_put(&wakeup);
	return err;
}

int wait_once(struct sock *s, struct stream *stream, unsigned int wanted, uint64_t deadline)
{
	struct wait_wakeup wakeup;
	struct wait_watch watch;
	uint64_t limit;
	short events = 0;
	int err = 0;

	wait_wakeup_get(&wakeup);
	wait_watch(&watch, &wakeup, s);
	limit = others_begin(s);
	if (sock_has(s, stream) && !(stream_levels(stream, NULL) & (wanted | STREAM_HUP)))
		err = sleep_once(s, wanted, &wakeup, deadline, limit, &events);
	wait_unwatch(&watch, s);
	wait_wakeup_put(&wakeup);
	/*
	 * Room in the kernel is no reader's affair, nor is what the stream does when its time has
	 * come; yet they must not wake one for ever
	 */
	if (!err && events != POLLIN)
		sock_progress(s);
	return err;
}
