/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets in and out.
 *
 * The wait is here and not below: a stream never sleeps. How long a call may wait is asked of
 * the kernel's socket when it comes to that (O_NONBLOCK, SO_RCVTIMEO, SO_SNDTIMEO), because
 * another process may have changed it.
 */
#include "preload/octets.h"

#include <signal.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/attend.h"
#include "preload/wait.h"
#include "stream/cursor.h"

struct sock *octets_stream(int fd)
{
	struct sock *s = sock_get(fd);

	if (s && sock_role(s) == SOCK_STREAM_ON)
		return s;
	sock_put(s);
	return NULL;
}

static uint64_t grace_time(const struct sock *s)
{
	if (sock_config.grace != CONFIG_COMPUTED)
		return sock_config.grace;
	return base_max(5 * BASE_NS_PER_MS, 2 * base_sock_rtt(s->stream->fd));
}

/* A server that speaks first waits a moment for a Request before it takes its peer for plain */
static int grace(struct sock *s)
{
	int err;

	if (!s->accepted || s->mode != CONFIG_USE_AUTO ||
	    s->stream->ops->progress(s->stream) != -EAGAIN)
		return 0;
	err = wait_levels(s, STREAM_WRITABLE, base_deadline(base_now(), grace_time(s)));
	if (err == -EAGAIN && s->stream->ops->progress(s->stream) == -EAGAIN)
		sock_give_back(s, CONFIG_REASON_GRACE_EXPIRED);
	return sock_role(s) == SOCK_PLAIN ? OCTETS_THEIRS : 0;
}

/*
 * Waits for a level as the socket's options and @flags allow: 0 try again, or the errno to return.
 * A call without a time-out is one that SA_RESTART restarts. The options count as they are when a
 * call has to wait for the first time.
 */
static int io_wait(struct sock *s, unsigned int level, int flags, uint64_t *deadline)
{
	int option = level == STREAM_READABLE ? SO_RCVTIMEO : SO_SNDTIMEO;
	uint64_t limit;
	int err;

	if (flags & MSG_DONTWAIT)
		return -EAGAIN;
	if (!*deadline) {
		if (base_sock_is_nonblock(s->stream->fd))
			return -EAGAIN;
		limit = base_sock_timeout(s->stream->fd, option);
		*deadline = limit == BASE_NEVER ? limit : base_deadline(base_now(), limit);
	}
	err = wait_once(s, level, *deadline);
	return err == -EINTR && *deadline == BASE_NEVER ? CALL_RESTART : err;
}

/* The iovec without its first @done octets, in @rest; how many pieces there are left */
static int iov_rest(const struct iovec *iov, int n, size_t done, struct iovec *rest, int room)
{
	struct stream_cursor c = { iov, n, 0 };
	int k = 0;
	char *p;

	stream_cursor_skip(&c, done);
	while (k < room) {
		size_t len = stream_cursor_next(&c, SIZE_MAX, &p);

		if (!len)
			break;
		rest[k++] = (struct iovec){ p, len };
	}
	return k;
}

#define PIECES 64

long octets_in(struct sock *s, const struct iovec *iov, int n, int flags)
{
	size_t want = stream_iov_len(iov, n), sum = 0;
	bool all = (flags & MSG_WAITALL) && !(flags & (MSG_PEEK | MSG_DONTWAIT));
	uint64_t deadline = 0;
	struct iovec rest[PIECES];
	ssize_t got;
	long err = 0;

	if (flags & MSG_OOB)
		return -EINVAL;
	do {
		int k = iov_rest(iov, n, sum, rest, PIECES);

		got = s->stream->ops->recv(s->stream, rest, k, flags);
		if (got > 0)
			sum += (size_t)got;
		else if (got == -ENOMSG)
			sock_fall_back(s);
		if (got == -EAGAIN)
			err = io_wait(s, STREAM_READABLE, flags, &deadline);
		else if (got <= 0)
			break;
	} while (!err && (all || !sum) && sum < want);
	attend_owing(s);
	if (sum)
		return (long)sum;
	return err ? err : got;
}

static long pipe_broken(int flags)
{
	if (!(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return -EPIPE;
}

long octets_out(struct sock *s, const struct iovec *iov, int n, int flags)
{
	size_t want = stream_iov_len(iov, n), sum = 0;
	uint64_t deadline = 0;
	struct iovec rest[PIECES];
	ssize_t sent = 0;
	long err = grace(s);

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	while (!err && sum < want) {
		int k = iov_rest(iov, n, sum, rest, PIECES);

		sent = s->stream->ops->send(s->stream, rest, k);
		if (sent >= 0)
			sum += (size_t)sent;
		else if (sent == -EAGAIN)
			err = io_wait(s, STREAM_WRITABLE, flags, &deadline);
		else
			err = sent;
	}
	attend_owing(s);
	if (sum)
		return (long)sum;
	if (err == -ENOMSG)
		sock_fall_back(s);
	return err == -EPIPE ? pipe_broken(flags) : err;
}

long octets_recv(int fd, const struct iovec *iov, int n, int flags)
{
	struct sock *s = octets_stream(fd);
	long got = s ? octets_in(s, iov, n, flags) : OCTETS_THEIRS;

	sock_put(s);
	return got;
}

long octets_send(int fd, const struct iovec *iov, int n, int flags)
{
	struct sock *s = octets_stream(fd);
	long sent = s ? octets_out(s, iov, n, flags) : OCTETS_THEIRS;

	sock_put(s);
	return sent;
}
