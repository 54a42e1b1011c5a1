/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of a program that the peer may write to by rsockets' means (protocol/mapping.c).
 */
#include "stream/life/life.h"

#include <errno.h>

#include "base/map.h"
#include "stream/protocol/onesided.h"

void stream_maps_uninit(struct stream *s)
{
	base_map_destroy(s->maps, sizeof(*s->maps));
}

/* Both locks. What was accepted before goes before */
static int map_enter(struct stream *s, void *addr, size_t len, uint64_t offset)
{
	struct stream_own_map *m;
	int err = stream_is_foreign(s) ? -EXDEV : 0;

	if (!err && !s->maps)
		err = base_map_create(sizeof(*s->maps), (void **)&s->maps);
	if (err)
		return err;
	m = stream_map_find(s, NULL, 0);
	if (!m)
		return -ENOMEM;
	if (!stream_map_allowed(s))
		return -ENOBUFS;
	err = stream_push(s);
	if (!err && stream_out_ended(s))
		err = -EPIPE;
	if (!err && (stream_jobs_left(s) || !stream_may_message(s)))
		err = -EAGAIN;
	return err ? err : stream_map_fill(s, m, addr, len, offset);
}

/* Before the connection becomes this process's alone: is there any use in that? */
static int ready(struct stream *s)
{
	int err = stream_is_open(s) ? 0 : stream_progress(s);

	if (!err && !base_once(s->state->peer.slots))
		err = -EOPNOTSUPP;
	return err ? err : stream_onesided_ready(s, true);
}

int stream_map(struct stream *s, void *addr, size_t len, uint64_t offset)
{
	uint64_t before = stream_edges(s);
	int err = ready(s);

	if (!err && (!len || len > UINT32_MAX || offset + len < offset))
		err = -EINVAL;
	if (err)
		return err;
	/* Credits and room come as input, and who waits for them does not take it in */
	stream_pump(s);
	stream_rx_lock(s);
	stream_tx_lock(s);
	err = map_enter(s, addr, len, offset);
	stream_tx_unlock(s);
	stream_rx_unlock(s);
	stream_tell(s, before);
	return err;
}

int stream_unmap(struct stream *s, const void *addr, size_t len)
{
	int err = ready(s);
	struct stream_own_map *m;

	if (err)
		return err;
	stream_rx_lock(s);
	stream_tx_lock(s);
	m = len ? stream_map_find(s, addr, len) : NULL;
	err = m ? stream_region_strike(s, m->stag) : -EINVAL;
	if (m)
		*m = (struct stream_own_map){ 0 };
	stream_tx_unlock(s);
	stream_rx_unlock(s);
	return err;
}
