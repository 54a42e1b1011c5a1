/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_IO_H
#define PRELOAD_IO_H

#include <sys/socket.h>
#include <sys/uio.h>

/*
 * sock_send_fd() with an address, which a connection ignores, and MSG_FASTOPEN, which may make one
 */
long io_send_to(int fd, const struct iovec *iov, int n, int flags, const struct sockaddr *to,
		socklen_t tolen);

#endif
