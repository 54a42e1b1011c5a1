/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of rsockets' own API on sockets: preloaded, it takes rdma-core's programs (rcopy,
 * riostream) to where no RDMA device is. What is a call of sockets by another name is done by that,
 * under warpsock by warpsock's; mappings are done by warpsock's extended sockets. Of SOL_RDMA there
 * is the number of mappings alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warp/ddp.h>

/* Of rdma/rsocket.h */
#define SOL_RDMA 0x10000
#define RDMA_IOMAPSIZE 3

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
	if (level == SOL_RDMA && name == RDMA_IOMAPSIZE)
		setsockopt(fd, SOL_DDP, DDP_MAPS, value, len); /* a connected one has them */
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

/* --- mappings --- */

off_t riomap(int fd, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct ddp_map map = { .addr = (uintptr_t)buf, .length = len };
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	map.offset = offset == -1 ? map.addr : (uint64_t)offset;
	while (prot & PROT_WRITE && setsockopt(fd, SOL_DDP, DDP_MAP, &map, sizeof(map)))
		if (errno != EAGAIN || poll(&room, 1, -1) < 0)
			return -1;
	return (off_t)map.offset;
}

int riounmap(int fd, void *buf, size_t len)
{
	struct ddp_map map = { .addr = (uintptr_t)buf, .length = len };

	return setsockopt(fd, SOL_DDP, DDP_UNMAP, &map, sizeof(map));
}

/* One is under way at a time: 0 when it is complete, and its memory the program's again */
static int complete(int fd)
{
	union {
		struct cmsghdr head;
		char octets[CMSG_SPACE(sizeof(struct ddp_completion))];
	} control;
	struct pollfd wait = { .fd = fd };
	struct ddp_completion done;
	struct msghdr msg;

	do {
		if (poll(&wait, 1, -1) < 0)
			return -1;
		msg = (struct msghdr){ .msg_control = &control, .msg_controllen = sizeof(control) };
	} while (recvmsg(fd, &msg, MSG_ERRQUEUE) && errno == EAGAIN);
	memcpy(&done, CMSG_DATA(&control.head), sizeof(done));
	if (done.status == DDP_STATUS_OK)
		return 0;
	errno = ECONNRESET;
	return -1;
}

size_t riowrite(int fd, const void *buf, size_t len, off_t offset, int flags)
{
	union {
		struct cmsghdr head;
		char octets[CMSG_SPACE(sizeof(struct ddp_rdma))];
	} control = { .head = { CMSG_LEN(sizeof(struct ddp_rdma)), SOL_DDP,
				DDP_CMSG_WRITE_MAPPED } };
	struct ddp_rdma rdma = { .addr = (uintptr_t)buf,
				 .length = len,
				 .remote_to = (uint64_t)offset };
	struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &rdma, sizeof(rdma));
	return sendmsg(fd, &msg, 0) || complete(fd) ? (size_t)-1 : len;
}
