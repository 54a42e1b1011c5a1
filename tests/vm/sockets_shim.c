/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of rsockets' own API on sockets: preloaded, it takes rdma-core's programs (rcopy) to
 * where no RDMA device is. What is a call of sockets by another name is done by that, under
 * warpsock by warpsock's; what sockets do not have, mappings and SOL_RDMA, is not there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOL_RDMA 0x10000 /* of rdma/rsocket.h */

int rsocket(int domain, int type, int protocol)
{
	return socket(domain, type, protocol);
}

int rbind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len);
}

int rlisten(int fd, int backlog)
{
	return listen(fd, backlog);
}

int raccept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept(fd, addr, len);
}

int rconnect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

int rshutdown(int fd, int how)
{
	return shutdown(fd, how);
}

int rclose(int fd)
{
	return close(fd);
}

ssize_t rrecv(int fd, void *buf, size_t len, int flags)
{
	return recv(fd, buf, len, flags);
}

ssize_t rsend(int fd, const void *buf, size_t len, int flags)
{
	return send(fd, buf, len, flags);
}

int rpoll(struct pollfd *fds, nfds_t n, int timeout)
{
	return poll(fds, n, timeout);
}

int rsetsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return level == SOL_RDMA ? 0 : setsockopt(fd, level, name, value, len);
}

int rgetsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return getsockopt(fd, level, name, value, len);
}

int rfcntl(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return fcntl(fd, cmd, arg);
}
