/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the extended contract looks like in socket calls.
 */
#include "ddp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

int ddp_register(int fd, void *addr, size_t len, unsigned int access, uint32_t *stag)
{
	struct ddp_reg_mr mr = {
		.addr = (uintptr_t)addr,
		.length = len,
		.stag = (uintptr_t)stag,
		.access = access,
	};

	return setsockopt(fd, SOL_DDP, DDP_REG_MR, &mr, sizeof(mr));
}

int ddp_begin(int fd, int type, const void *what, size_t len)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(struct ddp_atomic))];
	} control = { .octets = { 0 } };
	struct msghdr msg = { .msg_control = &control, .msg_controllen = CMSG_SPACE(len) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_DDP;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), what, len);
	return (int)sendmsg(fd, &msg, MSG_NOSIGNAL);
}

int ddp_message_send(int fd, const void *p, size_t len)
{
	struct ddp_send m = { .addr = (uintptr_t)p, .length = len };

	return ddp_begin(fd, DDP_CMSG_SEND, &m, sizeof(m)) < 0 ? -1 : 0;
}

long ddp_message_recv(int fd, void *p, size_t room)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(struct ddp_send))];
	} control;
	struct iovec iov = { p, room };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	long got = recvmsg(fd, &msg, 0);

	if (got < 0)
		return got;
	if (!(msg.msg_flags & MSG_EOR) || msg.msg_flags & MSG_TRUNC) {
		errno = got ? EBADMSG : ECONNRESET;
		return -1;
	}
	return got;
}

/* A completion makes the socket ready as an error does, and does not disturb its other events */
int ddp_complete(int fd, struct ddp_completion *c)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(sizeof(*c))];
	} control;
	struct pollfd ready = { .fd = fd };

	for (;;) {
		struct msghdr msg = { .msg_control = &control, .msg_controllen = sizeof(control) };
		struct cmsghdr *h;

		if (recvmsg(fd, &msg, MSG_ERRQUEUE) >= 0) {
			h = CMSG_FIRSTHDR(&msg);
			if (h && h->cmsg_level == SOL_DDP && h->cmsg_type == DDP_CMSG_COMPLETION) {
				memcpy(c, CMSG_DATA(h), sizeof(*c));
				return 0;
			}
		} else if (errno != EAGAIN) {
			return -1;
		}
		if (poll(&ready, 1, -1) < 0 && errno != EINTR)
			return -1;
	}
}
