/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The number that a stream works by becomes another one while a thread is at work.
 */
#include "tests/unit/stream/ends.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

struct work {
	struct stream *s;
	void (*enter)(struct stream *s);
	void (*leave)(struct stream *s);
	pthread_barrier_t in;
	int fd;	   /* by which it works before it leaves */
	bool left; /* atomic */
};

static void *at_work(void *arg)
{
	struct work *w = arg;

	w->enter(w->s);
	pthread_barrier_wait(&w->in);
	usleep(20000);
	w->fd = stream_fd(w->s);
	__atomic_store_n(&w->left, true, __ATOMIC_RELAXED);
	w->leave(w->s);
	return NULL;
}

/* While somebody is inside its number becomes @fd */
static void set_meanwhile(struct work *w, int fd)
{
	pthread_t thread;

	pthread_barrier_init(&w->in, NULL, 2);
	cr_assert_eq(pthread_create(&thread, NULL, at_work, w), 0);
	pthread_barrier_wait(&w->in);
	stream_set_fd(w->s, fd);
	cr_expect(__atomic_load_n(&w->left, __ATOMIC_RELAXED), "it may have loaded the old one");
	pthread_join(thread, NULL);
}

static void moves(void (*enter)(struct stream *s), void (*leave)(struct stream *s))
{
	struct work w = { .enter = enter, .leave = leave };
	struct stream *s[2];
	int old;

	ends_open(s);
	w.s = s[0];
	old = s[0]->fd;
	set_meanwhile(&w, dup(old));
	close(old);
	cr_expect_eq(stream_send(s[0], &(struct iovec){ "it", 2 }, 1), 2);
	ends_destroy(s);
}

Test(number, moves_when_nobody_receives_by_it)
{
	moves(stream_rx_lock, stream_rx_unlock);
}

Test(number, moves_when_nobody_sends_by_it)
{
	moves(stream_tx_lock, stream_tx_unlock);
}

/* It is closed here, and another process has it still */
static void goes(void (*enter)(struct stream *s), void (*leave)(struct stream *s))
{
	struct work w = { .enter = enter, .leave = leave };
	struct stream *s[2];
	ssize_t sent;
	int old;

	ends_open(s);
	w.s = s[0];
	old = s[0]->fd;
	set_meanwhile(&w, -1);
	cr_expect_eq(w.fd, old, "who is at work has a descriptor");
	cr_expect_eq(stream_fd(s[0]), -1);
	/* Who comes late does nothing, and breaks nothing */
	stream_progress(s[0]);
	sent = stream_send(s[0], &(struct iovec){ "it", 2 }, 1);
	cr_expect_eq(sent, -EXDEV, "%zd", sent);
	stream_set_fd(s[0], old);
	cr_expect_eq(stream_send(s[0], &(struct iovec){ "it", 2 }, 1), 2);
	ends_destroy(s);
}

Test(number, goes_when_nobody_receives_by_it)
{
	goes(stream_rx_lock, stream_rx_unlock);
}

Test(number, goes_when_nobody_sends_by_it)
{
	goes(stream_tx_lock, stream_tx_unlock);
}
