/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners: TCP connections come in, and leave as connections whose Request is complete.
 *
 * Any number of start-ups are under way at once, each with its own deadline, and who is slow
 * holds up nobody else. They are in the listener's epoll set, whose descriptor is what the
 * program polls; they are brought forward by the thread that asks for the next connection. One
 * whose start-up comes to nothing is let go at the next call.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "soft/soft_conn.h"
#include "soft/soft_fd.h"

#define HALF_MAX 1024
#define ACCEPT_MAX 64
#define RETRY_NS (10 * BASE_NS_PER_MS)
#define EVENTS 32

struct soft_listener {
	struct warp_listener listener;
	struct soft_device *dev;
	int fd, event, epoll;
	pthread_mutex_t lock;
	bool paused; /* lock: fd wakes nobody */
	pthread_mutex_t list;
	struct base_list half, ready, failed; /* list: soft_conn.queued */
	unsigned int half_count;
};

static int watch(struct soft_listener *l, int fd, struct soft_conn *c)
{
	return soft_fd_watch(l->epoll, EPOLL_CTL_ADD, fd, EPOLLIN, c);
}

static int socket_open(const struct sockaddr *addr, socklen_t len, int backlog, int *out)
{
	int err, on = 1, fd = soft_fd_socket(addr->sa_family);

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, addr, len) || listen(fd, backlog)) {
		err = -errno;
		base_fd_close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

static void listener_free(struct soft_listener *l)
{
	base_fd_close(l->epoll);
	base_fd_close(l->event);
	base_fd_close(l->fd);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->list);
	free(l);
}

static int fds_open(struct soft_listener *l, const struct sockaddr *addr, socklen_t len,
		    int backlog)
{
	int err = socket_open(addr, len, backlog, &l->fd);

	if (!err)
		err = base_eventfd_create(&l->event);
	if (err)
		return err;
	l->epoll = soft_fd_epoll();
	if (l->epoll < 0)
		return l->epoll;
	err = watch(l, l->fd, NULL);
	return err ? err : watch(l, l->event, NULL);
}

int soft_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		struct warp_listener **out)
{
	struct soft_listener *l = base_heap_array(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->listener.dev = dev;
	l->dev = soft_device_of(dev);
	l->fd = l->event = l->epoll = -1;
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->list, NULL);
	base_list_init(&l->half);
	base_list_init(&l->ready);
	base_list_init(&l->failed);
	err = fds_open(l, addr, len, backlog);
	if (err) {
		listener_free(l);
		return err;
	}
	soft_device_get(l->dev);
	*out = &l->listener;
	return 0;
}

static struct soft_listener *listener_of(const struct warp_listener *l)
{
	return base_container_of(l, struct soft_listener, listener);
}

int soft_listener_addr(const struct warp_listener *wl, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	return getsockname(listener_of(wl)->fd, (struct sockaddr *)addr, &len) ? -errno : 0;
}

int soft_listener_fd(struct warp_listener *l)
{
	return listener_of(l)->epoll;
}

/* Under the connection's rx and tx */
void soft_listener_note(struct soft_conn *c)
{
	struct soft_listener *l = c->listener;

	pthread_mutex_lock(&l->list);
	if (!base_list_empty(&c->queued)) {
		base_list_remove(&c->queued);
		l->half_count--;
		base_list_push_back(c->state == WARP_CONN_REQUEST ? &l->ready : &l->failed,
				    &c->queued);
		if (c->fd >= 0)
			soft_fd_watch(l->epoll, EPOLL_CTL_DEL, c->fd, 0, NULL);
		base_eventfd_notify(l->event);
	}
	pthread_mutex_unlock(&l->list);
}

/* The next of a list, which is the listener's no more; NULL: none */
static struct soft_conn *list_take(struct soft_listener *l, struct base_list *list)
{
	struct soft_conn *c = NULL;
	struct base_list *at;

	pthread_mutex_lock(&l->list);
	at = base_list_pop_front(list);
	pthread_mutex_unlock(&l->list);
	if (!at)
		return NULL;
	c = base_list_entry(at, struct soft_conn, queued);
	pthread_mutex_lock(&c->tx);
	c->listener = NULL;
	pthread_mutex_unlock(&c->tx);
	return c;
}

/* --- start-ups, all under listener.lock --- */

static int half_make(struct soft_listener *l, int fd, struct soft_conn **out)
{
	struct soft_conn *c;
	int err = soft_conn_create(l->dev, fd, MPA_RESPONDER, SOFT_STAGE_START, NULL, &c);

	if (err)
		return err;
	c->listener = l;
	err = watch(l, fd, c);
	/* Last: from here on the thread knows it and alone may free it */
	if (!err)
		err = soft_progress_add(c);
	if (err) {
		soft_conn_free(c);
		return err;
	}
	*out = c;
	return 0;
}

static void half_add(struct soft_listener *l, int fd)
{
	struct soft_conn *c;
	int err = half_make(l, fd, &c);

	if (err) {
		base_err("a connection is dropped: %s", strerror(-err));
		return;
	}
	soft_device_get(l->dev);
	pthread_mutex_lock(&l->list);
	base_list_push_back(&l->half, &c->queued);
	l->half_count++;
	pthread_mutex_unlock(&l->list);
	soft_stage_attend(c);
	pthread_mutex_lock(&c->tx);
	soft_progress_update(c);
	pthread_mutex_unlock(&c->tx);
}

/*
 * While no more are taken the socket must not wake anybody. A start-up that comes to its end
 * rings the listener's event, so that somebody looks again.
 */
static void accept_pause(struct soft_listener *l, bool on)
{
	if (l->paused == on)
		return;
	l->paused = on;
	soft_fd_watch(l->epoll, EPOLL_CTL_MOD, l->fd, on ? 0 : EPOLLIN, NULL);
}

/* Only this thread adds, so the count only falls meanwhile */
static bool half_full(struct soft_listener *l)
{
	bool full;

	pthread_mutex_lock(&l->list);
	full = l->half_count >= HALF_MAX;
	pthread_mutex_unlock(&l->list);
	return full;
}

/* What is not taken waits in the kernel's queue: 0, or why none can be taken now */
static int socket_accept(struct soft_listener *l)
{
	int fd = 0;

	for (int i = 0; i < ACCEPT_MAX && fd >= 0 && !half_full(l); i++) {
		fd = soft_fd_accept(l->fd);
		if (fd >= 0)
			half_add(l, fd);
	}
	accept_pause(l, half_full(l));
	return fd < 0 && fd != -EAGAIN ? fd : 0;
}

static int bring_forward(struct soft_listener *l)
{
	struct epoll_event ev[EVENTS];
	struct soft_conn *c;
	int err, n = soft_fd_events(l->epoll, ev, EVENTS, 0);

	base_eventfd_drain(l->event);
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr)
			soft_stage_attend(ev[i].data.ptr);
	err = socket_accept(l);
	while ((c = list_take(l, &l->failed)))
		soft_conn_destroy(&c->conn);
	return err;
}

/* The next one that is ready; *@err: why no more could be taken in */
static struct soft_conn *next_ready(struct soft_listener *l, int *err)
{
	struct soft_conn *c;

	*err = 0;
	pthread_mutex_lock(&l->lock);
	c = list_take(l, &l->ready);
	if (!c) {
		*err = bring_forward(l);
		c = list_take(l, &l->ready);
	}
	pthread_mutex_unlock(&l->lock);
	return c;
}

/*
 * Where accept() fails for want of descriptors or memory the socket stays readable: then time is
 * let pass, for nothing tells when there are some again
 */
static int listener_sleep(struct soft_listener *l, int accept_err, uint64_t deadline)
{
	struct pollfd pfd = { .fd = l->epoll, .events = POLLIN };
	uint64_t again = base_deadline(base_now(), RETRY_NS);
	int err;

	if (!accept_err)
		return base_poll_until(&pfd, 1, deadline);
	err = base_poll_until(NULL, 0, base_min(again, deadline));
	return err == -ETIMEDOUT && again < deadline ? 0 : err;
}

int soft_listener_get(struct warp_listener *wl, int timeout_ms, struct warp_conn **out)
{
	struct soft_listener *l = listener_of(wl);
	uint64_t deadline = base_deadline_ms(timeout_ms);
	int err = 0, accept_err;

	for (;;) {
		struct soft_conn *c = next_ready(l, &accept_err);

		if (c) {
			*out = &c->conn;
			return 0;
		}
		if (err)
			return err;
		err = listener_sleep(l, accept_err, deadline);
	}
}

int soft_listener_destroy(struct warp_listener *wl)
{
	struct soft_listener *l = listener_of(wl);
	struct base_list *lists[] = { &l->half, &l->ready, &l->failed };
	struct soft_conn *c;

	for (unsigned int i = 0; i < base_array_size(lists); i++)
		while ((c = list_take(l, lists[i])))
			soft_conn_destroy(&c->conn);
	soft_device_put(l->dev);
	listener_free(l);
	return 0;
}
