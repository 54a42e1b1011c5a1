/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_DDP_H
#define PRELOAD_DDP_H

#include <stdbool.h>
#include <sys/socket.h>
#include <warp/ddp.h>

#include "preload/sock/sock.h"

/*
 * The extended contract of warp/ddp.h, as the calls have need of it. Everything returns -errno or
 * CALL_THEIRS, for which the kernel has the answer.
 */

/* --- ddp.c: options of SOL_DDP --- */

long ddp_setsockopt(int fd, int name, const void *value, socklen_t len);
long ddp_getsockopt(int fd, int name, void *value, socklen_t *len);
/* Start-up is over, or -EAGAIN where the call may not wait, or what it has come to */
int ddp_ready(struct sock *s, int flags);

/* --- ddp_message.c: control messages of SOL_DDP --- */

/* Is there one in @msg, whose memory is sound? */
bool ddp_is_wanted(const struct msghdr *msg);
long ddp_sendmsg(int fd, const struct msghdr *msg, int flags);
/* A user message or octets, whichever is next, for a program with room for DDP_CMSG_SEND */
bool ddp_may_recv(const struct msghdr *msg);
long ddp_recvmsg(struct sock *s, struct msghdr *msg, int flags);
/* A completion, or CALL_THEIRS: there is none of ours */
long ddp_errqueue(int fd, struct msghdr *msg);

#endif
