/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that move octets. Each is a buffer, an iovec or a msghdr around two functions:
 * octets_in() and octets_out().
 *
 * The wait is here and not below: a stream never sleeps. How long a call may wait is asked of
 * the kernel's socket when it comes to that (O_NONBLOCK, SO_RCVTIMEO, SO_SNDTIMEO), because
 * another process may have changed it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/attend.h"
#include "preload/libc.h"
#include "preload/sock.h"
#include "preload/wait.h"
#include "stream/cursor.h"

/* Not a thing of ours, or no longer: the call goes to libc */
#define NOT_OURS (-ENOMSG)

/* A stream to work on, with a reference, or NULL: libc's */
static struct sock *stream_get(int fd)
{
	struct sock *s = sock_get(fd);

	if (s && sock_role(s) == SOCK_STREAM_ON)
		return s;
	sock_put(s);
	return NULL;
}

/* A server that speaks first waits a moment for a Request before it takes its peer for plain */
static int grace(struct sock *s)
{
	int err;

	if (!s->accepted || s->mode != CONFIG_AUTO ||
	    s->stream->ops->progress(s->stream) != -EAGAIN)
		return 0;
	err = wait_levels(s, STREAM_WRITABLE, base_deadline(base_now(), sock_config.grace));
	if (err == -EAGAIN && s->stream->ops->progress(s->stream) == -EAGAIN)
		sock_give_back(s, "peer-plain");
	return sock_role(s) == SOCK_PLAIN ? NOT_OURS : 0;
}

/*
 * Waits for a level as the socket's options and @flags allow: 0 try again, or the errno to return.
 * The options count as they are when a call has to wait for the first time.
 */
static int io_wait(struct sock *s, unsigned int level, int flags, uint64_t *deadline)
{
	int option = level == STREAM_READABLE ? SO_RCVTIMEO : SO_SNDTIMEO;
	uint64_t limit;

	if (flags & MSG_DONTWAIT)
		return -EAGAIN;
	if (!*deadline) {
		if (base_sock_is_nonblock(s->stream->fd))
			return -EAGAIN;
		limit = base_sock_timeout(s->stream->fd, option);
		*deadline = limit == BASE_NEVER ? limit : base_deadline(base_now(), limit);
	}
	return wait_once(s, level, *deadline);
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

static long octets_in(struct sock *s, const struct iovec *iov, int n, int flags)
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
			sock_give_back(s, "peer-plain");
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

static long octets_out(struct sock *s, const struct iovec *iov, int n, int flags)
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
		sock_give_back(s, "peer-plain");
	return err == -EPIPE ? pipe_broken(flags) : err;
}

static long io_recv(int fd, const struct iovec *iov, int n, int flags)
{
	struct sock *s = stream_get(fd);
	long got = s ? octets_in(s, iov, n, flags) : NOT_OURS;

	sock_put(s);
	return got;
}

static long io_send(int fd, const struct iovec *iov, int n, int flags)
{
	struct sock *s = stream_get(fd);
	long sent = s ? octets_out(s, iov, n, flags) : NOT_OURS;

	sock_put(s);
	return sent;
}

/* Ours, or what libc says when the socket turned out to be no stream */
#define return_io(ours, theirs)                                                \
	do {                                                                   \
		long io_result_ = (ours);                                      \
                                                                               \
		return io_result_ == NOT_OURS ? libc_try(theirs) : io_result_; \
	} while (0)

long call_read(int fd, void *buf, size_t len)
{
	struct iovec iov = { buf, len };

	return_io(io_recv(fd, &iov, 1, 0), libc.read(fd, buf, len));
}

long call_readv(int fd, const struct iovec *iov, int n)
{
	return_io(io_recv(fd, iov, n, 0), libc.readv(fd, iov, n));
}

long call_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };

	return_io(io_recv(fd, &iov, 1, flags), libc.recv(fd, buf, len, flags));
}

/* A connected stream has no address to tell: the kernel leaves *fromlen alone as well */
long call_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
		   socklen_t *fromlen)
{
	struct iovec iov = { buf, len };

	return_io(io_recv(fd, &iov, 1, flags), libc.recvfrom(fd, buf, len, flags, from, fromlen));
}

static long msg_recv(int fd, struct msghdr *msg, int flags)
{
	long got;

	if (flags & MSG_ERRQUEUE)
		return NOT_OURS;
	got = io_recv(fd, msg->msg_iov, (int)base_min(msg->msg_iovlen, 1024u), flags);
	if (got < 0)
		return got;
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return got;
}

long call_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return_io(msg_recv(fd, msg, flags), libc.recvmsg(fd, msg, flags));
}

/* The fortified forms: the compiler knew how much room there is */
__attribute__((noreturn)) static void overflow(void)
{
	static const char text[] = "*** buffer overflow detected ***: terminated\n";

	syscall(SYS_write, STDERR_FILENO, text, sizeof(text) - 1);
	abort();
}

long call___read_chk(int fd, void *buf, size_t len, size_t room)
{
	if (len > room)
		overflow();
	return call_read(fd, buf, len);
}

long call___recv_chk(int fd, void *buf, size_t len, size_t room, int flags)
{
	if (len > room)
		overflow();
	return call_recv(fd, buf, len, flags);
}

long call___recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
			 struct sockaddr *from, socklen_t *fromlen)
{
	if (len > room)
		overflow();
	return call_recvfrom(fd, buf, len, flags, from, fromlen);
}

long call_write(int fd, const void *buf, size_t len)
{
	struct iovec iov = { (void *)buf, len };

	return_io(io_send(fd, &iov, 1, 0), libc.write(fd, buf, len));
}

long call_writev(int fd, const struct iovec *iov, int n)
{
	return_io(io_send(fd, iov, n, 0), libc.writev(fd, iov, n));
}

long call_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)buf, len };

	return_io(io_send(fd, &iov, 1, flags), libc.send(fd, buf, len, flags));
}

long call_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		 socklen_t tolen)
{
	struct iovec iov = { (void *)buf, len };

	return_io(io_send(fd, &iov, 1, flags), libc.sendto(fd, buf, len, flags, to, tolen));
}

static long msg_send(int fd, const struct msghdr *msg, int flags)
{
	return io_send(fd, msg->msg_iov, (int)base_min(msg->msg_iovlen, 1024u), flags);
}

long call_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return_io(msg_send(fd, msg, flags), libc.sendmsg(fd, msg, flags));
}

/* --- sendfile: by a buffer, never by a mapping, which a shorter file would turn into SIGBUS --- */

#define FILE_PIECE (32 * 1024u)

/* Octets of the file at *@offset, or where it stands; what is not sent is not taken */
static long file_piece(struct sock *s, int in, off_t *offset, size_t len)
{
	char buf[FILE_PIECE];
	struct iovec iov = { buf, 0 };
	long n, sent;

	if (offset)
		n = libc_try(syscall(SYS_pread64, in, buf, base_min(len, sizeof(buf)), *offset));
	else
		n = libc_try(syscall(SYS_read, in, buf, base_min(len, sizeof(buf))));
	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	sent = octets_out(s, &iov, 1, 0);
	if (offset && sent > 0)
		*offset += sent;
	if (!offset && sent < n)
		syscall(SYS_lseek, in, base_max(sent, 0) - n, SEEK_CUR);
	return sent;
}

static long file_send(int fd, int in, off_t *offset, size_t len)
{
	struct sock *s = stream_get(fd);
	size_t sum = 0;
	long n = s ? 1 : NOT_OURS;

	while (n > 0 && sum < len) {
		n = file_piece(s, in, offset, len - sum);
		sum += (size_t)base_max(n, 0);
	}
	sock_put(s);
	return sum ? (long)sum : n == 1 ? 0 : n;
}

long call_sendfile(int fd, int in, off_t *offset, size_t len)
{
	return_io(file_send(fd, in, offset, len), libc.sendfile(fd, in, offset, len));
}

long call_sendfile64(int fd, int in, off_t *offset, size_t len)
{
	return call_sendfile(fd, in, offset, len);
}
