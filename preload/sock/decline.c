/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of a device that were accepted for another process.
 *
 * A device's connection is its process's, and that a server accepts for a child, or for a worker,
 * shows only behind accept(). Beside the kernel's listener the peer is not answered before that: by
 * the first call that would move octets or wait for some, or soon by the attendant. If a fork() of
 * the same thread comes first, an execution or a message, the peer is refused. It comes again by
 * TCP, so the program has its connection by software; of the first one it finds that its peer has
 * reset it.
 */
#include "preload/sock/decline.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "config/reason.h"
#include "preload/guard/sandbox.h"
#include "preload/rules/report.h"
#include "preload/sock/attend.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"

static bool declined; /* atomic */

bool sock_has_declined(void)
{
	return __atomic_load_n(&declined, __ATOMIC_ACQUIRE);
}

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
static void reset_make(int fd)
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

bool sock_decline(struct sock *s)
{
	if (!s->accepted || !sock_on_device(s) || __atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE) ||
	    s->stream->ops->decline(s->stream))
		return false;
	base_info("descriptor %d is for another process: its peer comes again by TCP", s->fd);
	__atomic_store_n(&declined, true, __ATOMIC_RELEASE);
	attend_forget(s);
	/* It has been no connection, and is none */
	__atomic_store_n(&s->reported, true, __ATOMIC_RELAXED);
	__atomic_store_n(&s->late, true, __ATOMIC_RELEASE);
	report_reason(CONFIG_REASON_FORKED, 1);
	reset_make(s->fd);
	sock_give_back(s, CONFIG_REASON_FORKED);
	return true;
}
