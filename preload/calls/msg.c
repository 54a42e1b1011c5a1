/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that take a struct msghdr, or many of them.
 *
 * A stream has no addresses to tell, and no control messages but those of SOL_DDP
 * (preload/calls/ddp.h); what recvmsg() says of them is said as TCP says it.
 */
#include <limits.h>
#include <sys/socket.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "preload/calls/ddp.h"
#include "preload/calls/io.h"
#include "preload/process/rights.h"
#include "preload/sock/sock.h"
#include "preload/table/user_iov.h"
#include "preload/wait/kernel.h"
#include "preload/wait/sock_io.h"

#define PIECES_MAX 1024

/* As the kernel takes a header in, in its order: 0 or -errno */
static int msg_check(const struct msghdr *msg)
{
	if (user_iov_wild(msg, sizeof(*msg)))
		return -EFAULT;
	if (msg->msg_name && (int)msg->msg_namelen < 0)
		return -EINVAL;
	return msg->msg_iovlen > PIECES_MAX ? -EMSGSIZE : 0;
}

/* --- receiving --- */

/* With room for a user message */
static long control_recv(int fd, struct msghdr *msg, int flags)
{
	struct sock *s = sock_get_stream(fd);
	long got = s ? ddp_recvmsg(s, msg, flags) : SOCK_IO_THEIRS;

	if (got >= 0)
		msg->msg_flags |= flags & MSG_CMSG_CLOEXEC;
	sock_put(s);
	return got;
}

static long msg_recv(int fd, struct msghdr *msg, int flags)
{
	long got = msg_check(msg);

	if (flags & MSG_ERRQUEUE)
		return got ? got : ddp_errqueue(fd, msg);
	if (!got && !(flags & MSG_OOB) && ddp_may_recv(msg))
		return control_recv(fd, msg, flags & ~SOCK_IO_FILE);
	if (!got)
		got = sock_recv_fd(fd, msg->msg_iov, (int)msg->msg_iovlen, flags & ~SOCK_IO_FILE);
	if (got < 0)
		return got;
	if (msg->msg_name)
		msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = flags & MSG_CMSG_CLOEXEC;
	if (flags & MSG_OOB)
		msg->msg_flags |= MSG_OOB | (got ? 0 : MSG_TRUNC);
	return got;
}

long call_recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (!fdtab_is_carried(fd))
		return msg_check(msg) ? CALL_THEIRS
				      : kernel_input(fd, msg->msg_iov, (int)msg->msg_iovlen,
						     flags & ~SOCK_IO_FILE);
	return msg_recv(fd, msg, flags);
}

/* Linux looks at the time only when a message has come, and says what is left of it */
static bool time_is_up(struct timespec *timeout, uint64_t deadline)
{
	uint64_t left = base_deadline_left(deadline, base_now());

	timeout->tv_sec = (time_t)(left / BASE_NS_PER_S);
	timeout->tv_nsec = (long)(left % BASE_NS_PER_S);
	return !left;
}

static bool timeout_is_bad(const struct timespec *ts)
{
	return ts->tv_sec < 0 || ts->tv_nsec < 0 || ts->tv_nsec >= (long)BASE_NS_PER_S;
}

/* An error behind the first message is for the next call */
static void error_keep(int fd, long err)
{
	struct sock *s = sock_io_is_error(err) ? sock_get_stream(fd) : NULL;

	if (s)
		stream_give_error(s->stream, (int)-err);
	sock_put(s);
}

/* And counts before the first one, unlike in recvmsg() */
static long error_take(int fd)
{
	struct sock *s = sock_get_stream(fd);
	long err = 0;

	if (s && !sock_progress(s))
		err = -stream_take_error(s->stream);
	sock_put(s);
	return err;
}

static long msgs_recv(int fd, struct mmsghdr *msgs, unsigned int n, int flags,
		      struct timespec *timeout)
{
	uint64_t deadline = 0;
	unsigned int i = 0;
	long got = 0;

	if (timeout && user_iov_wild(timeout, sizeof(*timeout)))
		return -EFAULT;
	if (timeout && timeout_is_bad(timeout))
		return -EINVAL;
	got = flags & MSG_ERRQUEUE ? 0 : error_take(fd);
	if (got)
		return got;
	if (timeout)
		deadline = base_deadline(base_now(), (uint64_t)timeout->tv_sec * BASE_NS_PER_S +
							     (uint64_t)timeout->tv_nsec);
	while (i < n) {
		got = msg_recv(fd, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (got < 0)
			break;
		msgs[i++].msg_len = (unsigned int)got;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (timeout && time_is_up(timeout, deadline))
			break;
	}
	if (i && got < 0)
		error_keep(fd, got);
	return i ? (long)i : got;
}

long call_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags,
		   struct timespec *timeout)
{
	if (!fdtab_is_carried(fd))
		return CALL_THEIRS;
	return msgs_recv(fd, msgs, n, flags, timeout);
}

/* --- sending --- */

/* TCP takes no control message but of the socket's level, and ignores some of those */
static bool control_is_taken(const struct cmsghdr *c)
{
	static const int taken[] = { SCM_RIGHTS, SCM_CREDENTIALS, SO_TIMESTAMPING, SO_MARK,
				     SCM_TXTIME };

	if (c->cmsg_level != SOL_SOCKET)
		return true;
	for (unsigned int i = 0; i < base_array_size(taken); i++)
		if (c->cmsg_type == taken[i])
			return true;
	return false;
}

static int control_check(const struct msghdr *msg)
{
	struct msghdr copy = *msg; /* CMSG_NXTHDR() wants to be able to write */
	const char *end = (const char *)msg->msg_control + msg->msg_controllen;

	if (!msg->msg_controllen)
		return 0;
	if (msg->msg_controllen > INT_MAX)
		return -ENOBUFS;
	if (user_iov_wild(msg->msg_control, msg->msg_controllen))
		return -EFAULT;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c))
		if (c->cmsg_len < sizeof(*c) || c->cmsg_len > (size_t)(end - (const char *)c) ||
		    !control_is_taken(c))
			return -EINVAL;
	return 0;
}

static long msg_send(int fd, const struct msghdr *msg, int flags)
{
	struct user_iov p;
	int err = msg_check(msg);

	if (!err)
		err = user_iov_init(&p, msg->msg_iov, (long)msg->msg_iovlen);
	if (!err)
		err = control_check(msg);
	if (err)
		return err;
	if (ddp_is_wanted(msg))
		return ddp_sendmsg(fd, msg, flags & ~SOCK_IO_FILE);
	return io_send_to(fd, msg->msg_iov, (int)msg->msg_iovlen, flags & ~SOCK_IO_FILE,
			  msg->msg_name,
			  base_min(msg->msg_namelen, (socklen_t)sizeof(struct sockaddr_storage)));
}

long call_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fdtab_is_carried(fd) ? msg_send(fd, msg, flags) : rights_send(fd, msg, flags);
}

/* One that goes in part is the last */
static long msgs_send(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	unsigned int i = 0;
	long sent = 0;

	n = base_min(n, (unsigned int)PIECES_MAX);
	while (i < n) {
		struct user_iov p;

		sent = msg_send(fd, &msgs[i].msg_hdr, flags);
		if (sent < 0)
			break;
		msgs[i].msg_len = (unsigned int)sent;
		user_iov_init(&p, msgs[i].msg_hdr.msg_iov, (long)msgs[i].msg_hdr.msg_iovlen);
		i++;
		if ((size_t)sent < p.len)
			break;
	}
	return i ? (long)i : sent;
}

long call_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	return fdtab_is_carried(fd) ? msgs_send(fd, msgs, n, flags)
				    : rights_send_many(fd, msgs, n, flags);
}
