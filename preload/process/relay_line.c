/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a relay does: octets from a local socket to a stream and back, in bounded buffers.
 *
 * Ends pass through as they come: SHUTDOWN is a shutdown of the local socket and the other way
 * round, a program that closes lets the stream end as its close() would have, and what it left
 * unread is a reset. A reset of the peer's is one for the program as far as a local socket can
 * say it: ECONNRESET when octets of the program's were still on their way, else the end and
 * EPIPE.
 *
 * Where start-up finds that the peer speaks plain TCP, the octets are the kernel's socket's own.
 */
#include "preload/process/relay.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/map.h"
#include "base/sockutil.h"
#include "preload/sock/wakeup.h"

#define ROOM (64 * 1024u)
/* One way is worked on so often before the other one has its turn */
#define TURN 16
/* Acknowledgements wake nobody, nor do processes that share a stream and cannot wake it */
#define ACKED_POLL (20 * BASE_NS_PER_MS)
/* One of those may have died before it rang */
#define LOOK_BESIDE_OTHERS (500 * BASE_NS_PER_MS)

int relay_line_init(struct relay_line *l)
{
	int err = base_map_create(2 * ROOM, (void **)&l->out.octets);

	if (!err)
		l->in.octets = l->out.octets + ROOM;
	return err;
}

void relay_line_uninit(struct relay_line *l)
{
	base_map_destroy(l->out.octets, 2 * ROOM);
	l->out.octets = l->in.octets = NULL;
}

/* --- sockets of the kernel's --- */

static ssize_t fd_recv(int fd, void *p, size_t n, int flags)
{
	ssize_t got = syscall(SYS_recvfrom, fd, p, n, flags | MSG_DONTWAIT, NULL, NULL);

	return got < 0 ? -errno : got;
}

static ssize_t fd_send(int fd, const void *p, size_t n)
{
	ssize_t sent = syscall(SYS_sendto, fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);

	return sent < 0 ? -errno : sent;
}

static void fd_shut(int fd, int how)
{
	syscall(SYS_shutdown, fd, how);
}

/* --- the peer --- */

static bool is_over(ssize_t err)
{
	return err < 0 && err != -EAGAIN && err != -EINTR;
}

/* A client that tried may have taken octets; who found out that it tried in vain sends them */
static void peer_plain(struct relay_line *l)
{
	struct stream_stats stats;
	const void *held;
	size_t urgent, len = stream_held(l->stream, &held, &urgent);

	l->plain = true;
	stream_stats(l->stream, &stats);
	if (stats.probe_error && base_sock_send_all(stream_fd(l->stream), held, len, urgent,
						    base_deadline(base_now(), l->linger)))
		base_sock_abort(stream_fd(l->stream));
}

static ssize_t peer_recv(struct relay_line *l, void *p, size_t n, int flags)
{
	struct iovec iov = { p, n };
	ssize_t got;

	if (!l->plain) {
		got = stream_recv(l->stream, &iov, 1, flags);
		if (got != -ENOMSG)
			return got;
		peer_plain(l);
	}
	return fd_recv(stream_fd(l->stream), p, n, flags);
}

/* The program may be the one who speaks first: a moment, and then as TCP */
static bool is_late(struct relay_line *l)
{
	if (l->late || !l->grace || stream_progress(l->stream) != -EAGAIN)
		return l->late;
	if (!l->grace_end)
		l->grace_end = base_deadline(base_now(), l->grace);
	if (!base_deadline_passed(l->grace_end, base_now()))
		return false;
	l->late = stream_speak_plain(l->stream) == -EAGAIN;
	/* Part of a Request is here, and the rest is waited for as any input */
	if (!l->late)
		l->grace_end = BASE_NEVER;
	return l->late;
}

static bool is_starting(const struct relay_line *l)
{
	return l->grace && !(stream_levels(l->stream, NULL) & STREAM_STARTED);
}

static ssize_t peer_send(struct relay_line *l, void *p, size_t n)
{
	struct iovec iov = { p, n };

	if (l->plain || is_late(l))
		return fd_send(stream_fd(l->stream), p, n);
	return is_starting(l) ? -EAGAIN : stream_send(l->stream, &iov, 1);
}

static void peer_shut(struct relay_line *l)
{
	if (l->plain || l->late)
		fd_shut(stream_fd(l->stream), SHUT_WR);
	else
		stream_shutdown(l->stream, SHUT_WR);
}

/* --- the end of a line --- */

static void line_over(struct relay_line *l)
{
	base_fd_close(stream_fd(l->stream));
	stream_set_fd(l->stream, -1);
	l->over = true;
}

/* What close() and its kin have said: is something left to do? */
static void line_left(struct relay_line *l, int left, bool enough)
{
	if (left == -ENOMSG && !l->plain)
		peer_plain(l);
	if (left != -EAGAIN || enough)
		line_over(l);
}

/*
 * @hard: something of the peer's did not reach the program, and it is told by a reset. Others that
 * have the stream would go on without it: they are told, too
 */
static void line_close(struct relay_line *l, bool hard)
{
	struct linger reset = { 1, 0 };

	base_fd_close(l->local);
	l->local = -1;
	if (hard && !stream_alone(l->stream))
		base_sock_abort(stream_fd(l->stream));
	else if (hard)
		syscall(SYS_setsockopt, stream_fd(l->stream), SOL_SOCKET, SO_LINGER, &reset,
			sizeof(reset));
	l->linger_end = base_deadline(base_now(), l->linger);
	l->closing = true;
	line_left(l, stream_close(l->stream), false);
}

/* A peer that takes something is not given up, as slow as it may be */
static void linger_on(struct relay_line *l)
{
	uint64_t acked = base_sock_acked(stream_fd(l->stream));

	if (acked == l->acked)
		return;
	l->acked = acked;
	l->linger_end = base_deadline(base_now(), l->linger);
}

static void line_linger(struct relay_line *l)
{
	bool safe = false;
	int left = stream_close_more(l->stream, &safe);

	linger_on(l);
	line_left(l, left, safe || base_deadline_passed(l->linger_end, base_now()));
}

/* Has the program gone? Then who else has the stream may rely on it */
static bool is_gone(struct relay_line *l)
{
	l->gone |= base_sock_ready(l->local, 0) & POLLHUP;
	return l->gone;
}

/* The peer takes nothing more: what the program writes from now on is EPIPE */
static void out_refused(struct relay_line *l)
{
	l->out.at = l->out.end;
	l->out.ended = l->out.told = true;
	fd_shut(l->local, SHUT_RD);
}

/* So does the program: it has gone, or it has shut this way and only writes */
static void in_refused(struct relay_line *l)
{
	if (is_gone(l))
		return;
	l->in.at = l->in.end;
	l->in.ended = l->in.told = true;
	if (!l->plain)
		stream_shutdown(l->stream, SHUT_RD);
}

/* --- the two ways: true, something was done --- */

/* What came for a way; who failed ends the line, @hard if it went without having read everything */
static bool way_filled(struct relay_line *l, struct relay_way *w, ssize_t n, bool hard)
{
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n < 0)
		line_close(l, hard);
	w->ended = n == 0;
	w->at = 0;
	w->end = (size_t)base_max(n, 0);
	return !l->closing;
}

static bool out_fill(struct relay_line *l)
{
	struct relay_way *w = &l->out;

	if (w->at < w->end || w->ended)
		return false;
	return way_filled(l, w, fd_recv(l->local, w->octets, ROOM, 0), true);
}

static bool out_empty(struct relay_line *l)
{
	struct relay_way *w = &l->out;
	ssize_t n;

	if (w->at == w->end) {
		if (!w->ended || w->told)
			return false;
		w->told = true;
		if (!is_gone(l))
			peer_shut(l);
		return true;
	}
	n = peer_send(l, w->octets + w->at, w->end - w->at);
	if (n == -EPIPE)
		out_refused(l);
	else if (is_over(n))
		line_close(l, false);
	else if (n > 0)
		w->at += (size_t)n;
	return n > 0;
}

/*
 * Only what was there while the program was: what comes later is another one's, which may have
 * waited for the program's end
 */
static bool in_fill(struct relay_line *l)
{
	struct relay_way *w = &l->in;
	ssize_t n;

	if (w->at < w->end || w->ended)
		return false;
	n = peer_recv(l, w->octets, ROOM, MSG_PEEK);
	if (n > 0) {
		if (is_gone(l))
			return false;
		n = peer_recv(l, w->octets, (size_t)n, 0);
	}
	return way_filled(l, w, n, false);
}

static bool in_empty(struct relay_line *l)
{
	struct relay_way *w = &l->in;
	ssize_t n;

	if (w->at == w->end) {
		if (!w->ended || w->told)
			return false;
		w->told = true;
		fd_shut(l->local, SHUT_WR);
		return true;
	}
	n = fd_send(l->local, w->octets + w->at, w->end - w->at);
	if (n > 0)
		w->at += (size_t)n;
	else if (is_over(n))
		in_refused(l);
	return n > 0;
}

static void way_go(struct relay_line *l, bool (*fill)(struct relay_line *l),
		   bool (*empty)(struct relay_line *l))
{
	bool more = true;

	for (int i = 0; i < TURN && more && !l->closing; i++) {
		more = fill(l);
		if (!l->closing)
			more |= empty(l);
	}
}

static void line_go(struct relay_line *l)
{
	if (l->closing) {
		line_linger(l);
		return;
	}
	if (!l->plain)
		stream_progress(l->stream);
	is_gone(l);
	way_go(l, out_fill, out_empty);
	if (!l->closing && !l->gone)
		way_go(l, in_fill, in_empty);
	if (l->closing)
		return;
	if ((l->gone && l->out.ended && l->out.at == l->out.end) || (l->out.told && l->in.told))
		line_close(l, l->gone && l->in.at < l->in.end);
}

/* --- waiting --- */

static short local_events(const struct relay_line *l)
{
	short events = 0;

	if (l->out.at == l->out.end && !l->out.ended)
		events |= POLLIN;
	if (l->in.at < l->in.end && !l->gone)
		events |= POLLOUT;
	return events;
}

static short peer_events(struct relay_line *l)
{
	bool in = l->in.at == l->in.end && !l->in.ended, out = l->out.at < l->out.end;

	if (l->closing)
		return stream_wait_events(l->stream, 0);
	if (l->plain)
		return (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
	return stream_wait_events(l->stream,
				  (in ? STREAM_READABLE : 0) | (out ? STREAM_WRITABLE : 0));
}

/*
 * To read from the peer takes in whatever it sent, such as room for the way that was tried before;
 * and a turn may be over with octets left. The kernel has nothing of that, and wakes nobody for it.
 */
static bool line_may_go(const struct relay_line *l)
{
	unsigned int levels = stream_levels(l->stream, NULL), wanted = 0;

	if (l->closing || l->plain || !(levels & STREAM_STARTED))
		return false;
	if (l->in.at == l->in.end && !l->in.ended && !l->gone)
		wanted |= STREAM_READABLE | STREAM_SOME;
	if (l->out.at < l->out.end)
		wanted |= STREAM_WRITABLE;
	return levels & wanted;
}

/*
 * Before the look, as whoever sleeps beside other processes (preload/sock/others.c): until when to
 * sleep behind it
 */
static uint64_t line_await(struct relay_line *l)
{
	if (l->over || l->closing || l->plain || !stream_shared(l->stream))
		return BASE_NEVER;
	if (stream_await(l->stream, wakeup_name()) & STREAM_AWAIT_DEAF)
		return base_deadline(base_now(), ACKED_POLL);
	return base_deadline(base_now(), LOOK_BESIDE_OTHERS);
}

/* What ends cannot be polled for nothing: it would say so for ever */
static void line_poll(struct relay_line *l, struct pollfd fds[2], uint64_t *limit)
{
	short local = l->closing || l->over ? 0 : local_events(l);
	short peer = l->over ? 0 : peer_events(l);

	fds[0] = (struct pollfd){ .fd = l->over || (l->gone && !local) ? -1 : l->local,
				  .events = local };
	fds[1] = (struct pollfd){ .fd = peer ? stream_fd(l->stream) : -1, .events = peer };
	if (l->over)
		return;
	*limit = line_may_go(l) ? 0 : base_min(*limit, stream_wait_deadline(l->stream));
	if (l->grace_end && !l->late && is_starting(l))
		*limit = base_min(*limit, l->grace_end);
	if (l->closing)
		*limit = base_min(*limit, base_deadline(base_now(), ACKED_POLL));
}

void relay_serve(struct relay_line *lines, unsigned int n, struct pollfd *fds)
{
	for (;;) {
		uint64_t limit = BASE_NEVER;
		unsigned int left = 0;

		for (unsigned int i = 0; i < n; i++) {
			limit = base_min(limit, line_await(&lines[i]));
			if (!lines[i].over)
				line_go(&lines[i]);
			left += !lines[i].over;
			line_poll(&lines[i], fds + 2 * (size_t)i, &limit);
		}
		if (!left)
			break;
		fds[2 * (size_t)n] = (struct pollfd){ .fd = wakeup_fd(), .events = POLLIN };
		if (base_poll(fds, 2 * n + 1, limit) > 0 && fds[2 * (size_t)n].revents)
			wakeup_take();
	}
}
