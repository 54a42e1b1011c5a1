/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that give a socket its address, and tell what it has and whose it is connected to.
 */
#include "preload/device/device.h"
#include "preload/table/libc.h"

static long name_tell(int fd, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct sock *s = sock_get(fd);
	long r = s ? device_name_tell(s, peer, addr, len) : CALL_THEIRS;

	sock_put(s);
	return r;
}

long call_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return name_tell(fd, true, addr, len);
}

long call_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return name_tell(fd, false, addr, len);
}

long call_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_get(fd);
	long r = s ? device_bind(s, addr, len) : CALL_THEIRS;

	sock_put(s);
	return r;
}
