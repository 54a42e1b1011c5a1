/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What closed sockets still have to do: the rest of their octets, DISCONNECT, the FIN, and
 * reading what arrives until the peer's FIN, since to close with input unread, or to be sent
 * something after the close, resets the connection.
 *
 * A thread of our own attends them; it is started by the first close that could not finish at
 * once, blocks all signals and sleeps when there is nothing. At exit the caller attends them
 * itself, and is content with an acknowledgement of all that was sent (stream/end.c says why
 * that is enough).
 */
#include "preload/linger.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/sockutil.h"

#define BATCH 64
#define LOOK_AGAIN (20 * BASE_NS_PER_MS)
#define STACK (128 * 1024u)

struct lingerer {
	struct base_list node;
	struct sock *sock;
	uint64_t deadline;
	bool safe;
};

static struct {
	pthread_mutex_t lock;
	struct base_list list;
	unsigned int count;
	bool thread;
	int bell;
} lingers = { PTHREAD_MUTEX_INITIALIZER, BASE_LIST_INIT(lingers.list), 0, false, -1 };

static void linger_end(struct lingerer *l)
{
	int fd = l->sock->stream->fd;

	base_list_remove(&l->node);
	lingers.count--;
	l->sock->stream->ops->set_fd(l->sock->stream, -1);
	base_fd_close(fd);
	sock_put(l->sock);
	base_map_destroy(l, sizeof(*l));
}

/* Under the lock: goes on with each. @content: an acknowledgement will do */
static void lingers_attend(bool content)
{
	struct base_list *node, *next;
	uint64_t now = base_now();

	base_list_foreach(node, next, &lingers.list) {
		struct lingerer *l = base_list_entry(node, struct lingerer, node);
		struct stream *stream = l->sock->stream;
		bool over = stream->ops->close_more(stream, &l->safe) != -EAGAIN;

		if (over || (content && l->safe) || base_deadline_passed(l->deadline, now))
			linger_end(l);
	}
}

/*
 * Under the lock: what to poll for the first of them; the others are looked at every now and
 * then
 */
static unsigned int lingers_poll_list(struct pollfd *fds)
{
	struct base_list *node, *next;
	unsigned int n = 0;

	base_list_foreach(node, next, &lingers.list) {
		struct stream *stream = base_list_entry(node, struct lingerer, node)->sock->stream;

		if (n == BATCH)
			break;
		fds[n++] = (struct pollfd){ .fd = stream->fd,
					    .events = stream->ops->wait_events(stream, 0) };
	}
	return n;
}

static void *linger_run(void *arg)
{
	struct pollfd fds[BATCH + 1];
	uint64_t limit;
	unsigned int n;

	for (;;) {
		pthread_mutex_lock(&lingers.lock);
		lingers_attend(false);
		n = lingers_poll_list(fds);
		limit = lingers.count ? base_deadline(base_now(), LOOK_AGAIN * 10) : BASE_NEVER;
		pthread_mutex_unlock(&lingers.lock);
		fds[n] = (struct pollfd){ .fd = lingers.bell, .events = POLLIN };
		base_poll(fds, n + 1, limit);
		base_eventfd_drain(lingers.bell);
	}
	return arg;
}

/* Under the lock. Without the thread they wait for the exit */
static void thread_start(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int fd, err;

	if (lingers.thread || base_eventfd_create(&fd))
		return;
	lingers.bell = base_fd_dup_high(fd);
	base_fd_close(fd);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, linger_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	lingers.thread = !err;
	if (err)
		base_warn("no thread for closed connections: %s", strerror(err));
}

void linger_add(struct sock *s)
{
	struct lingerer *l;

	if (base_map_create(sizeof(*l), (void **)&l)) {
		base_fd_close(s->stream->fd);
		sock_put(s);
		return;
	}
	l->sock = s;
	l->deadline = base_deadline(base_now(), sock_config.linger);
	pthread_mutex_lock(&lingers.lock);
	base_list_push_back(&lingers.list, &l->node);
	lingers.count++;
	thread_start();
	pthread_mutex_unlock(&lingers.lock);
	if (lingers.bell >= 0)
		base_eventfd_ring(lingers.bell);
}

unsigned int linger_finish(uint64_t deadline)
{
	struct pollfd fds[BATCH];
	unsigned int n, left;

	for (;;) {
		pthread_mutex_lock(&lingers.lock);
		lingers_attend(true);
		n = lingers_poll_list(fds);
		left = lingers.count;
		pthread_mutex_unlock(&lingers.lock);
		if (!left || base_deadline_passed(deadline, base_now()))
			return left;
		/* The acknowledgement wakes nobody */
		base_poll(fds, n, base_deadline(base_now(), BASE_NS_PER_MS));
	}
}

void linger_forget(void)
{
	struct base_list *node, *next;

	pthread_mutex_init(&lingers.lock, NULL);
	lingers.thread = false;
	base_fd_close(lingers.bell);
	lingers.bell = -1;
	base_list_foreach(node, next, &lingers.list) {
		struct lingerer *l = base_list_entry(node, struct lingerer, node);

		l->sock->stream->ops->unshare(l->sock->stream);
		linger_end(l);
	}
}
