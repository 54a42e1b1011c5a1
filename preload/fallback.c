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
 * The new connect() never waits here; a caller that has to does so behind. A connection to a
 * listener of this process, at which another one without DDP was waiting, may have taken octets of
 * the program's by then: these go first.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/libc.h"
#include "preload/plain.h"
#include "preload/probe.h"
#include "preload/report.h"
#include "preload/sock.h"

/* As long as that may take which takes no time */
#define PATIENCE BASE_NS_PER_S

/* The first who finds out does it, and the others wait for him. Hardly ever over a sleep. */
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

/* Octets of @p that the new connection has taken */
static size_t send_again(int fd, const char *p, size_t len)
{
	uint64_t deadline = base_deadline(base_now(), PATIENCE);
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	size_t done = 0;

	while (done < len && !base_deadline_passed(deadline, base_now())) {
		long n = libc_try(syscall(SYS_sendto, fd, p + done, len - done,
					  MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0));

		if (n < 0 && n != -EAGAIN && n != -EINTR)
			break;
		if (n == -EAGAIN)
			base_poll(&room, 1, deadline);
		done += (size_t)base_max(n, 0L);
	}
	return done;
}

/*
 * What was written, and ended, when connect() to a listener of this process had not waited. That is
 * on this host, so its kernel takes it without delay; a program that was told that its octets are
 * taken must not go on without them
 */
static void write_again(struct sock *s)
{
	const void *p;
	size_t len = s->stream->ops->held(s->stream, &p);

	if (send_again(s->fd, p, len) != len) {
		base_warn("descriptor %d: a new connection had no room for its first octets",
			  s->fd);
		base_sock_abort(s->fd);
	} else if (s->shut) {
		libc.shutdown(s->fd, s->shut - 1);
	}
}

static void fall_back(struct sock *s)
{
	struct stream_stats stats;

	s->stream->ops->stats(s->stream, &stats);
	/* Otherwise another process that has the socket too does this, or the peer has spoken */
	if (s->probing && stats.probe_error) {
		probe_note((struct sockaddr *)&s->peer, s->peer_len, PROBE_PLAIN, base_now());
		connect_again(s);
		write_again(s);
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
