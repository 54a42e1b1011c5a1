/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a TCP connection to an open stream: MPA's start-up with forty bytes of private data
 * each way (protocol/hello.c).
 *
 * It goes as far as it can without waiting, each time anybody asks. The passive side answers a
 * complete Request at once; a peer whose first bytes are no MPA is left as it was. The passive
 * side may not send before the first FPDU (RFC 5044 section 7.1.2), and of sockets either may speak
 * first: so the active side asks for an RTR (RFC 6581 section 9.2), which goes right behind the
 * Reply. There are devices that serve nobody else.
 */
#include "stream/life/life.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"

/* Messages that credits do not count, and that a peer may send besides (docs/stream-wire.md) */
#define UNCOUNTED 16

static int private_data_take(struct stream *s)
{
	uint8_t pd[MPA_PD_MAX];
	size_t len = sizeof(pd);
	int err = s->rnic->private_data(&s->mem, pd, &len);

	return err ? err : stream_hello_take(s, pd, len);
}

static void opened(struct stream *s)
{
	struct stream_state *st = s->state;
	struct rnic_stream_info info;
	bool room;

	s->rnic->info(&s->mem, &info);
	base_store(&s->looked_behind, info.alone);
	/* The kernel's soft iWARP, if that is the peer, wants a CRC in one piece */
	s->rnic->align(&s->mem, info.crc && !stream_has(s, STREAM_FEATURE_CUT));
	base_store(&st->may_send, info.may_send);
	BASE_POINT(stream_start_opening);
	/* Where writes were taken before, there has been room all the time */
	room = stream_hold_room(s);
	base_store(&st->stage, STREAM_OPEN);
	if (!room)
		__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
	base_debug("stream: open as %s, MULPDU %u, features %#x",
		   s->initiator ? "initiator" : "responder", info.mulpdu, st->features);
}

/* The Request is here */
static int answer(struct stream *s)
{
	uint8_t pd[STREAM_HELLO_MAX];
	int err;

	if (base_load(&s->state->late)) {
		base_warn("stream: a Request has come after the program had written plainly: "
			  "reset");
		return -ECONNRESET;
	}
	err = private_data_take(s);
	BASE_POINT(stream_start_judged);
	if (err) {
		base_warn("stream: a Request whose private data cannot be served: %d", err);
		s->rnic->reject(&s->mem, stream_fd(s), NULL, 0);
		s->rnic->shutdown(&s->mem, stream_fd(s));
		s->state->rejected = true;
		return err;
	}
	err = s->rnic->accept(&s->mem, stream_fd(s), pd, stream_hello_put(s, pd));
	if (!err)
		opened(s);
	return err;
}

/* What the provider's start-up has come to */
static int judge(struct stream *s, int state)
{
	int err;

	switch (state) {
	case RNIC_STREAM_REQUEST:
		return answer(s);
	case RNIC_STREAM_OPEN:
		err = private_data_take(s);
		if (!err)
			opened(s);
		return err;
	case RNIC_STREAM_REJECTED:
		return -ECONNREFUSED;
	case RNIC_STREAM_STARTING:
		return -EAGAIN;
	default:
		return state < 0 ? state : -ECONNRESET;
	}
}

/* Credits are given only for what a device has room for */
static void credits_fit(struct stream *s)
{
	uint32_t room;

	if (!s->mem.native)
		return;
	room = s->rnic->native->messages(s->mem.native);
	s->credits = (uint16_t)base_min(s->credits, base_max(room, UNCOUNTED + 1u) - UNCOUNTED);
	base_store(&s->state->tx.limit, s->credits);
}

static int provider_begin(struct stream *s)
{
	struct stream_state *st = s->state;
	struct rnic_window sgl = { .to = STREAM_SGL_TO,
				   .len = RS_SGL_LEN + s->slots * sizeof(struct rs_iomap),
				   .tag = STREAM_SGL_WINDOW };
	struct rnic_window ring = { .to = STREAM_RING_TO,
				    .len = s->ring,
				    .tag = STREAM_RING_WINDOW };
	struct rnic_stream_param param = {
		.initiator = s->initiator,
		.crc = !s->no_crc,
		.markers = s->markers,
		.mpa_rev = 2,
		.p2p = true,
		.ord = s->initiator ? 1 : 0, /* as rsockets says it */
	};
	int err;

	credits_fit(s);
	param.messages = (uint16_t)base_min(s->credits + UNCOUNTED, UINT16_MAX);
	err = s->rnic->init(&s->mem, stream_fd(s), &param);
	if (!err)
		err = s->rnic->window(&s->mem, STREAM_SGL_WINDOW, &sgl);
	if (!err)
		err = s->rnic->window(&s->mem, STREAM_RING_WINDOW, &ring);
	if (err)
		return err;
	st->sgl_stag = sgl.stag;
	st->sgl_to = sgl.to;
	st->ring_stag = ring.stag;
	st->ring_to = ring.to;
	base_store(&st->stage, STREAM_STARTING);
	stream_undecided_begin(s);
	return 0;
}

/* TCP's connect(), or what a device has in its place: has it come to an end? */
static int carrier_connected(struct stream *s)
{
	short events = 0;
	int err = s->rnic->carrier->connect(&s->mem, stream_fd(s), &events);

	base_store(&s->state->start_events, events);
	if (!err)
		base_store(&s->state->stage, STREAM_SINGLE_FLIGHT);
	return err;
}

static int before_start(struct stream *s)
{
	int err = 0;

	/* What was accepted is connected, or its end shows when it is read */
	if (!s->initiator && !s->mem.native)
		base_store(&s->state->stage, STREAM_SINGLE_FLIGHT);
	else if (base_load(&s->state->stage) == STREAM_CONNECTING)
		err = carrier_connected(s);
	if (!err)
		err = stream_single_flight(s);
	return err ? err : provider_begin(s);
}

static int start_go(struct stream *s)
{
	uint8_t pd[STREAM_HELLO_MAX];
	short events = POLLIN;
	size_t len;
	int state, err;

	if (base_load(&s->state->stage) < STREAM_STARTING) {
		err = before_start(s);
		if (err)
			return err;
	}
	len = s->initiator ? stream_hello_put(s, pd) : 0;
	state = s->rnic->start(&s->mem, stream_fd(s), len ? pd : NULL, len, &events);
	base_store(&s->state->start_events, events);
	return judge(s, state);
}

/*
 * connect() may say why. A program that accepted, or whose connect() has returned, is told that the
 * connection was reset
 */
static uint32_t told_error(const struct stream *s, int err)
{
	return s->initiator && !base_load(&s->state->hold) ? (uint32_t)-err : ECONNRESET;
}

/* A responder's peer has ended it in order, and has said nothing: so it is told to the program */
static bool is_empty(const struct stream *s, int err)
{
	return err == -ENOMSG && !s->initiator && s->only && !s->mem.native &&
	       base_sock_unread(stream_fd(s)) <= 0;
}

/* What was closed with nothing to deliver does not connect again, nor reset a silent peer */
static bool is_closed(const struct stream *s)
{
	return base_load(&s->state->ends) & STREAM_CLOSED && !base_load(&s->state->tx.hold_end);
}

/* Nothing was said, and nobody waits for anything: TCP's end is enough */
static int end_unheard(struct stream *s)
{
	stream_undecided_end(s);
	base_store(&s->start_error, ECONNRESET);
	base_store(&s->failed, true);
	base_debug("stream: ended before anything was said");
	base_store(&s->state->stage, STREAM_FAILED);
	stream_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_DRY);
	return -ECONNRESET;
}

static int start_failed(struct stream *s, int err)
{
	/* Who accepts a connection that is reset already finds that where another one connects */
	bool up = !s->initiator || base_load(&s->state->stage) == STREAM_STARTING;
	bool probed = s->probe && (up || s->detour) && !stream_is_apart(s);
	bool plain = probed || (err == -ENOMSG && !s->only);
	/* What a device would have carried has no TCP connection yet */
	bool anew = probed || (err == -ENOMSG && s->mem.native);
	uint64_t due = base_load(&s->state->start_deadline);

	if (is_empty(s, err) || (is_closed(s) && !base_load(&s->state->heard) && !s->initiator))
		return end_unheard(s);
	stream_undecided_end(s);
	if (stream_is_apart(s) && err != -ENOMSG)
		err = -ENODEV;
	else if (!probed && err == -EBADMSG)
		err = -ENODEV; /* software may be able to use the answer that the device cannot */
	else if (probed && !up)
		err = -EHOSTUNREACH;
	base_store(&s->start_error, plain || probed ? 0 : (uint32_t)-err);
	if (err == -ENOMSG && s->only) {
		base_debug("stream: the peer speaks plain TCP, which is refused");
		err = -ECONNRESET;
	}
	base_store(&s->failed, up && !plain);
	base_debug("stream: start-up ended with %d", err);
	if (probed && s->probed)
		s->probed(s->ctx);
	if (anew && base_once(s->state->again.peer_len) && !is_closed(s))
		return stream_again_begin(s, probed ? -err : ETIMEDOUT, due);
	if ((anew || !plain) && !s->state->rejected)
		s->rnic->carrier->abort(&s->mem, stream_fd(s));
	if (probed) {
		base_store(&s->probe_error, -err);
		err = -ENOMSG;
	}
	base_store(&s->state->error, plain ? 0 : told_error(s, err));
	base_store(&s->state->stage, plain ? STREAM_PLAIN : STREAM_FAILED);
	stream_end(s, plain ? 0 : STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_DRY);
	return err;
}

/* Both locks */
static int speak_plain(struct stream *s)
{
	struct rnic_stream_info info;

	if (base_load(&s->state->stage) != STREAM_STARTING || s->only)
		return -EALREADY;
	s->rnic->info(&s->mem, &info);
	if (info.heard)
		return -EALREADY;
	base_store(&s->state->late, 1);
	return -EAGAIN;
}

int stream_speak_plain(struct stream *s)
{
	return stream_with_both(s, speak_plain);
}

/* Both locks */
static int decline(struct stream *s)
{
	if (base_load(&s->state->stage) >= STREAM_STARTING)
		return -EALREADY;
	s->rnic->reject(&s->mem, stream_fd(s), NULL, 0);
	s->state->rejected = true;
	start_failed(s, -ECONNRESET);
	/* Who gets the socket finds nothing of it */
	stream_memory_unname(s);
	return 0;
}

int stream_decline(struct stream *s)
{
	if (s->initiator || !s->mem.native || stream_is_foreign(s))
		return -EALREADY;
	return stream_with_both(s, decline);
}

int stream_start(struct stream *s)
{
	int err;

	if (stream_is_shut_here(s))
		return -ENOTCONN;
	switch (base_load(&s->state->stage)) {
	case STREAM_OPEN:
		return 0;
	case STREAM_AGAIN:
		return stream_again_go(s);
	case STREAM_PLAIN:
		return -ENOMSG;
	case STREAM_FAILED:
		return -ENOTCONN; /* error has said why */
	default:
		break;
	}
	do {
		err = start_go(s);
	} while (err == -EAGAIN && stream_undecided_again(s));
	if (err == -EAGAIN)
		err = stream_undecided_look(s);
	if (err == -EAGAIN)
		return err;
	if (err)
		return start_failed(s, err);
	stream_undecided_end(s);
	stream_write_retry_begin(s);
	return 0;
}
