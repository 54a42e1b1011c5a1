/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of TCP that frames need otherwise than the program has set them.
 */
#include "preload/sock/option.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "preload/table/libc.h"

struct config sock_config;

static void tcp_set(int fd, int name, int value)
{
	libc.setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value));
}

/* A cork would hold frames back, and a deferred connect() would send no SYN before a write */
void option_prepare(int fd, const struct option_values *values)
{
	if (values->cork)
		tcp_set(fd, TCP_CORK, 0);
	if (values->fast_open)
		tcp_set(fd, TCP_FASTOPEN_CONNECT, 0);
}

void option_restore(int fd, const struct option_values *values)
{
	tcp_set(fd, TCP_NODELAY, values->nodelay);
	tcp_set(fd, TCP_INQ, 0);
	if (values->cork)
		tcp_set(fd, TCP_CORK, 1);
}
