/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that take a struct msghdr.
 */
#include <sys/socket.h>

#include "base/bits.h"
#include "preload/octets.h"

static long msg_recv(int fd, struct msghdr *msg, int flags)
{
	long got;

	if (flags & MSG_ERRQUEUE)
		return OCTETS_THEIRS;
	got = octets_recv(fd, msg->msg_iov, (int)base_min(msg->msg_iovlen, 1024u), flags);
	if (got < 0)
		return got;
	msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	return got;
}

long call_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return msg_recv(fd, msg, flags);
}

static long msg_send(int fd, const struct msghdr *msg, int flags)
{
	return octets_send(fd, msg->msg_iov, (int)base_min(msg->msg_iovlen, 1024u), flags);
}

long call_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return msg_send(fd, msg, flags);
}
