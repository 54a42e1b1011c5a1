/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_KERNEL_H
#define PRELOAD_KERNEL_H

#include <stdbool.h>
#include <sys/uio.h>

/*
 * Waits for what the kernel is to give: a connection, or the octets of a socket without DDP. The
 * call itself is libc's, and begins behind them.
 */

/*
 * Before the call on the socket @fd that takes in octets (@flags: sock_io.h): CALL_THEIRS: now is
 * the time for it, else what the program gets
 */
long kernel_input(int fd, const struct iovec *iov, int n, int flags);
/*
 * Around accept(). Before it, with nothing held: spins where that pays. 0: now is the time for
 * libc's, -EINTR
 */
long kernel_accept_begin(int fd);
/* Behind it; @got: a connection has come */
void kernel_accept_end(int fd, int got);

#endif
