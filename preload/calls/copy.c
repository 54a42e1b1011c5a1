/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that copy from one descriptor to another: by a buffer, never by a mapping, which a
 * shorter file would turn into SIGBUS.
 *
 * Nothing may be lost between the two. A file is set back by what did not go. From a pipe to a
 * stream, tee() gives octets that stay in the pipe until the stream has taken them. From a
 * stream to a pipe, only as much is taken as the pipe has room for. What cannot be done with a
 * socket is the kernel's to refuse: ours is a real one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/bounce.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/intr_sleep.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"

/* --- a file to a stream --- */

#define FILE_PIECE (BASE_BOUNCE_SIZE / 2)

/* Octets of the file at *@offset, or where it stands; what is not sent is not taken */
static long file_piece(struct sock *s, int in, off_t *offset, size_t len, char *buf)
{
	struct iovec iov = { buf, 0 };
	long n, sent;

	len = base_min(len, FILE_PIECE);
	if (offset)
		n = libc_try(syscall(SYS_pread64, in, buf, len, *offset));
	else
		n = libc_try(syscall(SYS_read, in, buf, len));
	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	sent = sock_send(s, &iov, 1, 0);
	if (offset && sent > 0)
		*offset += sent;
	if (!offset && sent < n)
		syscall(SYS_lseek, in, base_max(sent, 0L) - n, SEEK_CUR);
	return sent;
}

static long file_send(struct sock *s, int in, off_t *offset, size_t len)
{
	char *buf = base_bounce_get();
	size_t sum = 0;
	long n = buf ? 1 : -ENOMEM;

	while (n > 0 && sum < len) {
		n = file_piece(s, in, offset, len - sum, buf);
		sum += (size_t)base_max(n, 0L);
	}
	base_bounce_put(buf);
	return sum ? (long)sum : n == 1 ? 0 : n;
}

/* Some devices, folders and files of /proc can be read and not be sent: the kernel knows which */
static int file_ask(int fd, off_t at)
{
	loff_t from = at;
	int ends[2];
	long n;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -ENOMEM;
	n = libc_try(syscall(SYS_splice, fd, &from, ends[1], NULL, 1L, SPLICE_F_NONBLOCK));
	base_fd_close(ends[0]);
	base_fd_close(ends[1]);
	return (int)base_min(n, 0L);
}

static bool is_readable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY;
}

/*
 * The kernel takes only what it can read again: 0 or -errno. A web server sends each file so: of a
 * regular file with an offset, pread() itself finds out whether it may be read
 */
static int file_check(int fd, const off_t *offset, size_t len)
{
	struct stat st;
	bool ordinary;
	off_t at;

	if (offset && user_iov_wild(offset, sizeof(*offset)))
		return -EFAULT;
	ordinary = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size;
	if (!(ordinary && offset && len) && !is_readable(fd))
		return -EBADF;
	at = ordinary && offset ? 0 : syscall(SYS_lseek, fd, 0, SEEK_CUR);
	if (at < 0)
		return offset ? -ESPIPE : -EINVAL;
	at = offset ? *offset : at;
	if (at < 0 || (ssize_t)len < 0 || (off_t)len > INT64_MAX - at)
		return is_readable(fd) ? -EINVAL : -EBADF;
	return ordinary ? 0 : file_ask(fd, at);
}

/* From a stream of ours the kernel refuses it, except to a pipe, which is what splice() does */
long call_sendfile(int fd, int in, off_t *offset, size_t len)
{
	struct sock *s;
	long r = CALL_THEIRS;

	if (!fdtab_is_carried(fd))
		return offset ? CALL_THEIRS : call_splice(in, NULL, fd, NULL, len, 0);
	s = sock_get_stream(fd);
	if (s)
		r = file_check(in, offset, len);
	if (!r)
		r = file_send(s, in, offset, len);
	sock_put(s);
	return r;
}

long call_sendfile64(int fd, int in, off_t *offset, size_t len)
{
	return call_sendfile(fd, in, offset, len);
}

/* --- a pipe and a stream --- */

#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)

/* The end of a pipe, opened @mode */
static bool is_pipe(int fd, int mode)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISFIFO(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == mode;
}

/* Until the pipe has octets, or room: 0, -EAGAIN, -EINTR */
static int pipe_wait(int fd, short events, unsigned int flags)
{
	struct pollfd p = { fd, events, 0 };
	bool now = flags & SPLICE_F_NONBLOCK || base_sock_is_nonblock(fd);
	int n = intr_sleep(&p, 1, now ? 0 : BASE_NEVER, NULL, NULL);

	if (n == -EINTR)
		return CALL_RESTART;
	return n > 0 ? 0 : n ? n : -EAGAIN;
}

/*
 * Octets that a pipe which is ready takes at once: all that it holds when it is empty, else what is
 * written in one piece
 */
static size_t pipe_room(int fd)
{
	int held = 0, size = fcntl(fd, F_GETPIPE_SZ);

	if (ioctl(fd, FIONREAD, &held) || held || size < 0)
		return PIPE_BUF;
	return (size_t)size;
}

static bool has_reader(int fd)
{
	return !(base_sock_ready(fd, POLLOUT) & POLLERR);
}

/* Never waits, as far as the kernel can promise that of a pipe: since Linux 6.4 */
static long pipe_put(int fd, const char *p, size_t len)
{
	struct iovec iov = { (void *)p, len };
	long n = libc_try(syscall(SYS_pwritev2, fd, &iov, 1, -1L, -1L, RWF_NOWAIT));

	if (n == -EOPNOTSUPP || n == -EINVAL || n == -ENOSYS)
		n = libc_try(syscall(SYS_write, fd, p, base_min(len, (size_t)PIPE_BUF)));
	return n;
}

/*
 * The octets are taken, so they must go, unless the pipe has no reader any more, or the thread is
 * to end. There was room; another writer may have been faster.
 */
static long pipe_fill(int fd, const char *p, size_t len)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd room = { fd, POLLOUT, 0 };
		long n = pipe_put(fd, p + done, len - done);

		if (n == -EAGAIN && intr_sleep(&room, 1, BASE_NEVER, NULL, NULL) == -EINTR) {
			call_pass();
			if (call_self && call_wanted(call_self))
				return -EINTR;
		} else if (n < 0 && n != -EINTR && n != -EAGAIN) {
			return n;
		}
		done += (size_t)base_max(n, 0L);
	}
	return (long)len;
}

/* A stream to a pipe: one piece, as soon as there is something */
static long splice_in(struct sock *s, int out, size_t len, unsigned int flags, char *buf)
{
	struct iovec iov = { buf, 1 };
	long got = has_reader(out) ? pipe_wait(out, POLLOUT, flags) : -EPIPE;

	if (got == -EPIPE)
		raise(SIGPIPE);
	if (got)
		return got;
	do {
		iov.iov_len = 1;
		got = sock_recv(s, &iov, 1, MSG_PEEK);
		if (got <= 0)
			return got;
		iov.iov_len = base_min(base_min(len, BASE_BOUNCE_SIZE), pipe_room(out));
		got = sock_recv(s, &iov, 1, MSG_DONTWAIT);
	} while (got == -EAGAIN); /* another thread was faster */
	return got > 0 ? pipe_fill(out, buf, (size_t)got) : got;
}

/* What has gone leaves the pipe; by @buf, which nobody needs any more */
static void pipe_drop(int in, size_t len, char *buf)
{
	while (len) {
		long n = libc_try(syscall(SYS_read, in, buf, base_min(len, BASE_BOUNCE_SIZE)));

		if (n <= 0 && n != -EINTR)
			break;
		len -= (size_t)base_max(n, 0L);
	}
}

/* Octets of the pipe, which stay in it: how many, 0 at its end, -errno */
static long pipe_look(int in, char *buf, size_t len)
{
	int copy[2];
	long n;

	if (pipe2(copy, O_CLOEXEC | O_NONBLOCK))
		return -ENOMEM;
	n = libc_try(syscall(SYS_tee, in, copy[1], len, SPLICE_F_NONBLOCK));
	if (n > 0)
		n = libc_try(syscall(SYS_read, copy[0], buf, len));
	base_fd_close(copy[0]);
	base_fd_close(copy[1]);
	return n;
}

/* A pipe to a stream: one piece */
static long splice_out(struct sock *s, int in, size_t len, unsigned int flags, char *buf)
{
	struct iovec iov = { buf, 0 };
	long n = pipe_wait(in, POLLIN, flags);

	if (!n)
		n = pipe_look(in, buf, base_min(len, BASE_BOUNCE_SIZE));
	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	n = sock_send(s, &iov, 1, 0);
	if (n > 0)
		pipe_drop(in, (size_t)n, buf);
	return n;
}

/* Between @pipe and the stream @fd, by one of the two above */
static long splice_by(int fd, int pipe, size_t len, unsigned int flags,
		      long (*splice)(struct sock *s, int pipe, size_t len, unsigned int flags,
				     char *buf))
{
	struct sock *s = sock_get_stream(fd);
	char *buf = s ? base_bounce_get() : NULL;
	long r = s ? -ENOMEM : CALL_THEIRS;

	if (buf)
		r = splice(s, pipe, len, flags, buf);
	base_bounce_put(buf);
	sock_put(s);
	return r;
}

long call_splice(int in, off64_t *in_off, int out, off64_t *out_off, size_t len, unsigned int flags)
{
	/* What the kernel refuses, whatever the descriptors are */
	if (in_off || out_off || !len || flags & ~SPLICE_FLAGS)
		return CALL_THEIRS;
	if (fdtab_is_carried(in) && is_pipe(out, O_WRONLY))
		return splice_by(in, out, len, flags, splice_in);
	if (fdtab_is_carried(out) && is_pipe(in, O_RDONLY))
		return splice_by(out, in, len, flags, splice_out);
	return CALL_THEIRS;
}
