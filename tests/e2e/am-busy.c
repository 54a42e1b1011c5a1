/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Preloaded into a rank: its first bind() to a queue of an interface finds the queue busy, as it is
 * for a moment after another process's socket was closed.
 */
#undef _GNU_SOURCE /* bind() has unions of pointers with it */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int bind(int fd, const struct sockaddr *name, socklen_t len)
{
	static bool refused;

	if (name->sa_family == PF_XDP && !refused) {
		refused = true;
		errno = EBUSY;
		return -1;
	}
	return (int)syscall(SYS_bind, fd, name, len);
}
