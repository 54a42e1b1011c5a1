/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that the program has disconnected while work requests were under way: devices
 * would flush those, so they are told only when the last one is sent. A thread looks, each
 * millisecond, as long as there are any; one that nobody needs is asleep, or not there at all.
 */
#include <errno.h>

#include "verbs/verbs_conn.h"

void verbs_closer_init(struct verbs_closer *closer)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&closer->work, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&closer->lock, NULL);
	base_list_init(&closer->conns);
}

void verbs_closer_uninit(struct verbs_closer *closer)
{
	bool running;

	pthread_mutex_lock(&closer->lock);
	running = closer->running;
	closer->stop = true;
	pthread_cond_signal(&closer->work);
	pthread_mutex_unlock(&closer->lock);
	if (running)
		pthread_join(closer->thread, NULL);
	pthread_cond_destroy(&closer->work);
	pthread_mutex_destroy(&closer->lock);
}

/* Under closer.lock, so that none goes meanwhile */
static void look(struct verbs_closer *closer)
{
	struct base_list *at, *next;

	base_list_foreach(at, next, &closer->conns) {
		struct verbs_conn *c = base_list_entry(at, struct verbs_conn, closing_link);

		pthread_mutex_lock(&c->lock);
		verbs_cm_attend(c);
		if (c->shut || verbs_conn_ended(c))
			base_list_remove(at);
		pthread_mutex_unlock(&c->lock);
	}
}

static void *run(void *arg)
{
	struct verbs_closer *closer = arg;

	pthread_mutex_lock(&closer->lock);
	while (!closer->stop) {
		uint64_t at = base_now() + BASE_NS_PER_MS;
		struct timespec ts = { .tv_sec = (time_t)(at / BASE_NS_PER_S),
				       .tv_nsec = (long)(at % BASE_NS_PER_S) };

		look(closer);
		if (base_list_empty(&closer->conns))
			pthread_cond_wait(&closer->work, &closer->lock);
		else
			pthread_cond_timedwait(&closer->work, &closer->lock, &ts);
	}
	pthread_mutex_unlock(&closer->lock);
	return NULL;
}

int verbs_closer_add(struct verbs_conn *c)
{
	struct verbs_closer *closer = &c->dev->closer;
	int err = 0;

	pthread_mutex_lock(&closer->lock);
	if (!closer->running)
		err = -pthread_create(&closer->thread, NULL, run, closer);
	if (!err) {
		closer->running = true;
		base_list_push_back(&closer->conns, &c->closing_link);
		pthread_cond_signal(&closer->work);
	}
	pthread_mutex_unlock(&closer->lock);
	return err;
}

void verbs_closer_remove(struct verbs_conn *c)
{
	struct verbs_closer *closer = &c->dev->closer;

	pthread_mutex_lock(&closer->lock);
	base_list_remove(&c->closing_link);
	pthread_mutex_unlock(&closer->lock);
}
