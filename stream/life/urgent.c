/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Urgent bytes, to a program (protocol/urgent.c).
 */
#include "stream/life/life.h"

#include <errno.h>

bool stream_urgent_may(struct stream *s)
{
	return stream_is_open(s) && stream_has(s, STREAM_FEATURE_URGENT) &&
	       !(base_load(&s->state->ends) & STREAM_IN_ENDED);
}

int stream_urgent_recv(struct stream *s, uint8_t *octet, int flags)
{
	int r = stream_progress(s);

	if (r)
		return r == -ENOMSG ? r : -EINVAL;
	if (stream_is_foreign(s))
		return -EXDEV;
	if (stream_rx_sleeps(s))
		return -EINVAL;
	stream_rx_lock(s);
	r = stream_urgent_take(s, octet, flags);
	stream_rx_unlock(s);
	return r;
}

void stream_set_inline(struct stream *s, bool on)
{
	/* As in Linux nobody is woken: a level may be another one, but nothing came */
	base_store(&s->state->urgent.in_line, (uint32_t)on);
}
