/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an end of a connection writes to its state, in order or not, and who is told why.
 */
#include "stream/state/memory.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

void stream_end(struct stream *s, uint32_t ends)
{
	struct stream_state *st = s->state;
	uint32_t before = __atomic_fetch_or(&st->ends, ends, __ATOMIC_ACQ_REL);

	if ((before & ends) == ends)
		return;
	__atomic_add_fetch(&st->in_edge, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
}

/*
 * A reset behind a DISCONNECT is only the peer's way of leaving; behind a SHUTDOWN it is, as TCP
 * has it, an error of writing
 */
void stream_break(struct stream *s, int err)
{
	uint32_t ends = base_load(&s->state->ends);

	base_debug("stream: broken: %s, ends %#x", strerror(err), ends);
	if (!(ends & STREAM_IN_ENDED))
		base_store(&s->state->urgent.lost, 1);
	if (!(ends & STREAM_IN_ENDED) || !(ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR)))
		base_store(&s->state->error, ends & STREAM_IN_ENDED ? EPIPE : (uint32_t)err);
	base_store(&s->state->broken,
		   err == ECONNRESET || err == EPROTO ? STREAM_BROKEN : STREAM_TIMED_OUT);
	stream_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_DRY);
}

void stream_spoilt(struct stream *s, enum stream_broken how)
{
	static const char *const why[] = {
		[STREAM_SHARER_DIED] = "a process died inside the connection",
		[STREAM_DAMAGED] = "another process has spoilt a connection",
		[STREAM_NO_MEMORY] = "there is no memory for a connection",
		[STREAM_FLOODED] = "a peer sends messages that bring nothing, and nothing else",
	};

	if (base_load(&s->state->broken))
		return;
	base_err("stream: %s, which ends now", why[how]);
	s->rnic->carrier->abort(&s->mem, stream_fd(s));
	stream_break(s, ECONNRESET);
	base_store(&s->state->broken, how);
}

/*
 * rx lock. Bytes that wait for their reader may be others by now, and the peer's end may stand
 * before bytes that went with the dead
 */
void stream_rx_forget(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;

	rx->placed = rx->consumed;
	rx->span_first = rx->span_end = 0;
	base_store(&rx->delivered, rx->placed);
	base_store(&rx->message_first, STREAM_NO_MESSAGE);
	base_store(&s->state->urgent.octet, 0);
	base_store(&s->state->error, ECONNRESET);
}

bool stream_rx_agrees(struct stream *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed), delivered = base_once(rx->delivered),
		 placed = base_once(rx->placed);

	if (delivered - consumed <= placed - consumed && placed - consumed <= s->ring)
		return true;
	stream_spoilt(s, STREAM_DAMAGED);
	stream_rx_forget(s);
	return false;
}

void stream_memory_judge(struct stream *s, int err)
{
	if (err == -ENOSPC)
		stream_spoilt(s, STREAM_NO_MEMORY);
	if (err == -EBADMSG)
		stream_spoilt(s, STREAM_DAMAGED);
}

int stream_refuse(const char *why)
{
	base_warn("stream: the peer %s", why);
	return -EPROTO;
}

/* The transport takes no more */
int stream_post_failed(struct stream *s, int err)
{
	base_debug("stream: sending failed: %d", err);
	stream_memory_judge(s, err);
	stream_end(s, STREAM_OUT_ENDED);
	return err;
}

int stream_take_error(struct stream *s)
{
	uint32_t err = __atomic_exchange_n(&s->state->error, 0, __ATOMIC_ACQ_REL);

	return err <= STREAM_ERROR_MAX ? (int)err : ECONNRESET;
}

void stream_give_error(struct stream *s, int err)
{
	uint32_t none = 0;

	__atomic_compare_exchange_n(&s->state->error, &none, (uint32_t)err, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}
