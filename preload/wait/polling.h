/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_POLLING_H
#define PRELOAD_POLLING_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Is one of them a socket of ours, or a set that may have members of ours? */
bool polling_has_ours(const struct pollfd *fds, nfds_t n);
/* As ppoll(), for a list with some of ours; -errno */
int polling_list(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask);
/* For select(), which RLIMIT_NOFILE does not bound: what it does not tell may be missing then */
int polling_sets(struct pollfd *fds, nfds_t n, uint64_t deadline, const sigset_t *mask);

#endif
