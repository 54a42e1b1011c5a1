/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octets in and out.
 *
 * The wait is here and not below: a stream never sleeps. How long a call may wait is asked of
 * the kernel's socket when it comes to that (O_NONBLOCK, SO_RCVTIMEO, SO_SNDTIMEO), because
 * another process may have changed it.
 */
#include "preload/wait/sock_io.h"

#include <signal.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/quiet.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/sandbox.h"
#include "preload/sock/fallback.h"
#include "preload/sock/others.h"
#include "preload/sock/param.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/user_iov.h"
#include "preload/wait/confine.h"
#include "preload/wait/kernel.h"
#include "preload/wait/wait.h"
#include "stream/cursor.h"

bool sock_io_go_plain(struct sock *s)
{
	int err = sock_progress(s);

	if (err == -EAGAIN && s->accepted && s->opts.mode == CONFIG_USE_AUTO)
		wait_levels(s, STREAM_STARTED | STREAM_WRITABLE,
			    base_deadline(base_now(), sock_grace(s)));
	/* Behind the grace it is writable, plainly, and not decided */
	return (err == -EAGAIN && sock_speak_plain(s)) || sock_role(s) != SOCK_STREAM_ON;
}

#define INPUT (STREAM_READABLE | STREAM_SOME)

/* May the call wait? 0 and until when, or -EAGAIN: the socket's options as they are now */
static int options_ask(struct sock_io_call *c, bool out)
{
	const struct option_values *values = &c->sock->option;
	bool never =
		__atomic_load_n(out ? &values->never_out : &values->never_in, __ATOMIC_RELAXED);
	int option = out ? SO_SNDTIMEO : SO_RCVTIMEO;
	uint64_t limit;

	if (confine_is_nonblock(c->sock))
		return sock_has(c->sock, c->stream) ? -EAGAIN : -EPIPE;
	limit = never ? 0 : confine_timeout(c->sock, option);
	c->deadline = limit == BASE_NEVER ? limit : base_deadline(base_now(), limit);
	return 0;
}

/*
 * Nearly all calls wait without an end, and so does the next one, unless this process has set
 * something since, or another one has the socket, too
 */
static int wait_begin(struct sock_io_call *c, unsigned int level)
{
	bool out = level & STREAM_WRITABLE;
	uint32_t *endless = &c->sock->endless[out];
	uint32_t changes = __atomic_load_n(&c->sock->changes, __ATOMIC_SEQ_CST);
	int err;

	if (c->flags & MSG_DONTWAIT)
		return -EAGAIN;
	if (c->deadline)
		return 0;
	if (__atomic_load_n(endless, __ATOMIC_RELAXED) == changes && !others_have(c->sock)) {
		c->deadline = BASE_NEVER;
		return 0;
	}
	err = options_ask(c, out);
	if (!err && c->deadline == BASE_NEVER)
		__atomic_store_n(endless, changes, __ATOMIC_RELAXED);
	return err;
}

/* A call without a time-out is one that SA_RESTART restarts */
int sock_io_wait(struct sock_io_call *c, unsigned int level)
{
	int err = wait_begin(c, level);

	if (!err)
		err = c->ends ? c->ends : wait_once(c->sock, c->stream, level, c->deadline);
	if (!err)
		c->ends = wait_ends(c->deadline, NULL, 0);
	return err == -EINTR && c->deadline == BASE_NEVER ? CALL_RESTART : err;
}

#define PIECES 64

/*
 * Did it fail because a device could not begin? Then the call is to try again, over what has come
 * in its place, or @r says why nothing has. Another thread may have been first.
 */
static bool goes_on(struct sock_io_call *c, long *r)
{
	if (*r > 0 || *r == -EAGAIN || c->stream->carrier < 0)
		return false;
	if (!sock_has(c->sock, c->stream) && *r != -ENODEV)
		return false;
	*r = sock_leave_device(c->sock, (int)*r);
	if (sock_has(c->sock, c->stream) || sock_role(c->sock) != SOCK_STREAM_ON)
		return false;
	c->stream = __atomic_load_n(&c->sock->stream, __ATOMIC_ACQUIRE);
	return true;
}

static long recv_once(struct sock_io_call *c, const struct iovec *iov, int n, int stop)
{
	int flags = (c->flags & (MSG_PEEK | MSG_TRUNC)) | stop;
	long got;

	do {
		got = stream_recv(c->stream, iov, n, flags);
	} while (goes_on(c, &got));
	return got;
}

/*
 * The urgent octet is next. With octets in hand the call ends before it. Else, as Linux has it, a
 * signal goes first, which may be the one for that octet; then the octet is passed over.
 */
static long pass(struct sock_io_call *c, const struct iovec *iov, int n, bool some)
{
	int err;

	if (some)
		return -ESTALE;
	if (!call_self || !call_wanted(call_self))
		return recv_once(c, iov, n, 0);
	err = wait_begin(c, INPUT);
	if (err)
		return err;
	return c->deadline == BASE_NEVER ? CALL_RESTART : -EINTR;
}

/* One try: octets, 0 the end, -EAGAIN, -errno, SOCK_IO_THEIRS */
static long take_once(struct sock_io_call *c, const struct user_iov *p, size_t done, size_t *asked)
{
	struct iovec rest[PIECES];
	const struct iovec *iov = p->iov;
	int n = p->n;
	long got;

	*asked = p->len - done;
	if (done) {
		n = user_iov_rest(p, done, *asked, rest, PIECES);
		iov = rest;
		*asked = stream_iov_len(rest, n);
	}
	got = recv_once(c, iov, n, STREAM_STOP);
	if (got == -ESTALE)
		got = pass(c, iov, n, done);
	if (got == -ENOMSG)
		sock_fall_back(c->sock);
	return got;
}

/* Is it an error of the connection, which is told once? Not a message or an octet that is next */
bool sock_io_is_error(long err)
{
	return err != -EAGAIN && err != -EINTR && err != CALL_RESTART && err != -EPIPE &&
	       err != -EBADMSG && err != -ESTALE && err != -EXDEV;
}

/* The call says what it has; an error that came behind it is for the next one */
static long sum_or_error(struct sock_io_call *c, size_t sum, long err)
{
	if (!sum)
		return err;
	if (err < 0 && sock_io_is_error(err))
		stream_give_error(c->stream, (int)-err);
	return (long)sum;
}

/* How much a call wants before it comes back, as long as it may wait */
static size_t target_of(const struct sock_io_call *c, size_t len)
{
	if (c->flags & MSG_WAITALL)
		return len;
	return base_min(len, stream_lowat(c->stream));
}

/*
 * A look into the kernel that most likely finds nothing is left out: the wait, which looks at what
 * has been taken in already, sees what is there, too. A device is to be looked at before one sleeps
 */
static bool looks_in_vain(struct sock_io_call *c)
{
	const unsigned int rest = STREAM_STARTED | STREAM_WRITABLE;

	if (c->stream->carrier >= 0 || !spin_lasts(&c->sock->places[0]) || others_have(c->sock))
		return false;
	/* Nothing else is to be told, as an error or the end would be */
	return (stream_levels(c->stream, NULL) | STREAM_WRITABLE) == rest && !wait_begin(c, INPUT);
}

static long take(struct sock_io_call *c, const struct user_iov *p)
{
	size_t target = target_of(c, p->len), sum = 0, asked;
	long got;

	do {
		got = !sum && !c->deadline && looks_in_vain(c) ? -EAGAIN
							       : take_once(c, p, sum, &asked);
		if (got == -EAGAIN && sum < target) {
			got = sock_io_wait(c, INPUT);
			if (!got)
				continue;
		}
		if (got <= 0)
			break;
		sum += (size_t)got;
	} while (sum < target || (sum < p->len && (size_t)got == asked));
	return sum_or_error(c, sum, got);
}

/* Is the urgent octet next, and nothing behind it? Where that is passed over, it is no input */
static bool only_urgent(const struct sock_io_call *c)
{
	return stream_levels(c->stream, NULL) & STREAM_AT_MARK;
}

/* Nothing else than another octet wakes who has seen some; it looks again so often */
#define PEEK_AGAIN (20 * BASE_NS_PER_MS)

static int peek_wait(struct sock_io_call *c)
{
	int err = wait_begin(c, INPUT);
	uint64_t again = base_deadline(base_now(), PEEK_AGAIN);

	if (err)
		return err;
	err = wait_once(c->sock, c->stream, 0, base_min(again, c->deadline));
	if (!err)
		err = wait_ends(c->deadline, NULL, 0);
	return err == -EAGAIN && !base_deadline_passed(c->deadline, base_now()) ? 0 : err;
}

static long peek(struct sock_io_call *c, const struct user_iov *p)
{
	size_t target = target_of(c, p->len), asked;
	long got, err = 0;

	do {
		got = take_once(c, p, 0, &asked);
		if (got == -EAGAIN)
			err = got = only_urgent(c) ? peek_wait(c) : sock_io_wait(c, INPUT);
		else if (got <= 0 || (size_t)got >= target ||
			 stream_levels(c->stream, NULL) & (STREAM_RDHUP | STREAM_BOUND))
			break;
		else
			err = peek_wait(c);
	} while (!err);
	return got;
}

/* Is there something to read? 1, 0 the end, -errno */
static long look(const struct sock_io_call *c)
{
	char octet;
	struct iovec iov = { &octet, 1 };
	struct user_iov one = { &iov, 1, 1, 1, 1 };
	struct sock_io_call looks = *c;

	looks.flags = (c->flags & MSG_DONTWAIT) | MSG_PEEK;
	return peek(&looks, &one);
}

/* A buffer that is none: TCP notices when it has something to put there */
static long take_unsound(struct sock_io_call *c, struct user_iov *p)
{
	long got = look(c);

	if (got <= 0)
		return got;
	if (stream_readable(c->stream) > p->sound)
		return -EFAULT;
	p->n = p->n_sound;
	p->len = p->sound;
	return take(c, p);
}

static long in_by_kind(struct sock_io_call *c, struct user_iov *p)
{
	if (!p->len) {
		long got = c->flags & SOCK_IO_FILE || only_urgent(c) ? 0 : look(c);

		return base_min(got, 0L);
	}
	if (p->sound < p->len && !(c->flags & MSG_TRUNC))
		return take_unsound(c, p);
	return c->flags & MSG_PEEK ? peek(c, p) : take(c, p);
}

/* By close(), not by the process's end, which leaves the number */
static bool is_closed(const struct sock *s)
{
	return __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&s->ent.numbers, __ATOMIC_ACQUIRE);
}

/*
 * What close() took meanwhile is what it is to a call that comes later: no end, for which the peer
 * would be blamed. Or connect() took the connection away.
 */
static long unless_gone(const struct sock_io_call *c, long r)
{
	if (r <= 0 && is_closed(c->sock))
		return -EBADF;
	return r != -EXDEV || sock_has(c->sock, c->stream) ? r : -EPIPE;
}

/* Into the first room that there is */
static void octet_put(const struct user_iov *p, uint8_t octet)
{
	struct stream_cursor cursor = { p->iov, p->n, 0 };
	char *to;

	if (stream_cursor_next(&cursor, 1, &to))
		*to = (char)octet;
}

/* What recvmsg() says with it stands in its msg_flags: 0 where there is no room for the octet */
static long urgent_in(struct sock_io_call *c, const struct user_iov *p)
{
	uint8_t octet;
	long got = stream_urgent_recv(c->stream, &octet, c->flags);

	if (got == -ENOMSG)
		sock_fall_back(c->sock);
	if (got <= 0)
		return unless_gone(c, got);
	worker_owing(c->sock);
	if (!p->len)
		return 0;
	if (!(c->flags & MSG_TRUNC) && !p->sound)
		return -EFAULT;
	if (!(c->flags & MSG_TRUNC))
		octet_put(p, octet);
	return 1;
}

long sock_recv(struct sock *s, const struct iovec *iov, int n, int flags)
{
	struct sock_io_call c = { s, s->stream, flags, 0, 0 };
	struct user_iov p;
	long got = user_iov_init(&p, iov, n);

	if (got)
		return got;
	if (flags & MSG_ERRQUEUE)
		return -EAGAIN; /* what is there, only recvmsg() tells */
	if (flags & MSG_OOB)
		return urgent_in(&c, &p);
	got = unless_gone(&c, in_by_kind(&c, &p));
	worker_owing(s);
	return got;
}

long sock_io_broken(int flags)
{
	if (!(flags & MSG_NOSIGNAL) && sandbox_may(SYS_tgkill))
		raise(SIGPIPE);
	else if (!(flags & MSG_NOSIGNAL))
		base_quiet_raise();
	return -EPIPE;
}

/* Octets that went, or why none did */
static long give(struct sock_io_call *c, const struct user_iov *p)
{
	struct iovec rest[PIECES];
	size_t sum = 0;
	long sent;

	do {
		bool whole = !sum && p->n == 1 && p->iov->iov_len == p->len;
		const struct iovec *iov = whole ? p->iov : rest;
		int k = whole ? 1 : user_iov_rest(p, sum, p->len - sum, rest, PIECES);
		/* Of all octets the last one is urgent */
		bool urgent = c->flags & MSG_OOB && stream_iov_len(iov, k) == p->len - sum;

		do {
			sent = urgent ? stream_urgent_send(c->stream, iov, k)
				      : stream_send(c->stream, iov, k);
		} while (goes_on(c, &sent));
		if (sent > 0)
			sum += (size_t)sent;
		else if (sent == -EAGAIN)
			sent = sock_io_wait(c, STREAM_WRITABLE);
	} while (sent >= 0 && sum < p->len);
	return sum_or_error(c, sum, base_min(sent, 0L));
}

static long out_by_kind(struct sock_io_call *c, const struct user_iov *p)
{
	struct user_iov none = { 0 };
	long err;

	if (!p->len && c->flags & SOCK_IO_FILE)
		return 0;
	if (p->sound == p->len)
		return give(c, p);
	err = give(c, &none);
	return err ? err : -EFAULT;
}

/* Start-up is under way, and the program may speak: of a server, a peer that may be plain */
static bool may_speak(const struct sock *s)
{
	return stream_levels(s->stream, NULL) & STREAM_WRITABLE;
}

/*
 * The first octets of a server in mode auto. Its socket is not writable before its peer is known
 * or the grace is over; behind that the octets are TCP's. A peer of which a part of the Request
 * has come is waited for as any other is.
 */
static long decide(struct sock_io_call *c)
{
	struct sock *s = c->sock;
	enum sock_start start = sock_start(s);
	int err;

	if (start == SOCK_START_SPOKEN)
		return SOCK_IO_THEIRS;
	if (start != SOCK_START_UNDECIDED || s->opts.mode != CONFIG_USE_AUTO)
		return 0;
	while ((err = sock_progress(s)) == -EAGAIN && !(s->shut & (SHUT_WR + 1))) {
		if (may_speak(s) && sock_speak_plain(s))
			return SOCK_IO_THEIRS;
		err = sock_io_wait(c, STREAM_WRITABLE | STREAM_STARTED);
		if (err)
			return err;
	}
	return 0;
}

long sock_send(struct sock *s, const struct iovec *iov, int n, int flags)
{
	struct sock_io_call c = { s, s->stream, flags, 0, 0 };
	struct user_iov p;
	long sent = user_iov_init(&p, iov, n);

	if (!sent)
		sent = decide(&c);
	if (sent)
		return sent;
	sent = unless_gone(&c, out_by_kind(&c, &p));
	worker_owing(s);
	if (sent == -ENOMSG)
		sock_fall_back(s);
	return sent == -EPIPE ? sock_io_broken(flags) : sent;
}

long sock_recv_fd(int fd, const struct iovec *iov, int n, int flags)
{
	struct sock *s = sock_get_stream(fd);
	long got = s ? sock_recv(s, iov, n, flags) : kernel_input(fd, iov, n, flags);

	sock_put(s);
	return got;
}

long sock_send_fd(int fd, const struct iovec *iov, int n, int flags)
{
	struct sock *s = sock_get_stream(fd);
	long sent = s ? sock_send(s, iov, n, flags) : SOCK_IO_THEIRS;

	sock_put(s);
	return sent;
}
