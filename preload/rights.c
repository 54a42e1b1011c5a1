/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors in messages (SCM_RIGHTS): who receives a stream knows nothing of it, so a message
 * that has one is not sent. Looked at only while there are streams.
 */
#include "preload/rights.h"

#include <string.h>

#include "base/log.h"
#include "preload/libc.h"
#include "preload/pieces.h"
#include "preload/sock.h"

static bool is_stream(int fd)
{
	struct sock *s = sock_get_stream(fd);

	sock_put(s);
	return s;
}

/* @room: octets from @c to the end of all; what says that it is longer the kernel refuses */
static bool has_stream(const struct cmsghdr *c, size_t room)
{
	size_t n = c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	int fd;

	if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len > room)
		return false;
	for (size_t i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (!is_stream(fd))
			continue;
		base_err("descriptor %d is a DDP stream and cannot be passed on", fd);
		return true;
	}
	return false;
}

bool rights_hold_stream(const struct msghdr *msg)
{
	const char *end;
	const struct cmsghdr *c;

	if (pieces_wild(msg, sizeof(*msg)) || pieces_wild(msg->msg_control, msg->msg_controllen))
		return false;
	end = (const char *)msg->msg_control + msg->msg_controllen;
	c = CMSG_FIRSTHDR(msg);
	for (; c; c = CMSG_NXTHDR((struct msghdr *)msg, (struct cmsghdr *)c))
		if (has_stream(c, (size_t)(end - (const char *)c)))
			return true;
	return false;
}

long rights_send(int fd, const struct msghdr *msg, int flags)
{
	return rights_hold_stream(msg) ? -EOPNOTSUPP : CALL_THEIRS;
}

/* Those before it are sent, as when the kernel refuses one */
long rights_send_many(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	unsigned int i = 0;

	while (i < n && !rights_hold_stream(&msgs[i].msg_hdr))
		i++;
	if (i == n)
		return CALL_THEIRS;
	return i ? libc_try(libc.sendmmsg(fd, msgs, i, flags)) : -EOPNOTSUPP;
}
