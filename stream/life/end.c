/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ends: shutdown, close, and what a closed stream still has to do.
 *
 * A closed TCP socket answers any byte with a reset, which destroys what is still on its way
 * to the peer; and a peer that reads sends grants. So the last close() writes DISCONNECT and
 * the FIN, and the socket lives on, its input thrown away, until the peer's FIN has come. Where
 * that cannot be waited for, at exit, it is enough that the peer's TCP has acknowledged
 * everything up to our FIN: a peer that drains before it grants finds DISCONNECT behind the
 * bytes and never sends again. A process that is short of descriptors does not wait for the
 * acknowledgement of the end itself, which a peer's kernel may put off for 40 ms.
 *
 * Who sends the descriptor in a message and closes its own may be the last all the same, since
 * nobody tells when a message is thrown away. So it keeps the socket until what was sent is
 * acknowledged, or somebody has received it: a grant would otherwise find a socket that is closed.
 *
 * Which message ends which direction is as rsockets has it: SHUTDOWN while we go on reading,
 * DISCONNECT when both are over.
 */
#include "stream/life/life.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"

/* DISCONNECT's FPDU with a marker, and the FIN; no other FPDU would fit in beside the first */
#define END_OCTETS (28 + 4 + 1)

static void due(struct stream *s, uint32_t what)
{
	__atomic_or_fetch(&s->state->tx.due, what, __ATOMIC_ACQ_REL);
}

static void push_locked(struct stream *s)
{
	stream_tx_lock(s);
	stream_push(s);
	stream_tx_unlock(s);
}

/* The message for a direction of ours that ends now; 0: none */
static uint32_t end_message(uint32_t before, uint32_t after)
{
	bool in_over = after & (STREAM_IN_ENDED | STREAM_SHUT_RD);
	bool out_over = after & STREAM_SHUT_WR;

	if (before & STREAM_OUT_ENDED || !out_over)
		return 0;
	if (in_over)
		return STREAM_DUE_DISCONNECT;
	return before & STREAM_SHUT_WR ? 0 : STREAM_DUE_SHUTDOWN;
}

static uint32_t ends_of(int how)
{
	static const uint32_t ends[] = {
		[SHUT_RD] = STREAM_SHUT_RD,
		[SHUT_WR] = STREAM_SHUT_WR,
		[SHUT_RDWR] = STREAM_SHUT_RD | STREAM_SHUT_WR,
	};

	return ends[how];
}

/* One DISCONNECT is enough, and the last word */
static void end_say(struct stream *s, uint32_t message)
{
	if (message == STREAM_DUE_DISCONNECT &&
	    __atomic_fetch_or(&s->state->ends, STREAM_SAID, __ATOMIC_ACQ_REL) & STREAM_SAID)
		return;
	due(s, message);
}

/* Both directions have ended, or it broke: there is no connection to shut down any more */
static bool is_over(const struct stream *s, uint32_t ends)
{
	return (ends & STREAM_IN_ENDED && ends & STREAM_SHUT_WR) || ends & STREAM_LOST ||
	       base_load(&s->state->broken);
}

static bool is_starting(const struct stream *s)
{
	uint32_t stage = base_load(&s->state->stage);

	return stage == STREAM_SINGLE_FLIGHT || stage == STREAM_STARTING || stage == STREAM_AGAIN;
}

int stream_shutdown(struct stream *s, int how)
{
	uint64_t edges = stream_edges(s);
	uint32_t before, message;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (!stream_is_open(s) && !is_starting(s))
		return -ENOTCONN;
	if (stream_is_foreign(s))
		return -EXDEV;
	/* While it starts, it is only noted: what is due leaves behind what is held */
	stream_pump(s);
	before = __atomic_fetch_or(&s->state->ends, ends_of(how), __ATOMIC_ACQ_REL);
	BASE_POINT(stream_end_shut);
	message = end_message(before, before | ends_of(how));
	if (message)
		end_say(s, message);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
	push_locked(s);
	stream_tell(s, edges);
	return is_over(s, before) ? -ENOTCONN : 0;
}

/* The program wants a reset, or has not read everything, which the peer is told by a reset */
static bool abandons(struct stream *s)
{
	const struct stream_state *st = s->state;

	s->linger = base_sock_linger(stream_fd(s));
	/* What comes behind the close() of a program before this one is nobody's to read */
	if (base_load(&st->ends) & (STREAM_OUT_ENDED | STREAM_CLOSED))
		return false;
	return base_load(&st->rx.delivered) != base_load(&st->rx.consumed) || !s->linger;
}

/*
 * TCP's reset is certain and says nothing; ABORT says that the program wanted it, where the
 * kernel has room for the message. Both mean ECONNRESET.
 */
static void abandon(struct stream *s)
{
	if (stream_has(s, STREAM_FEATURE_ABORT)) {
		due(s, STREAM_DUE_ABORT);
		push_locked(s);
	}
	s->rnic->carrier->abort(&s->mem, stream_fd(s));
}

static bool done(const struct stream *s)
{
	return base_load(&s->state->ends) & STREAM_DRY;
}

/* Has the peer's kernel acknowledged all that was sent, but for @most bytes? */
static bool is_acked(const struct stream *s, int most)
{
	/* Who is closed grants nothing any more, also what was due before */
	uint32_t due = base_load(&s->state->tx.due) &
		       ~(uint32_t)(STREAM_DUE_GRANT | STREAM_DUE_GRANTING);
	/* Where nobody may ask, only the peer's end is certain */
	int unacked = s->rnic->carrier->unacked(&s->mem, stream_fd(s));

	return !due && !base_load(&s->state->tx.hold_end) && unacked <= most && unacked != -EPERM;
}

/* It is a message's to carry: 0, or -EAGAIN while it is to be kept */
static int keep(struct stream *s, bool *safe)
{
	*safe = true;
	if (s->disowned || s->mem.native || !stream_is_open(s) || !stream_holder_flight(s) ||
	    stream_progress(s) || done(s))
		return 0;
	s->linger = base_sock_linger(stream_fd(s));
	*safe = is_acked(s, 0);
	return *safe ? 0 : -EAGAIN;
}

/*
 * Is there something to end in order, although the connection is not open yet? Bytes are held; or
 * the peer is, or may be, in the middle of its start-up, and a plain close() would reset it
 */
static bool is_begun(const struct stream *s)
{
	if (base_load(&s->state->hold) && base_load(&s->state->tx.hold_end))
		return true;
	return base_load(&s->state->stage) == STREAM_STARTING && !s->mem.native &&
	       !base_load(&s->state->late);
}

int stream_close(struct stream *s)
{
	uint32_t before;
	bool safe;

	if (stream_memory_leave(s))
		base_store(&s->last, true);
	if (!base_load(&s->last))
		return keep(s, &safe);
	if (!stream_is_open(s) && !is_begun(s))
		return 0;
	if (stream_is_foreign(s))
		return 0; /* the end is the socket's own */
	stream_pump(s);
	stream_onesided_close(s);
	if (abandons(s)) {
		base_debug("stream: closed by the last who had it, with a reset");
		abandon(s);
		return 0;
	}
	base_debug("stream: closed by the last who had it");
	before = __atomic_fetch_or(&s->state->ends, STREAM_CLOSED | STREAM_SHUT_WR | STREAM_SHUT_RD,
				   __ATOMIC_ACQ_REL);
	BASE_POINT(stream_end_closed);
	if (!(before & STREAM_OUT_ENDED))
		end_say(s, STREAM_DUE_DISCONNECT);
	due(s, STREAM_DUE_FIN);
	BASE_POINT(stream_end_due);
	stream_undecided_hurry(s);
	push_locked(s);
	/* What had come by now was taken in above, unless it stopped at its bound */
	if (!s->mem.native && stream_is_open(s) && !stream_more(s))
		return done(s) ? 0 : -EAGAIN;
	return stream_close_more(s, &safe);
}

int stream_close_more(struct stream *s, bool *safe)
{
	int err;

	if (!base_load(&s->last))
		return keep(s, safe);
	err = stream_progress(s);
	*safe = true;
	if (err == -ENOMSG && base_load(&s->state->tx.hold_end))
		return err;
	if (done(s) || (err && err != -EAGAIN))
		return 0;
	*safe = is_acked(s, 0);
	return -EAGAIN;
}

bool stream_only_end_left(struct stream *s)
{
	return base_load(&s->last) && base_load(&s->state->ends) & STREAM_SAID &&
	       is_acked(s, END_OCTETS);
}
