/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations to the provider. What the transport does not take has not happened; that it took less
 * than it was given is noted, for writers wait for that.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>

#include "base/point.h"

bool stream_is_blocked(const struct stream *s)
{
	if (!base_load(&s->state->tx.blocked))
		return false;
	return !s->mem.native || !s->rnic->carrier->room(&s->mem, stream_fd(s));
}

/*
 * tx lock. Room that comes is an edge, whoever has found it and whatever for: who waits for it may
 * have looked before, and nothing may come from the peer. A device may have said that there is room
 * before it stood here that there is none.
 */
void stream_blocked_note(struct stream *s, bool blocked)
{
	struct stream_state *st = s->state;
	/* Pairs with sink_room() */
	bool before = base_load(&st->tx.blocked);

	if (blocked != before || s->mem.native)
		before = __atomic_exchange_n(&st->tx.blocked, blocked, __ATOMIC_SEQ_CST);
	if (blocked ? s->mem.native && !stream_is_blocked(s) : before)
		__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
}

int stream_wr_post(struct stream *s, const struct rnic_stream_wr *wr, unsigned int n)
{
	int done, err;

	if (!base_load(&s->state->may_send))
		return 0;
	done = s->rnic->send(&s->mem, stream_fd(s), wr, n);
	stream_spare_sent(s);
	BASE_POINT(stream_push_posted);
	if (done < 0 && done != -EAGAIN)
		return stream_post_failed(s, done);
	err = s->rnic->owes(&s->mem) ? s->rnic->flush(&s->mem, stream_fd(s)) : 0;
	stream_blocked_note(s, done < (int)n || err == -EAGAIN);
	return done < 0 ? 0 : done;
}

/* One message by itself, with a body of @len bytes: 0, -EAGAIN, -errno */
int stream_body_post(struct stream *s, uint32_t msg, void *body, uint32_t len)
{
	uint8_t octets[RS_MSG_LEN];
	struct iovec iov[2] = { { octets, sizeof(octets) }, { body, len } };
	struct rnic_stream_wr wr = { .iov = iov, .niov = len ? 2 : 1, .len = RS_MSG_LEN + len };
	int done;

	base_put_le32(octets, msg);
	done = stream_wr_post(s, &wr, 1);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}
