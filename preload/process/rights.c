/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors in messages (SCM_RIGHTS).
 *
 * Who receives a stream finds its state by the socket's cookie. For the time between, when perhaps
 * nobody has it open, each copy that leaves is counted as one that somebody will have. A copy
 * that is looked at (MSG_PEEK) is another one, and one that comes to a process which has the stream
 * already is none.
 *
 * Another user could not read the state: a message to one is not sent, as far as the socket says
 * who is there. A server's connection in mode auto whose peer has not asked for DDP is plain TCP
 * instead, as it is where the state cannot be found by others.
 *
 * Only messages that have a stream among their descriptors go by here, so to send is looked at
 * only while there are streams.
 */
#include "preload/process/rights.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/process/inherit.h"
#include "preload/sock/decline.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/life.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"

#define PIECES 64

/* --- the descriptors of a message --- */

/* Ends, with what @fn says, at the first that is not 0. @room: octets to the end of all */
static int each_in(const struct cmsghdr *c, size_t room, int (*fn)(int fd, void *ctx), void *ctx)
{
	size_t n = c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	int fd, r = 0;

	/* What says that it is longer the kernel refuses */
	if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len > room)
		return 0;
	for (size_t i = 0; !r && i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		r = fn(fd, ctx);
	}
	return r;
}

static int each_fd(const struct msghdr *msg, int (*fn)(int fd, void *ctx), void *ctx)
{
	const char *end = (const char *)msg->msg_control + msg->msg_controllen;
	struct msghdr copy = *msg; /* CMSG_NXTHDR() wants to be able to write */
	struct cmsghdr *c = CMSG_FIRSTHDR(&copy);
	int r = 0;

	for (; !r && c; c = CMSG_NXTHDR(&copy, c))
		r = each_in(c, (size_t)(end - (const char *)c), fn, ctx);
	return r;
}

static int is_stream(int fd, void *ctx)
{
	struct sock *s = sock_get_stream(fd);

	sock_put(s);
	return s != NULL;
}

bool rights_hold_stream(const struct msghdr *msg)
{
	return !user_iov_wild(msg, sizeof(*msg)) &&
	       !user_iov_wild(msg->msg_control, msg->msg_controllen) &&
	       each_fd(msg, is_stream, NULL);
}

/* --- sending --- */

struct flight {
	unsigned int n; /* streams that have left, to come back if the message does not */
	bool abroad;	/* to another user's process */
	int err;
};

/* Of a pair that this process has made itself it says nothing */
static bool is_another_users(int fd)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	return !libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid > 0 &&
	       peer.pid != getpid() && peer.uid != geteuid();
}

/* 0: it can go on as DDP there, or is plain TCP now */
static int may_leave(struct sock *s, bool abroad)
{
	int err = abroad ? -EACCES : stream_hand_over(s->stream);

	if (!err || !sock_io_go_plain(s))
		return err;
	sock_give_back(s, CONFIG_REASON_GRACE_EXPIRED);
	return 0;
}

static int leave(int fd, void *ctx)
{
	struct flight *flight = ctx;
	struct sock *s = sock_get_stream(fd);

	if (!s)
		return 0;
	if (!sock_decline(s))
		sock_progress(s);
	flight->err = sock_role(s) == SOCK_STREAM_ON ? may_leave(s, flight->abroad) : 0;
	if (flight->err) {
		base_err("descriptor %d is a DDP stream and cannot be passed on: %s", fd,
			 flight->abroad ? config_reason_text(CONFIG_REASON_OTHER_USER)
					: strerror(-flight->err));
	} else if (sock_role(s) == SOCK_STREAM_ON) {
		exec_record_write(s);
		stream_share(s->stream, STREAM_SHARE_FLIGHT);
		BASE_POINT(preload_rights_shared);
		others_come(s);
		flight->n++;
	}
	sock_put(s);
	return flight->err;
}

static int come_back(int fd, void *ctx)
{
	struct flight *flight = ctx;
	struct sock *s = flight->n ? sock_get_stream(fd) : NULL;

	if (!s)
		return !flight->n;
	stream_unshare(s->stream, STREAM_SHARE_FLIGHT);
	flight->n--;
	sock_put(s);
	return 0;
}

/* One try, or as long as the socket and @flags allow; octets or -errno */
static long send_once(int fd, const struct msghdr *msg, int flags, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	long sent;

	for (;;) {
		sent = libc_try(libc.sendmsg(fd, msg, flags | MSG_DONTWAIT));
		if (sent != -EAGAIN || !deadline)
			return sent;
		sent = intr_sleep(&p, 1, deadline, NULL, NULL);
		if (sent <= 0)
			return sent < 0 ? sent : -EAGAIN;
	}
}

/* The descriptors have gone with the first octets */
static long send_rest(int fd, const struct msghdr *msg, int flags, uint64_t deadline, long done)
{
	struct iovec rest[PIECES];
	struct user_iov p;
	long sent = 0;

	if (user_iov_init(&p, msg->msg_iov, (long)msg->msg_iovlen))
		return done;
	while (deadline && (size_t)done < p.len && sent >= 0) {
		struct msghdr more = { .msg_iov = rest };

		more.msg_iovlen =
			(size_t)user_iov_rest(&p, (size_t)done, p.len - (size_t)done, rest, PIECES);
		sent = send_once(fd, &more, flags, deadline);
		done += base_max(sent, 0l);
	}
	return done;
}

static uint64_t deadline_of(int fd, int flags)
{
	if (flags & MSG_DONTWAIT || base_sock_is_nonblock(fd))
		return 0;
	return base_deadline(base_now(), base_sock_timeout(fd, SO_SNDTIMEO));
}

static long send_streams(int fd, const struct msghdr *msg, int flags)
{
	uint64_t deadline = deadline_of(fd, flags);
	struct flight flight = { .abroad = is_another_users(fd) };
	long sent;

	each_fd(msg, leave, &flight);
	sent = flight.err ? flight.err : send_once(fd, msg, flags, deadline);
	BASE_POINT(preload_rights_sent);
	if (sent < 0) {
		each_fd(msg, come_back, &flight);
		return sent == -EINTR && deadline == BASE_NEVER ? CALL_RESTART : sent;
	}
	return send_rest(fd, msg, flags, deadline, sent);
}

long rights_send(int fd, const struct msghdr *msg, int flags)
{
	return rights_hold_stream(msg) ? send_streams(fd, msg, flags) : CALL_THEIRS;
}

static bool any_holds(const struct mmsghdr *msgs, unsigned int n)
{
	bool any = false;

	for (unsigned int i = 0; !any && i < n && !user_iov_wild(&msgs[i], sizeof(msgs[i])); i++)
		any = rights_hold_stream(&msgs[i].msg_hdr);
	return any;
}

long rights_send_many(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	unsigned int i = 0;
	long sent = 0;

	n = base_min(n, 1024u); /* as the kernel */
	if (!any_holds(msgs, n))
		return CALL_THEIRS;
	for (; i < n; i++) {
		sent = rights_send(fd, &msgs[i].msg_hdr, flags);
		if (sent == CALL_THEIRS)
			sent = send_once(fd, &msgs[i].msg_hdr, flags, deadline_of(fd, flags));
		if (sent < 0)
			break;
		msgs[i].msg_len = (unsigned int)sent;
	}
	return i ? (long)i : sent;
}

/* --- receiving --- */

static int take(int fd, void *ctx)
{
	inherit_received(fd, *(const bool *)ctx);
	return 0;
}

static void took(const struct msghdr *msg, int flags)
{
	bool peek = flags & MSG_PEEK;
	struct call *e;
	long r = 0;

	if (msg->msg_controllen < CMSG_LEN(sizeof(int)))
		return;
	e = call_enter(false);
	each_fd(msg, take, &peek);
	call_leave(e, &r);
}

long took_recvmsg(long got, int fd, struct msghdr *msg, int flags)
{
	int saved = errno;

	took(msg, flags);
	errno = saved;
	return got;
}

long took_recvmmsg(long got, int fd, struct mmsghdr *msgs, unsigned int n, int flags,
		   struct timespec *timeout)
{
	int saved = errno;

	for (long i = 0; i < got; i++)
		took(&msgs[i].msg_hdr, flags);
	errno = saved;
	return got;
}

/* Taken from another process, which has it still and was not asked; or one number more of ours */
long call_pidfd_getfd(int process, int fd, unsigned int flags)
{
	long r = libc_try(libc.pidfd_getfd(process, fd, flags));

	if (r >= 0 && !fork_gen_is_guest())
		inherit_received((int)r, false);
	return r;
}
