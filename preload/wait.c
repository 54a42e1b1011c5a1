/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sleeping on one socket.
 *
 * The order is: be watched, look, sleep. What another thread takes in after the look rings the
 * bell. Bells are few and kept for the next sleeper.
 */
#include "preload/wait.h"

#include <errno.h>
#include <sys/single_threaded.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/sockutil.h"
#include "preload/internal.h"

#define BELLS 16

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
	bell->fd = -1;
	if (__libc_single_threaded)
		return;
	pthread_mutex_lock(&bells.lock);
	if (bells.n)
		bell->fd = bells.fd[--bells.n];
	pthread_mutex_unlock(&bells.lock);
	if (bell->fd < 0)
		bell->fd = bell_create();
}

void wait_bell_put(struct wait_bell *bell)
{
	if (bell->fd < 0)
		return;
	base_eventfd_drain(bell->fd);
	pthread_mutex_lock(&bells.lock);
	if (bells.n < BELLS) {
		bells.fd[bells.n++] = bell->fd;
		bell->fd = -1;
	}
	pthread_mutex_unlock(&bells.lock);
	internal_close(bell->fd);
}

static void wake(struct sock_watch *watch)
{
	base_eventfd_ring(base_container_of(watch, struct wait_watch, watch)->bell);
}

void wait_watch(struct wait_watch *w, const struct wait_bell *bell, struct sock *s)
{
	w->bell = bell->fd;
	w->watch.wake = wake;
	base_list_init(&w->watch.node);
	if (bell->fd >= 0)
		sock_watch(s, &w->watch);
}

void wait_unwatch(struct wait_watch *w, struct sock *s)
{
	if (w->bell >= 0)
		sock_unwatch(s, &w->watch);
}

void wait_spin(struct pollfd *fds, unsigned int n, uint64_t deadline)
{
	uint64_t now = base_now(), end;

	if (!sock_config.spin)
		return;
	end = base_min(deadline, base_deadline(now, sock_config.spin));
	while (!base_poll(fds, n, 0) && !base_deadline_passed(end, base_now()))
		;
}

/* One sleep: 0 something happened (*@events), -EAGAIN, -EINTR */
static int sleep_once(struct sock *s, unsigned int wanted, const struct wait_bell *bell,
		      uint64_t deadline, short *events)
{
	struct stream *stream = s->stream;
	struct pollfd fds[2] = {
		{ .fd = stream->fd, .events = stream->ops->wait_events(stream, wanted) },
		{ .fd = bell->fd, .events = POLLIN },
	};
	uint64_t look = stream->ops->wait_deadline(stream);
	int n;

	wait_spin(fds, 2, base_min(deadline, look));
	n = base_poll(fds, 2, base_min(deadline, look));
	if (n > 0 && fds[1].revents)
		base_eventfd_drain(bell->fd);
	*events = fds[0].revents;
	return n < 0 ? n : n == 0 && deadline <= look ? -EAGAIN : 0;
}

int wait_levels(struct sock *s, unsigned int wanted, uint64_t deadline)
{
	struct wait_bell bell;
	struct wait_watch watch;
	short events;
	int err = 0;

	wait_bell_get(&bell);
	wait_watch(&watch, &bell, s);
	while (!err) {
		if (sock_progress(s) == -ENOMSG) {
			err = -ENOMSG;
			break;
		}
		if (s->stream->ops->levels(s->stream, NULL) & (wanted | STREAM_HUP))
			break;
		err = sleep_once(s, wanted, &bell, deadline, &events);
	}
	wait_unwatch(&watch, s);
	wait_bell_put(&bell);
	return err;
}

int wait_once(struct sock *s, unsigned int wanted, uint64_t deadline)
{
	struct wait_bell bell;
	struct wait_watch watch;
	short events = 0;
	int err = 0;

	wait_bell_get(&bell);
	wait_watch(&watch, &bell, s);
	if (!(s->stream->ops->levels(s->stream, NULL) & (wanted | STREAM_HUP)))
		err = sleep_once(s, wanted, &bell, deadline, &events);
	wait_unwatch(&watch, s);
	wait_bell_put(&bell);
	/* Room in the kernel is no reader's affair, yet it must not wake one for ever */
	if (!err && events & ~POLLIN)
		sock_progress(s);
	return err;
}
