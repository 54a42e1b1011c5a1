/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets that a program finds open when it starts: listeners from a predecessor or from who
 * started it, sockets that are yet to be connected, and streams (preload/process/exec_inherit.c). A
 * plain connection stays one.
 */
#include "preload/process/inherit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/process/relay.h"
#include "preload/rules/choose.h"
#include "preload/sock/adopt.h"
#include "preload/sock/listens.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"

static int option(int fd, int name)
{
	return base_sock_number(fd, SOL_SOCKET, name);
}

static int tcp_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? -1 : info.tcpi_state;
}

static void inherit_unconnected(int fd, int state)
{
	struct sock *s;

	if (!choose_may(CONFIG_CLIENT) && !choose_may(CONFIG_SERVER))
		return;
	if (sock_create(fd))
		return;
	s = sock_get(fd);
	if (s && state == TCP_LISTEN) {
		s->proxy.given = true;
		listens_begin(s);
	} else if (s) {
		sock_tenure_set(s, SOCK_NEW_ELSEWHERE);
	}
	sock_put(s);
	base_info("descriptor %d is inherited and may be for DDP", fd);
}

static void come(int fd, enum sock_adopt_way way)
{
	int state;

	/* Descriptors of our own come up while we look */
	if (fdtab_is_ours(fd) || option(fd, SO_TYPE) != SOCK_STREAM ||
	    option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return;
	state = tcp_state(fd);
	if (state == TCP_LISTEN || (state == TCP_CLOSE && sock_adopt(fd, way) == -ENOENT))
		inherit_unconnected(fd, state);
	else if (state >= 0 && state != TCP_CLOSE)
		sock_adopt(fd, way);
}

static void inherit(int fd, void *ctx)
{
	come(fd, SOCK_ADOPT_INHERITED);
}

void inherit_received(int fd, bool peek)
{
	come(fd, peek ? SOCK_ADOPT_PEEKED : SOCK_ADOPT_RECEIVED);
}

/* Names of numbers; others stand for the folder and its parent */
static void each_name(const char *at, const char *end, int dir, void (*fn)(int fd, void *ctx),
		      void *ctx)
{
	while (at < end) {
		const struct dirent64 *entry = (const struct dirent64 *)(const void *)at;
		char *rest;
		long fd = strtol(entry->d_name, &rest, 10);

		if (rest != entry->d_name && !*rest && fd != dir)
			fn((int)fd, ctx);
		at += entry->d_reclen;
	}
}

/* Without /proc, or with one number for that and another file, there is nothing but to try */
static void each_try(void (*fn)(int fd, void *ctx), void *ctx)
{
	struct rlimit limit = { .rlim_cur = 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = 0; fd < (int)base_min(limit.rlim_cur, 4096u); fd++)
		if (base_fd_is_open(fd))
			fn(fd, ctx);
}

static long names_open(void)
{
	long dir =
		syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long more = dir < 0 ? -1 : syscall(SYS_fcntl, dir, F_DUPFD_CLOEXEC, 0);

	base_fd_close((int)more);
	if (more >= 0)
		return dir;
	base_fd_close((int)dir);
	return -1;
}

void inherit_each(void (*fn)(int fd, void *ctx), void *ctx)
{
	_Alignas(struct dirent64) char names[4096];
	int saved = errno;
	long dir, n;

	dir = names_open();
	if (dir < 0)
		each_try(fn, ctx);
	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, names, sizeof(names))) > 0)
		each_name(names, names + n, (int)dir, fn, ctx);
	base_fd_close((int)dir);
	errno = saved;
}

/* Who reads there is a peer, and wants no words of ours */
static bool stderr_is_a_peers(void)
{
	return relay_is_behind(STDERR_FILENO) || option(STDERR_FILENO, SO_PROTOCOL) == IPPROTO_TCP;
}

void inherit_sockets(void)
{
	if (stderr_is_a_peers())
		__atomic_store_n(&base_log_fd, -1, __ATOMIC_RELAXED);
	inherit_each(inherit, NULL);
}
