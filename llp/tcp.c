/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes over a TCP socket.
 *
 * The socket stays the caller's and keeps its flags: every transfer is non-blocking and raises no
 * signal by its own flags. Only raw system calls, as in base/fdutil.c. Nagle's algorithm is off,
 * for a segment should end where an FPDU does (RFC 5044 section 5.1), and that is when its sender
 * has nothing more to add.
 *
 * Where sendto(), sendmsg() and recvmsg() are forbidden (EPERM), a sandbox stands around the
 * process, and its descriptors have been made non-blocking before: then bytes go by write() and
 * read(), and of the flags only the silence is kept (base/quiet.h).
 *
 * LLP_RECORD is MSG_EOR: the kernel appends nothing to a buffer so marked, nor merges it with the
 * next one when it sends again, so a record of at most the segment size travels in a segment of
 * its own.
 */
#include "llp/llp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quiet.h"
#include "base/recv_sleep.h"
#include "base/sockutil.h"

/* What every TCP carries (RFC 9293 section 3.7.1), for want of a better number */
#define TCP_EMSS_LEAST 536

/* Of a system call; errno is the program's, which may be in the middle of reading it */
static ssize_t result(long n, int saved)
{
	long err = errno;

	errno = saved;
	if (n >= 0)
		return n;
	return err == EWOULDBLOCK ? -EAGAIN : -err;
}

/* One piece by itself costs the kernel less than as a list */
static ssize_t send_once(struct llp *l, const struct iovec *iov, unsigned int n, int flags,
			 bool list)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	int saved = errno;
	long sent;

	do {
		sent = list ? syscall(SYS_sendmsg, l->fd, &msg, flags)
			    : syscall(SYS_sendto, l->fd, iov->iov_base, iov->iov_len, flags, NULL,
				      0);
	} while (sent < 0 && errno == EINTR);
	return result(sent, saved);
}

static ssize_t tcp_send(struct llp *l, const struct iovec *iov, unsigned int n, unsigned int flags)
{
	int f = MSG_DONTWAIT | MSG_NOSIGNAL;
	ssize_t sent;

	if (flags & LLP_RECORD)
		f |= MSG_EOR;
	if (flags & LLP_MORE)
		f |= MSG_MORE;
	sent = send_once(l, iov, n, f, n != 1);
	if (sent == -EPERM && n == 1)
		sent = send_once(l, iov, n, f, true);
	return sent == -EPERM ? base_quiet_write(l->fd, iov, n) : sent;
}

/* The next bytes may go to the first entry alone, for nobody asks for all of them */
static ssize_t plain_recv(struct llp *l, const struct iovec *iov)
{
	int saved = errno;
	long got;

	do {
		got = syscall(SYS_read, l->fd, iov->iov_base, iov->iov_len);
	} while (got < 0 && errno == EINTR);
	return result(got, saved);
}

/* The kernel counts what is left behind a recvmsg(), and a FIN as a byte (TCP_INQ) */
static bool is_empty(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int left;

	if (!c || c->cmsg_level != SOL_TCP || c->cmsg_type != TCP_CM_INQ ||
	    c->cmsg_len != CMSG_LEN(sizeof(left)))
		return false;
	memcpy(&left, CMSG_DATA(c), sizeof(left));
	return left == 0;
}

/*
 * Where the socket or a filter does not let it sleep, it has not slept. The header is spoilt behind
 * the call, too: a handler that sleeps so itself leaves nothing that the kernel could restart
 */
static long asleep_recv(struct llp *l, struct msghdr *msg)
{
	struct base_recv_sleep *sleep = l->sleep;
	long got;

	l->sleep = NULL;
	sleep->slept = false;
	base_recv_sleep_fill(sleep, msg);
	if (!sleep->may(sleep)) {
		errno = EAGAIN;
		return -1;
	}
	got = syscall(SYS_recvmsg, l->fd, &sleep->msg, 0);
	base_recv_sleep_end(sleep);
	sleep->slept = got >= 0 || (errno != EAGAIN && errno != EPERM);
	if (got < 0 && (errno == EINTR || errno == EMSGSIZE))
		errno = EAGAIN;
	msg->msg_controllen = sleep->msg.msg_controllen;
	return got;
}

static ssize_t tcp_recv(struct llp *l, const struct iovec *iov, unsigned int n)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct msghdr msg = { .msg_iov = (struct iovec *)iov,
			      .msg_iovlen = n,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int saved = errno;
	long got;

	do {
		got = l->sleep ? asleep_recv(l, &msg)
			       : syscall(SYS_recvmsg, l->fd, &msg, MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	l->empty = got > 0 && is_empty(&msg);
	got = result(got, saved);
	return got == -EPERM ? plain_recv(l, iov) : got;
}

static ssize_t peek(int fd, void *p, size_t n)
{
	int saved = errno;
	long got;

	do {
		got = syscall(SYS_recvfrom, fd, p, n, MSG_DONTWAIT | MSG_PEEK, NULL, NULL);
	} while (got < 0 && errno == EINTR);
	return result(got, saved);
}

ssize_t llp_tcp_peek(int fd, void *p, size_t n, bool *ended)
{
	ssize_t got = peek(fd, p, n);

	*ended = false;
	/* Whether what is missing will come: who has all, or nothing, does not ask */
	if (got <= 0 || (size_t)got == n)
		return got;
	/*
	 * The end first: bytes that come in between are followed by it and show at the next look
	 */
	*ended = base_sock_ready(fd, POLLRDHUP);
	return peek(fd, p, n);
}

/* The kernel's number has the options of every segment taken off already */
static unsigned int tcp_emss(const struct llp *l)
{
	int saved = errno, mss = 0;
	socklen_t len = sizeof(mss);
	long err = syscall(SYS_getsockopt, l->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len);

	err = result(err, saved);
	if (err == -EPERM)
		return 0;
	return err == 0 && mss > 0 ? (unsigned int)mss : TCP_EMSS_LEAST;
}

static int tcp_shutdown(struct llp *l)
{
	int saved = errno, err = (int)result(syscall(SYS_shutdown, l->fd, SHUT_WR), saved);

	return err == -EPERM ? 0 : err; /* the descriptor's close() is our end then */
}

/* To connect to nowhere drops the connection with a reset and leaves the descriptor to its owner */
static void tcp_abort(struct llp *l)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int saved = errno;

	if (syscall(SYS_connect, l->fd, &none, sizeof(none)) < 0)
		syscall(SYS_shutdown, l->fd, SHUT_RDWR);
	errno = saved;
}

static const struct llp_ops tcp_ops = {
	.name = "tcp",
	.send = tcp_send,
	.recv = tcp_recv,
	.emss = tcp_emss,
	.shutdown = tcp_shutdown,
	.abort = tcp_abort,
};

void llp_tcp_view(struct llp *l, int fd)
{
	l->ops = &tcp_ops;
	l->fd = fd;
	l->empty = false;
	l->sleep = NULL;
}

void llp_tcp_init(struct llp *l, int fd)
{
	int saved = errno, on = 1;

	llp_tcp_view(l, fd);
	syscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	syscall(SYS_setsockopt, fd, IPPROTO_TCP, TCP_INQ, &on, sizeof(on));
	errno = saved;
}
