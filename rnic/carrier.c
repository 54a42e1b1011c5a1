/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The carrier of all connections that are their socket's: TCP, asked by its descriptor.
 */
#include "rnic/rnic_carrier.h"

#include <errno.h>
#include <poll.h>

#include "base/sockutil.h"

/* What is connected, as is each that was accepted, has nothing more to tell */
static int socket_connect(const struct rnic_stream_mem *mem, int fd, short *events)
{
	*events = POLLOUT;
	if (base_sock_is_connected(fd))
		return 0;
	return base_sock_ready(fd, POLLOUT) ? -base_sock_error(fd) : -EAGAIN;
}

static bool socket_room(const struct rnic_stream_mem *mem, int fd)
{
	return base_sock_ready(fd, POLLOUT);
}

static int socket_unacked(const struct rnic_stream_mem *mem, int fd)
{
	return base_sock_unacked(fd);
}

static void socket_abort(const struct rnic_stream_mem *mem, int fd)
{
	base_sock_abort(fd);
}

const struct rnic_carrier_ops rnic_socket_carrier = {
	.connect = socket_connect,
	.room = socket_room,
	.unacked = socket_unacked,
	.abort = socket_abort,
};
