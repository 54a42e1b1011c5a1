/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of sockets whose peer does not speak DDP.
 *
 * A server's connection is the kernel's as soon as its peer's first octets are no Request. If the
 * program speaks first and none has come by then, its octets go out as they are, but what comes in
 * is looked at until it is clear: a peer that was only slow must not have its Request read by the
 * program.
 *
 * A client that tried and got no answer has connected again, plainly (stream/life/again.c). A
 * connection to a listener of this process, at which another one without DDP was waiting, may have
 * taken octets of the program's by then: these go first, also if the program has closed it.
 *
 * A connection that a device could not begin begins anew over the program's socket.
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
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/rules/plain.h"
#include "preload/rules/probe.h"
#include "preload/rules/report.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/life.h"
#include "preload/sock/provider.h"
#include "preload/sock/reset.h"
#include "preload/sock/sets.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"

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

void fallback_renew(void)
{
	pthread_mutex_init(&lock, NULL);
}

void sock_remember(struct sock *s, const struct sockaddr *peer, socklen_t len)
{
	socklen_t room = sizeof(s->name);

	memset(&s->name, 0, sizeof(s->name));
	libc.getsockname(s->fd, (struct sockaddr *)&s->name, &room);
	s->peer_len = base_min(len, (socklen_t)sizeof(s->peer));
	memcpy(&s->peer, peer, s->peer_len);
}

/*
 * What was written, and ended, when connect() to a listener of this process had not waited. That is
 * on this host, so its kernel takes it without delay; a program that was told that its octets are
 * taken must not go on without them
 */
static void write_again(struct sock *s)
{
	const void *p;
	size_t urgent, len = stream_held(s->stream, &p, &urgent);
	uint64_t deadline = base_deadline(base_now(), sock_config.linger);
	int err = base_sock_send_all(s->fd, p, len, urgent, deadline);

	if (!err && s->shut)
		libc.shutdown(s->fd, s->shut - 1);
	/* A program that knows that it is connected is told that it is no longer */
	if (!err && !(s->connect_told && base_sock_ready(s->fd, POLLIN) & (POLLERR | POLLHUP)))
		return;
	if (err)
		base_warn("descriptor %d: the peer did not take the connection's first bytes: %s",
			  s->fd, strerror(-err));
	base_sock_abort(s->fd);
	reset_make(s->fd);
}

/* Why a Request came to nothing; the word of the peer's host, that it would not, was wrong */
static enum config_reason probe_reason(const struct sock *s, int err)
{
	enum config_reason reason = sock_reason(err);

	if (s->way == CONNECT_ASK &&
	    (reason == CONFIG_REASON_PEER_NOT_MPA || reason == CONFIG_REASON_PROBE_TIMEOUT ||
	     reason == CONFIG_REASON_PEER_CLOSED))
		return CONFIG_REASON_ASK_WRONG;
	return reason;
}

static void fall_back(struct sock *s)
{
	enum config_reason waived = single_flight_waived(s);
	struct stream_stats stats;

	stream_stats(s->stream, &stats);
	/* Otherwise another process that has the socket too does this, or the peer has spoken */
	if (stats.probe_error || waived)
		write_again(s);
	BASE_POINT(preload_fallback_due);
	sock_give_back(s, waived ? waived : probe_reason(s, -stats.probe_error));
}

void sock_fall_back(struct sock *s)
{
	pthread_mutex_lock(&lock);
	if (sock_role(s) == SOCK_STREAM_ON)
		fall_back(s);
	pthread_mutex_unlock(&lock);
}

/* Could the device not begin, and has nobody else begun anew yet? */
static bool is_given_up(const struct sock *s)
{
	struct stream_info info;

	if (s->accepted || sock_role(s) != SOCK_STREAM_ON || !sock_on_device(s))
		return false;
	stream_info(s->stream, &info);
	return info.start_error == ENODEV;
}

static int begin_anew(struct sock *s)
{
	bool asks = __atomic_load_n(&s->flight.asks, __ATOMIC_ACQUIRE);
	long tcp;
	int err;

	__atomic_store_n(&s->reported, true, __ATOMIC_RELAXED); /* it was none yet */
	sock_forget_stream(s);
	provider_forgo(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
	s->opts.detour = false;
	tcp = base_sock_connect(s->fd, (struct sockaddr *)&s->peer, s->peer_len);
	if (tcp && tcp != -EINPROGRESS)
		return (int)tcp;
	err = sock_connect(s, tcp != 0, false);
	/* Others still wait for what comes of it */
	if (!err)
		__atomic_store_n(&s->flight.asks, asks, __ATOMIC_RELEASE);
	return err;
}

int sock_leave_device(struct sock *s, int err)
{
	bool anew;

	pthread_mutex_lock(&lock);
	anew = is_given_up(s);
	if (anew)
		err = begin_anew(s);
	pthread_mutex_unlock(&lock);
	if (anew && !err) {
		sets_rekey(s);
		sock_tell(s);
	}
	return anew && !err ? stream_progress(s->stream) : err;
}

bool sock_speak_plain(struct sock *s)
{
	if (stream_speak_plain(s->stream) != -EAGAIN)
		return false;
	if (!sock_start_set(s, SOCK_START_SPOKEN))
		return true;
	report_plain(s->fd, CONFIG_REASON_GRACE_EXPIRED);
	plain_note(s->fd, CONFIG_REASON_GRACE_EXPIRED);
	return true;
}
