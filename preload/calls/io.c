/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that move octets of a buffer or an iovec.
 */
#include "preload/calls/io.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "preload/sock/sock.h"
#include "preload/table/user_iov.h"
#include "preload/wait/sock_io.h"

/* Of one buffer, the kernel takes no more than this into account */
static struct iovec one(const void *buf, size_t len)
{
	return (struct iovec){ (void *)buf, base_min(len, (size_t)INT_MAX) };
}

static long file_in(int fd, const struct iovec *iov, int n, int flags)
{
	return sock_recv_fd(fd, iov, n, flags | SOCK_IO_FILE);
}

static long file_out(int fd, const struct iovec *iov, int n, int flags)
{
	return sock_send_fd(fd, iov, n, flags | SOCK_IO_FILE);
}

long call_read(int fd, void *buf, size_t len)
{
	struct iovec iov = { buf, len };

	return file_in(fd, &iov, 1, 0);
}

long call_readv(int fd, const struct iovec *iov, int n)
{
	return file_in(fd, iov, n, 0);
}

/* What of RWF_ a socket takes; for the most part it has no meaning there */
#define RWF_TAKEN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND)

/* The MSG_ flags for an offset and RWF_ flags; SOCK_IO_THEIRS: the kernel knows the errno */
static long rwf_flags(off_t offset, int flags)
{
	if (offset != -1)
		return SOCK_IO_THEIRS;
	if (flags & ~RWF_TAKEN)
		return -EOPNOTSUPP;
	return flags & RWF_NOWAIT ? MSG_DONTWAIT : 0;
}

static long at_in(int fd, const struct iovec *iov, int n, off_t offset, int rwf)
{
	long flags = rwf_flags(offset, rwf);

	return flags < 0 ? flags : file_in(fd, iov, n, (int)flags);
}

static long at_out(int fd, const struct iovec *iov, int n, off_t offset, int rwf)
{
	long flags = rwf_flags(offset, rwf);

	return flags < 0 ? flags : file_out(fd, iov, n, (int)flags);
}

long call_preadv2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	return at_in(fd, iov, n, offset, flags);
}

long call_preadv64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	return call_preadv2(fd, iov, n, offset, flags);
}

long call_pwritev2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	return at_out(fd, iov, n, offset, flags);
}

long call_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	return call_pwritev2(fd, iov, n, offset, flags);
}

long call_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = one(buf, len);

	return sock_recv_fd(fd, &iov, 1, flags & ~SOCK_IO_FILE);
}

/* A stream has no address to tell, and says so; the octets are gone whatever is wrong here */
static long no_address(long got, struct sockaddr *from, socklen_t *fromlen)
{
	if (got < 0 || !from)
		return got;
	if (user_iov_wild(fromlen, sizeof(*fromlen)))
		return -EFAULT;
	if ((int)*fromlen < 0)
		return -EINVAL;
	*fromlen = 0;
	return got;
}

long call_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
		   socklen_t *fromlen)
{
	struct iovec iov = one(buf, len);
	long got = sock_recv_fd(fd, &iov, 1, flags & ~SOCK_IO_FILE);

	return no_address(got, from, fromlen);
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

	return sock_send_fd(fd, &iov, 1, 0);
}

long call_writev(int fd, const struct iovec *iov, int n)
{
	return file_out(fd, iov, n, 0);
}

long call_send(int fd, const void *buf, size_t len, int flags)
{
	return call_sendto(fd, buf, len, flags, NULL, 0);
}

/* An address as the kernel takes it from a program: 0 or -errno */
static int address_check(const struct sockaddr *to, socklen_t tolen)
{
	if ((int)tolen < 0 || tolen > sizeof(struct sockaddr_storage))
		return -EINVAL;
	return tolen && user_iov_wild(to, tolen) ? -EFAULT : 0;
}

/*
 * TCP Fast Open without a cookie: connect, then send. Linux does the same on the first connection
 * to a peer.
 */
static long fast_open(int fd, const struct sockaddr *to, socklen_t tolen)
{
	struct sock *s = sock_get(fd);
	enum sock_role role = s ? sock_role(s) : SOCK_PLAIN;

	sock_put(s);
	if (to && tolen >= sizeof(to->sa_family) && to->sa_family == AF_UNSPEC)
		return -EOPNOTSUPP;
	if (role == SOCK_STREAM_ON)
		return -EISCONN;
	return role == SOCK_NEW && to ? call_connect(fd, to, tolen) : SOCK_IO_THEIRS;
}

long io_send_to(int fd, const struct iovec *iov, int n, int flags, const struct sockaddr *to,
		socklen_t tolen)
{
	long err = to ? address_check(to, tolen) : 0;

	if (!err && flags & MSG_FASTOPEN)
		err = fast_open(fd, to, tolen);
	return err ? err : sock_send_fd(fd, iov, n, flags);
}

long call_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		 socklen_t tolen)
{
	struct iovec iov = one(buf, len);

	return io_send_to(fd, &iov, 1, flags & ~SOCK_IO_FILE, to, tolen);
}
