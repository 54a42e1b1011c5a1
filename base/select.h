/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_SELECT_H
#define BASE_SELECT_H

#include <poll.h>
#include <signal.h>
#include <time.h>

/*
 * As base_ppoll(), for a list that is longer than RLIMIT_NOFILE, which poll() refuses (EINVAL).
 * select() tells less: of POLLHUP and POLLERR that one can read or write, POLLRDHUP only when
 * nothing is left to be read, and nothing of descriptors that are asked for nothing. -EINVAL: a
 * number is too high, or nobody may call it
 */
int base_select(struct pollfd *fds, unsigned int n, struct timespec *limit, const sigset_t *mask);

#endif
