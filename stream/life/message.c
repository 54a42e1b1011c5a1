/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User messages of a program (protocol/message.c).
 */
#include "stream/life/life.h"

#include <errno.h>

/* tx lock */
static int enter(struct stream *s, const void *p, size_t len)
{
	int err = stream_message_fits(s, len);

	if (!err)
		err = stream_push_first(s);
	if (!err && stream_jobs_left(s))
		err = -EAGAIN;
	return err ? err : stream_message_accept(s, p, len);
}

/* As its namesake in send.c: the end is looked for under the lock */
static int send_once(struct stream *s, const void *p, size_t len)
{
	int err = -EPIPE;

	stream_tx_lock(s);
	if (!stream_out_ended(s))
		err = base_load(&s->state->may_send) ? enter(s, p, len) : -EAGAIN;
	stream_tx_unlock(s);
	return err;
}

int stream_message_send(struct stream *s, const void *p, size_t len)
{
	uint64_t before = stream_edges(s);
	int err = stream_is_open(s) ? 0 : stream_progress(s);

	if (err)
		return err;
	if (!stream_has(s, STREAM_FEATURE_MESSAGES))
		return -EOPNOTSUPP;
	if (stream_is_foreign(s))
		return -EXDEV;
	err = send_once(s, p, len);
	if (err == -EAGAIN) {
		stream_pump(s);
		err = send_once(s, p, len);
	}
	if (err && err != -EAGAIN && err != -EMSGSIZE) {
		stream_pump_end(s);
		err = stream_take_error(s);
		err = err ? -err : -EPIPE;
	}
	stream_tell(s, before);
	return err;
}

ssize_t stream_message_recv(struct stream *s, const struct iovec *iov, int n, int flags,
			    size_t *len)
{
	uint64_t before = stream_edges(s);
	ssize_t got;

	if (!stream_is_open(s) || base_load(&s->state->rx.message_first) == STREAM_NO_MESSAGE)
		return -ENODATA;
	if (stream_is_foreign(s))
		return -EXDEV;
	if (stream_rx_sleeps(s))
		return -ENODATA;
	stream_rx_lock(s);
	got = stream_rx_agrees(s) ? stream_message_get(s, iov, n, flags, len) : -ENODATA;
	stream_rx_unlock(s);
	stream_pump(s);
	stream_tell(s, before);
	return got;
}
