/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket that was reset, for a program that is to find what TCP would have told it.
 *
 * Only a peer can make the kernel say ECONNRESET: so the socket is connected to a listener of this
 * moment, on the loopback interface, which ends before it accepts.
 */
#include "preload/sock/reset.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/sockutil.h"
#include "preload/table/libc.h"

/* Each family of sockets has it */
static socklen_t loopback(int domain, struct sockaddr_storage *out)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	memcpy(out, &four, sizeof(four));
	if (domain == AF_INET6)
		base_address_map(out);
	return base_address_len(out);
}

static int reset_by(int fd, int listener, int domain)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = loopback(domain, &at);

	if (libc.bind(listener, (struct sockaddr *)&at, len) || libc.listen(listener, 1) ||
	    libc.getsockname(listener, (struct sockaddr *)&at, &len))
		return -errno;
	return base_sock_connect(fd, (struct sockaddr *)&at, len);
}

/* By the end of a listener that has not accepted it. Where there is none, it is unconnected */
void reset_make(int fd)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int domain = base_sock_number(fd, SOL_SOCKET, SO_DOMAIN);
	int listener = libc.socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0)
		return;
	reset_by(fd, listener, domain);
	libc.close(listener);
	if (!(base_sock_ready(fd, POLLIN) & POLLHUP))
		libc.connect(fd, &nowhere, sizeof(nowhere));
}
