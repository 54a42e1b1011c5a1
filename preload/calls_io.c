/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that move octets of a buffer or an iovec.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/octets.h"

long call_read(int fd, void *buf, size_t len)
{
	struct iovec iov = { buf, len };

	return octets_recv(fd, &iov, 1, 0);
}

long call_readv(int fd, const struct iovec *iov, int n)
{
	return octets_recv(fd, iov, n, 0);
}

long call_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };

	return octets_recv(fd, &iov, 1, flags);
}

/* A connected stream has no address to tell: the kernel leaves *fromlen alone as well */
long call_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *from,
		   socklen_t *fromlen)
{
	struct iovec iov = { buf, len };

	return octets_recv(fd, &iov, 1, flags);
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

	return octets_send(fd, &iov, 1, 0);
}

long call_writev(int fd, const struct iovec *iov, int n)
{
	return octets_send(fd, iov, n, 0);
}

long call_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)buf, len };

	return octets_send(fd, &iov, 1, flags);
}

long call_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
		 socklen_t tolen)
{
	struct iovec iov = { (void *)buf, len };

	return octets_send(fd, &iov, 1, flags);
}
