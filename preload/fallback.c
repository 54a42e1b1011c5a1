/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of sockets whose peer does not speak DDP.
 *
 * A server's connection is the kernel's as soon as its peer's first octets are no Request. If the
 * program speaks first and none has come by then, its octets go out as they are, but what comes in
 * is looked at until it is clear: a peer that was only slow must not have its Request read by the
 * program.
 *
 * A client that tried and got no answer connects again, plainly.
 * The first connection, over which the Request went, was reset when start-up failed. The
 * kernel's socket is the same: disconnected, it may connect anew, and everything that belongs to
 * it and not to the connection stays as it was: options, flags, the address that it was bound to,
 * duplicates of the descriptor in this process and in others, registrations in epoll sets. Only a
 * port that a bind() to port 0 chose is the kernel's to give again, and is asked for by name.
 *
 * The new connect() never waits here; a caller that has to does so behind.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/plain.h"
#include "preload/probe.h"
#include "preload/report.h"
#include "preload/sock.h"

/* The first who finds out does it, and the others wait for him. Not over a sleep. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fallback_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void fallback_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

enum config_reason sock_reason(int err)
{
	static const struct {
		int error;
		enum config_reason reason;
	} reasons[] = {
		{ ETIMEDOUT, CONFIG_REASON_PROBE_TIMEOUT },
		{ ECONNREFUSED, CONFIG_REASON_REFUSED },
		{ EPROTONOSUPPORT, CONFIG_REASON_PEER_PARAMETERS },
		{ ECONNRESET, CONFIG_REASON_PEER_CLOSED },
		{ EPIPE, CONFIG_REASON_PEER_CLOSED },
		{ ENOMEM, CONFIG_REASON_NO_MEMORY },
		{ ENODEV, CONFIG_REASON_PROVIDER_UNAVAILABLE },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].error == -err)
			return reasons[i].reason;
	return CONFIG_REASON_PEER_NOT_MPA;
}

void sock_remember(struct sock *s, const struct sockaddr *peer, socklen_t len)
{
	socklen_t room = sizeof(s->name);

	memset(&s->name, 0, sizeof(s->name));
	getsockname(s->fd, (struct sockaddr *)&s->name, &room);
	s->peer_len = base_min(len, (socklen_t)sizeof(s->peer));
	memcpy(&s->peer, peer, s->peer_len);
}

/* A port that the program had by bind(), and may have told somebody */
static void bind_again(struct sock *s)
{
	/* At the same place in both families */
	const struct sockaddr_in *name = (const struct sockaddr_in *)&s->name;

	/* fails where the kernel has kept it */
	if (name->sin_port)
		bind(s->fd, (const struct sockaddr *)&s->name,
		     s->name.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6));
}

static void connect_again(struct sock *s)
{
	int err;

	bind_again(s);
	err = base_sock_connect(s->fd, (const struct sockaddr *)&s->peer, s->peer_len);
	if (err && err != -EINPROGRESS)
		base_warn("a peer without DDP cannot be connected to again: %s", strerror(-err));
}

static void fall_back(struct sock *s)
{
	struct stream_stats stats;

	s->stream->ops->stats(s->stream, &stats);
	/* Otherwise another process that has the socket too does this, or the peer has spoken */
	if (s->probing && stats.probe_error) {
		probe_note((struct sockaddr *)&s->peer, s->peer_len, PROBE_PLAIN, base_now());
		connect_again(s);
	}
	sock_give_back(s, sock_reason(-stats.probe_error));
}

void sock_fall_back(struct sock *s)
{
	pthread_mutex_lock(&lock);
	if (sock_role(s) == SOCK_STREAM_ON)
		fall_back(s);
	pthread_mutex_unlock(&lock);
}

bool sock_speak_plain(struct sock *s)
{
	if (s->stream->ops->speak_plain(s->stream) != -EAGAIN)
		return false;
	if (__atomic_exchange_n(&s->late, true, __ATOMIC_ACQ_REL))
		return true;
	base_info("descriptor %d: %s", s->fd, config_reason_text(CONFIG_REASON_GRACE_EXPIRED));
	report_plain(CONFIG_REASON_GRACE_EXPIRED);
	plain_note(s->fd, CONFIG_REASON_GRACE_EXPIRED);
	return true;
}

void sock_settle(struct sock *s)
{
	struct stream_stats stats;

	if (!__atomic_exchange_n(&s->unsettled, false, __ATOMIC_ACQ_REL))
		return;
	s->stream->ops->stats(s->stream, &stats);
	if (stats.opened)
		probe_note((struct sockaddr *)&s->peer, s->peer_len, PROBE_DDP, base_now());
}
