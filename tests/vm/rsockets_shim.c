/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Preloaded before librspreload of rdma-core 44: says what programs say today in the words that it
 * knows. It does not know flags in a socket's type, and a socket() with one is silently plain TCP;
 * nor accept4(), fcntl64() and FIONBIO, which then act on the /dev/null that it shows the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

static int (*next_socket)(int, int, int);
static int (*next_accept)(int, struct sockaddr *, socklen_t *);
static int (*next_fcntl)(int, int, ...);
static int (*next_ioctl)(int, unsigned long, ...);

__attribute__((constructor)) static void find(void)
{
	next_socket = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	next_accept = (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT, "accept");
	next_fcntl = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
	next_ioctl = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
}

/* Close-on-exec has no meaning under librspreload: nothing of it survives an exec. */
static int with_flags(int fd, int flags)
{
	if (fd >= 0 && (flags & SOCK_NONBLOCK))
		next_fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

int socket(int domain, int type, int protocol)
{
	return with_flags(next_socket(domain, type & ~FLAGS, protocol), type);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return with_flags(next_accept(fd, addr, len), flags);
}

int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return next_fcntl(fd, cmd, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == FIONBIO)
		return next_fcntl(fd, F_SETFL, *(int *)arg ? O_NONBLOCK : 0);
	return next_ioctl(fd, request, arg);
}
