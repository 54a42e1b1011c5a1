/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is asked of a socket from inside an intercepted call.
 */
#include "base/sockutil.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/result.h"

int base_sock_number(int fd, int level, int option)
{
	socklen_t len = sizeof(int);
	int value = 0, saved = errno;
	long err = base_result(syscall(SYS_getsockopt, fd, level, option, &value, &len), saved);

	return err < 0 ? (int)err : value;
}

int base_sock_cookie(int fd, uint64_t *cookie)
{
	socklen_t len = sizeof(*cookie);
	int saved = errno;

	return (int)base_result(syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, cookie, &len),
				saved);
}

int base_sock_error(int fd)
{
	return abs(base_sock_number(fd, SOL_SOCKET, SO_ERROR));
}

static int int_ioctl(int fd, unsigned long request)
{
	int saved = errno, n = 0;
	long err = base_result(syscall(SYS_ioctl, fd, request, &n), saved);

	return err < 0 ? (int)err : n;
}

int base_sock_unacked(int fd)
{
	return int_ioctl(fd, SIOCOUTQ);
}

/* The kernel's struct goes on where libc's ends */
struct tcp_info_more {
	struct tcp_info info;
	uint64_t pacing_rate, max_pacing_rate, bytes_acked;
};
_Static_assert(offsetof(struct tcp_info_more, bytes_acked) == 120, "as linux/tcp.h has it");

uint64_t base_sock_acked(int fd)
{
	struct tcp_info_more more = { .bytes_acked = 0 };
	socklen_t len = sizeof(more);
	int saved = errno;

	syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &more, &len);
	errno = saved;
	return more.bytes_acked;
}

int base_sock_unread(int fd)
{
	return int_ioctl(fd, SIOCINQ);
}

int base_sock_lowat(int fd)
{
	int octets = base_sock_number(fd, SOL_SOCKET, SO_RCVLOWAT);

	return octets < 0 ? 1 : octets;
}

void base_sock_set_lowat(int fd, int octets)
{
	int saved = errno;

	syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVLOWAT, &octets, sizeof(octets));
	errno = saved;
}

int base_sock_connect_flagged(int fd, const struct sockaddr *addr, socklen_t len, bool *nonblock)
{
	int saved = errno;
	long flags = base_result(syscall(SYS_fcntl, fd, F_GETFL, 0), saved), err;
	bool waits = flags < 0 || !(flags & O_NONBLOCK);

	if (flags >= 0 && waits)
		syscall(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
	err = base_result(syscall(SYS_connect, fd, addr, len), saved);
	if (flags >= 0 && waits)
		syscall(SYS_fcntl, fd, F_SETFL, flags);
	errno = saved;
	*nonblock = !waits;
	return (int)err;
}

int base_sock_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	bool nonblock;

	return base_sock_connect_flagged(fd, addr, len, &nonblock);
}

/* To connect to nowhere drops a connection; the error that it leaves behind is nobody's */
void base_sock_abort(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int saved = errno;

	if (syscall(SYS_connect, fd, &none, sizeof(none)) < 0)
		syscall(SYS_shutdown, fd, SHUT_RDWR);
	base_sock_error(fd);
	errno = saved;
}

bool base_sock_is_nonblock(int fd)
{
	int saved = errno;
	long flags = base_result(syscall(SYS_fcntl, fd, F_GETFL, 0), saved);

	return flags >= 0 && (flags & O_NONBLOCK);
}

static void info_get(int fd, struct tcp_info *info, socklen_t len)
{
	int saved = errno;

	memset(info, 0, sizeof(*info));
	syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, info, &len);
	errno = saved;
}

uint64_t base_sock_rtt(int fd)
{
	struct tcp_info info;

	info_get(fd, &info, sizeof(info));
	return info.tcpi_rtt * BASE_NS_PER_US;
}

/* The state is the first octet */
bool base_sock_is_connected(int fd)
{
	struct tcp_info info;

	info_get(fd, &info, sizeof(info.tcpi_state));
	return info.tcpi_state == TCP_ESTABLISHED;
}

int base_sock_linger(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);
	int saved = errno;

	syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &linger, &len);
	errno = saved;
	return linger.l_onoff ? base_max(linger.l_linger, 0) : -1;
}

uint64_t base_sock_timeout(int fd, int option)
{
	struct timeval tv = { 0 };
	socklen_t len = sizeof(tv);
	int saved = errno;
	long err = base_result(syscall(SYS_getsockopt, fd, SOL_SOCKET, option, &tv, &len), saved);

	if (err < 0 || (!tv.tv_sec && !tv.tv_usec))
		return BASE_NEVER;
	return (uint64_t)tv.tv_sec * BASE_NS_PER_S + (uint64_t)tv.tv_usec * BASE_NS_PER_US;
}
