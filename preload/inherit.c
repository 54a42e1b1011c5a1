/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets that a program finds open when it starts: listeners from a predecessor or from who
 * started it, and sockets that are yet to be connected. A connection stays plain TCP, as it was
 * made; one over DDP is never inherited (preload/calls_exec.c).
 */
#include "preload/inherit.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/choose.h"
#include "preload/libc.h"
#include "preload/sock.h"

static int option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return libc.getsockopt(fd, SOL_SOCKET, name, &value, &len) ? -1 : value;
}

static int tcp_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? -1 : info.tcpi_state;
}

static void inherit(int fd)
{
	struct sock *s;
	int state;

	if (option(fd, SO_TYPE) != SOCK_STREAM || option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return;
	state = tcp_state(fd);
	if ((state != TCP_LISTEN && state != TCP_CLOSE) || sock_create(fd))
		return;
	s = sock_get(fd);
	if (s && state == TCP_LISTEN)
		sock_listening(s);
	sock_put(s);
	base_info("descriptor %d is inherited and may be for DDP", fd);
}

/* Names of numbers; others stand for the folder and its parent */
static void each_name(const char *at, const char *end)
{
	while (at < end) {
		const struct dirent64 *entry = (const struct dirent64 *)(const void *)at;
		char *rest;
		long fd = strtol(entry->d_name, &rest, 10);

		if (rest != entry->d_name && !*rest)
			inherit((int)fd);
		at += entry->d_reclen;
	}
}

void inherit_sockets(void)
{
	_Alignas(struct dirent64) char names[4096];
	long dir, n;

	if (!choose_may(CONFIG_CLIENT) && !choose_may(CONFIG_SERVER))
		return;
	dir = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, names, sizeof(names))) > 0)
		each_name(names, names + n);
	base_fd_close((int)dir);
}
