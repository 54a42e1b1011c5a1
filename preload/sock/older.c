/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that a socket had before it connected again. Another thread may be in a call on one, so
 * such a stream stays behind the one that took its place, until nobody can be.
 *
 * A call has a reference to the socket. So has a registration in a set, whose looks at the stream
 * are made under the set's lock: a thread that has passed that lock behind the change knows that
 * no look is at an older stream.
 */
#include "preload/sock/older.h"

#include "preload/sock/sets.h"
#include "preload/sock/sock.h"

/* Those of the table and of the thread that connects */
#define REFS_ALONE 2

static bool is_alone(struct sock *s, unsigned int registered)
{
	return __atomic_load_n(&s->ent.refs, __ATOMIC_ACQUIRE) <= REFS_ALONE + registered;
}

void older_destroy(struct stream *stream)
{
	while (stream) {
		struct stream *older = stream->older;

		stream_destroy(stream);
		__atomic_sub_fetch(&fdtab_streams, 1, __ATOMIC_RELAXED);
		stream = older;
	}
}

void older_replace(struct sock *s, struct stream *fresh)
{
	if (is_alone(s, 0))
		older_destroy(s->stream);
	else
		fresh->older = s->stream;
	__atomic_store_n(&s->stream, fresh, __ATOMIC_RELEASE);
}

void older_drop(struct sock *s)
{
	struct stream *older = s->stream ? s->stream->older : NULL;

	if (!older || !is_alone(s, sets_pass(s)))
		return;
	s->stream->older = NULL;
	older_destroy(older);
}
