/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_RIGHTS_H
#define PRELOAD_RIGHTS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Is there a stream among the descriptors that the message is to pass on? */
bool rights_hold_stream(const struct msghdr *msg);

/* sendmsg() and sendmmsg() on a socket that is not ours: CALL_THEIRS, or what came of it */
long rights_send(int fd, const struct msghdr *msg, int flags);
long rights_send_many(int fd, struct mmsghdr *msgs, unsigned int n, int flags);

#endif
