/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that go on while their program does something else: those in start-up, and those
 * that it has disconnected while work requests were under way, which devices would flush, so
 * that they are told only when the last one is sent. A thread looks, each millisecond, as long as
 * there are any; one that nobody needs is asleep, or not there at all.
 */
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "verbs/verbs_conn.h"

void verbs_progress_init(struct verbs_progress *progress)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&progress->work, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&progress->lock, NULL);
	base_list_init(&progress->conns);
}

void verbs_progress_uninit(struct verbs_progress *progress)
{
	bool running;

	pthread_mutex_lock(&progress->lock);
	running = progress->running;
	progress->stop = true;
	pthread_cond_signal(&progress->work);
	pthread_mutex_unlock(&progress->lock);
	if (running)
		pthread_join(progress->thread, NULL);
	pthread_cond_destroy(&progress->work);
	pthread_mutex_destroy(&progress->lock);
}

/* Under progress.lock, so that none goes meanwhile */
static void look(struct verbs_progress *progress)
{
	struct base_list *at, *next;

	base_list_foreach(at, next, &progress->conns) {
		struct verbs_conn *c = base_list_entry(at, struct verbs_conn, progress_link);

		pthread_mutex_lock(&c->lock);
		verbs_cm_attend(c);
		if (!verbs_cm_moves(c))
			base_list_remove(at);
		pthread_mutex_unlock(&c->lock);
	}
}

static void *run(void *arg)
{
	struct verbs_progress *progress = arg;

	pthread_mutex_lock(&progress->lock);
	while (!progress->stop) {
		uint64_t at = base_now() + BASE_NS_PER_MS;
		struct timespec ts = { .tv_sec = (time_t)(at / BASE_NS_PER_S),
				       .tv_nsec = (long)(at % BASE_NS_PER_S) };

		look(progress);
		if (base_list_empty(&progress->conns))
			pthread_cond_wait(&progress->work, &progress->lock);
		else
			pthread_cond_timedwait(&progress->work, &progress->lock, &ts);
	}
	pthread_mutex_unlock(&progress->lock);
	return NULL;
}

/* A program's signals are its own threads' */
static int thread_start(struct verbs_progress *progress)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&progress->thread, NULL, run, progress);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	progress->running = !err;
	if (err)
		base_err("verbs: no progress thread: %s", strerror(-err));
	return err;
}

int verbs_progress_begin(struct verbs_progress *progress)
{
	int err = 0;

	pthread_mutex_lock(&progress->lock);
	if (!progress->running)
		err = thread_start(progress);
	pthread_mutex_unlock(&progress->lock);
	return err;
}

int verbs_progress_add(struct verbs_conn *c)
{
	struct verbs_progress *progress = &c->dev->progress;
	int err = verbs_progress_begin(progress);

	pthread_mutex_lock(&progress->lock);
	if (!err) {
		base_list_remove(&c->progress_link);
		base_list_push_back(&progress->conns, &c->progress_link);
		pthread_cond_signal(&progress->work);
	}
	pthread_mutex_unlock(&progress->lock);
	return err;
}

void verbs_progress_remove(struct verbs_conn *c)
{
	struct verbs_progress *progress = &c->dev->progress;

	pthread_mutex_lock(&progress->lock);
	base_list_remove(&c->progress_link);
	pthread_mutex_unlock(&progress->lock);
}
