/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The descriptor that a socket works by, and the stream that another process has made of it.
 */
#include "preload/sock/number.h"

#include <errno.h>
#include <pthread.h>

#include "base/point.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/param.h"
#include "preload/sock/sets.h"
#include "preload/sock/sock.h"
#include "preload/sock/urgent.h"
#include "preload/sock/work_item.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

static void own_set(struct sock *s, int high)
{
	BASE_POINT(preload_sock_own_moved);
	sock_state_move(&sock_number_moves, &s->number, SOCK_NUMBER_INTERNAL);
	__atomic_store_n(&s->fd, high, __ATOMIC_SEQ_CST);
	if (s->stream)
		stream_set_fd(s->stream, high);
	sets_rekey(s);
}

/*
 * The old descriptor is still open, but may not be for long. Who was at work by it has left the
 * stream; sets know the socket by it; and who is about to sleep on it is woken.
 */
int sock_own(struct sock *s)
{
	int high = 0;

	pthread_mutex_lock(&own_lock);
	if (sock_number(s) != SOCK_NUMBER_INTERNAL)
		high = internal_dup(s->fd);
	if (high > 0)
		own_set(s, high);
	pthread_mutex_unlock(&own_lock);
	if (high <= 0)
		return high;
	sock_tell(s);
	work_item_moved(s);
	return 0;
}

/* What the stream's user has kept, and that it is one, is the caller's to see to */
int sock_stream_find(struct sock *s)
{
	struct stream_param param = { 0 };
	struct stream *stream;
	int err;

	sock_param_init(&param, s);
	err = stream_adopt(s->fd, &param, &stream);
	/* A program that was executed behind our back, or a child's connection, has no name */
	param.search = err == -ENOENT && exec_record_is_marked(s->fd);
	if (param.search)
		err = stream_adopt(s->fd, &param, &stream);
	if (err)
		return err;
	s->stream = stream;
	s->cookie = stream->cookie;
	s->reported = false;
	urgent_owner_find(s);
	__atomic_add_fetch(&fdtab_streams, 1, __ATOMIC_RELAXED);
	return 0;
}

int sock_overtake(struct sock *s)
{
	int err = 0;

	pthread_mutex_lock(&own_lock);
	if (sock_role(s) == SOCK_NEW && sock_tenure(s) == SOCK_NEW_ELSEWHERE) {
		err = sock_stream_find(s);
		if (!err)
			exec_record_read(s);
		if (!err)
			sock_role_set(s, SOCK_STREAM_ON);
		__atomic_add_fetch(&s->streams, 1, __ATOMIC_ACQ_REL);
		sock_tenure_set(s, SOCK_OF_ONE);
	}
	pthread_mutex_unlock(&own_lock);
	return err;
}

void number_before_fork(void)
{
	pthread_mutex_lock(&own_lock);
}

void number_after_fork(bool child)
{
	fork_gen_lock_drop(&own_lock, child);
}
