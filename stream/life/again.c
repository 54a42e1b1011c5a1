/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client whose probe came to nothing connects again, plainly.
 *
 * The first connection, over which the Request went, is reset. The kernel's socket is the same:
 * disconnected, it may connect anew, and everything that belongs to
 * it and not to the connection stays as it was: options, flags, the address that it was bound to,
 * duplicates of the descriptor in this process and in others, registrations in epoll sets. Only a
 * port that a bind() to port 0 chose is the kernel's to give again, and is asked for by name.
 *
 * There are servers that take the Request for the beginning of their work and, when that fails,
 * begin anew with another listener. A connection that comes while they are at it ends with the old
 * one. So who has answered is told that nothing more comes, and has the time of the answer to close
 * before the reset. Then it is left alone for some milliseconds; and where the new connection is
 * refused, or reset before the program has seen it, it is tried again for a second. What comes of
 * the last try is the kernel's to tell.
 *
 * Both locks are held, and nothing waits here; what is to be waited for is said as in start-up. The
 * addresses stand in the state, for a program that is executed meanwhile.
 */
#include "stream/life/life.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"

enum phase {
	AGAIN_END,     /* the first connection is */
	AGAIN_PAUSE,   /* there is none */
	AGAIN_CONNECT, /* the other one is under way */
};

#define TIMEOUT BASE_NS_PER_S
#define RESPITE (20 * BASE_NS_PER_MS)
#define PAUSE_MIN BASE_NS_PER_MS
#define PAUSE_MAX (64 * BASE_NS_PER_MS)

void stream_again_init(struct stream *s, const struct stream_param *param)
{
	struct stream_again *a = &s->state->again;

	if (!param->probe || !param->peer)
		return;
	a->peer_len = base_min(param->peer_len, (uint32_t)sizeof(a->peer));
	memcpy(&a->peer, param->peer, a->peer_len);
	if (param->name)
		memcpy(&a->name, param->name, sizeof(a->name));
}

/* It does not take the program's own port away: that fails where the kernel has kept it */
static void bind_again(int fd, const struct sockaddr_in6 *name)
{
	int saved = errno;

	if (base_address_port(name))
		syscall(SYS_bind, fd, name, base_address_len(name));
	errno = saved;
}

/* When to look again; others may have come to it meanwhile */
static int look_at(struct stream *s, uint64_t when, short events)
{
	base_store(&s->state->start_events, (uint32_t)events);
	base_store(&s->state->start_deadline, when);
	stream_start_join(s);
	return -EAGAIN;
}

static int pause_begin(struct stream *s, uint64_t length)
{
	s->state->again.phase = AGAIN_PAUSE;
	return look_at(s, base_deadline(base_now(), length), 0);
}

static bool is_late(const struct stream_again *a)
{
	return base_deadline_passed(a->limit, base_now());
}

/* The server was there, and may be there again */
static int refused(struct stream *s)
{
	struct stream_again *a = &s->state->again;

	a->pause = base_min(base_max(2 * a->pause, PAUSE_MIN), PAUSE_MAX);
	return pause_begin(s, a->pause);
}

/* -EAGAIN, or -ENOMSG: the rest is the kernel's to tell */
static int connect_again(struct stream *s)
{
	struct stream_again *a = &s->state->again;
	struct sockaddr_in6 peer = a->peer, name = a->name;
	int fd = stream_fd(s), err;

	bind_again(fd, &name);
	err = base_sock_connect(fd, (struct sockaddr *)&peer,
				base_min(base_once(a->peer_len), (uint32_t)sizeof(peer)));
	if (err && err != -EINPROGRESS)
		base_warn("a peer without DDP cannot be connected to again: %s", strerror(-err));
	if (err != -EINPROGRESS)
		return -ENOMSG;
	BASE_POINT(stream_again_connecting);
	a->phase = AGAIN_CONNECT;
	return look_at(s, a->limit, POLLOUT);
}

static int failed(struct stream *s)
{
	int fd = stream_fd(s), err;

	if (is_late(&s->state->again))
		return -ENOMSG;
	err = base_sock_error(fd);
	base_sock_abort(fd);
	if (err == ECONNREFUSED || err == ECONNRESET)
		return refused(s);
	/* It says so once more */
	connect_again(s);
	return -ENOMSG;
}

/* A server that says more than so much is not about to close */
#define LAST_WORDS (64 * 1024)

/* Has the server nothing more to say, or more than is waited for? What it says is nobody's */
static bool is_closed(int fd)
{
	int saved = errno;
	char octets[512];
	size_t sum = 0;
	bool closed;
	long n;

	do {
		n = syscall(SYS_recvfrom, fd, octets, sizeof(octets), MSG_DONTWAIT, NULL, NULL);
		sum += n > 0 ? (size_t)n : 0;
	} while (n > 0 && sum < LAST_WORDS);
	if (n > 0) {
		errno = saved;
		return true;
	}
	closed = !n || (errno != EAGAIN && errno != EINTR);
	errno = saved;
	return closed;
}

static bool is_due(const struct stream_state *st)
{
	return base_deadline_passed(base_load(&st->start_deadline), base_now());
}

static int drop(struct stream *s, uint64_t respite)
{
	s->state->again.limit = base_deadline(base_now(), RESPITE + TIMEOUT);
	s->rnic->carrier->abort(&s->mem, stream_fd(s));
	BASE_POINT(stream_again_dropped);
	return pause_begin(s, respite);
}

/* The first connection's end, for which it is time */
static int end(struct stream *s)
{
	if (!is_closed(stream_fd(s)) && !is_due(s->state))
		return -EAGAIN;
	return drop(s, base_min(RESPITE, s->start_limit));
}

static int connecting(struct stream *s)
{
	short ready = base_sock_ready(stream_fd(s), POLLOUT);

	if (ready & (POLLERR | POLLHUP))
		return failed(s);
	return ready || is_late(&s->state->again) ? -ENOMSG : -EAGAIN;
}

static int go(struct stream *s)
{
	switch (base_once(s->state->again.phase)) {
	case AGAIN_END:
		return end(s);
	case AGAIN_PAUSE:
		return is_due(s->state) ? connect_again(s) : -EAGAIN;
	default:
		return connecting(s);
	}
}

int stream_again_go(struct stream *s)
{
	int err = go(s);

	if (err == -EAGAIN)
		return err;
	BASE_POINT(stream_again_connected);
	stream_undecided_end(s);
	base_store(&s->probe_error,
		   (int)base_min(base_once(s->state->again.error), STREAM_ERROR_MAX));
	base_store(&s->state->stage, STREAM_PLAIN);
	return err;
}

/* Nothing more comes, and nothing more is wanted */
static int end_begin(struct stream *s, uint64_t limit)
{
	int saved = errno;

	syscall(SYS_shutdown, stream_fd(s), SHUT_WR);
	errno = saved;
	s->state->again.phase = AGAIN_END;
	return look_at(s, limit, POLLIN);
}

/*
 * Is it one that may yet close? Not who was not there, has closed or said nothing. A device ends
 * both directions; and the program's own port would not be free for a while
 */
static bool may_close(const struct stream *s, int error)
{
	return !s->mem.native && !base_address_port(&s->state->again.name) && error != ETIMEDOUT &&
	       error != ECONNRESET && error != EHOSTUNREACH;
}

int stream_again_begin(struct stream *s, int error, uint64_t due)
{
	struct stream_again *a = &s->state->again;
	uint64_t limit = base_min(due, base_deadline(base_now(), TIMEOUT));

	a->error = (uint32_t)error;
	a->pause = 0;
	base_store(&s->state->stage, STREAM_AGAIN);
	BASE_POINT(stream_again_begun);
	if (may_close(s, error))
		end_begin(s, limit);
	else
		drop(s, error == ETIMEDOUT ? 0 : base_min(RESPITE, s->start_limit));
	if (s->mem.native)
		s->rnic->native->follow(s->mem.native, stream_fd(s));
	return stream_again_go(s);
}
