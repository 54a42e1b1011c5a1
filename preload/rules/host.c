/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A listener's process binds a socket to an abstract name of AF_UNIX, which is made of address and
 * port. The name is there as long as a process has the socket, and is gone without anybody's doing
 * when the last one has died. Who wants to know tries to connect to it: no file, no daemon, nothing
 * to be cleaned up. Several processes may listen at one port, so there are a few names for each.
 *
 * Anybody on the host can bind such a name. What he gains is that a client asks a plain server for
 * DDP, once a minute, and then does without.
 */
#include "preload/rules/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/fdutil.h"
#include "preload/table/internal.h"

/* And as many more, of which other hosts are not told */
#define NAMES 4u

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

/* Address and port; a mapped IPv4 address is an IPv4 address. False: neither family */
static bool address_of(const struct sockaddr *from, socklen_t len, union address *out)
{
	memset(out, 0, sizeof(*out));
	if (len < sizeof(struct sockaddr_in))
		return false;
	memcpy(out, from, len < sizeof(*out) ? len : sizeof(*out));
	if (out->any.sa_family != AF_INET6)
		return out->any.sa_family == AF_INET;
	base_address_unmap(out);
	return true;
}

socklen_t host_reach(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *out)
{
	union address a;

	if (!address_of(addr, len, &a))
		return 0;
	if (base_address_is_any(&a) && a.any.sa_family == AF_INET)
		a.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (base_address_is_any(&a))
		a.six.sin6_addr = in6addr_loopback;
	memcpy(out, &a, sizeof(a));
	return base_address_len(&a);
}

/* Of all addresses there is one name: an IPv6 listener mostly serves both families */
static socklen_t name_make(const union address *a, bool any, unsigned int number,
			   struct sockaddr_un *out)
{
	char text[INET6_ADDRSTRLEN] = "*";
	int n;

	if (!any && a->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &a->four.sin_addr, text, sizeof(text));
	else if (!any)
		inet_ntop(AF_INET6, &a->six.sin6_addr, text, sizeof(text));
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "warpsock/listen/%s/%u/%u", text,
		     ntohs(base_address_port(a)), number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int unix_socket(void)
{
	return (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int host_announce(const struct sockaddr *name, socklen_t len, bool told)
{
	unsigned int first = told ? 0 : NAMES;
	int saved = errno, fd = -1;
	struct sockaddr_un un;
	union address a;

	if (address_of(name, len, &a))
		fd = unix_socket();
	for (unsigned int i = first; fd >= 0 && i < first + NAMES; i++) {
		len = name_make(&a, base_address_is_any(&a), i, &un);
		if (!syscall(SYS_bind, fd, &un, len)) {
			errno = saved;
			return internal_move(fd);
		}
	}
	base_fd_close(fd);
	errno = saved;
	return -1;
}

static bool is_local(const union address *a)
{
	union address probe = *a;
	int fd;
	bool local;

	if (a->any.sa_family == AF_INET && ntohl(a->four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
		return true;
	fd = (int)syscall(SYS_socket, a->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	base_address_set_port(&probe, 0);
	local = fd >= 0 && !syscall(SYS_bind, fd, &probe, base_address_len(a));
	base_fd_close(fd);
	return local;
}

bool host_is_local(const struct sockaddr *addr, socklen_t len)
{
	int saved = errno;
	union address a;
	bool local = address_of(addr, len, &a) && is_local(&a);

	errno = saved;
	return local;
}

static bool is_announced(int fd, const union address *a, bool any, unsigned int names)
{
	struct sockaddr_un un;

	for (unsigned int i = 0; i < names; i++) {
		socklen_t len = name_make(a, any, i, &un);

		if (!syscall(SYS_connect, fd, &un, len))
			return true;
	}
	return false;
}

bool host_listens(const struct sockaddr *peer, socklen_t len)
{
	int saved = errno, fd = -1;
	union address a;
	bool found = false;

	if (address_of(peer, len, &a) && is_local(&a))
		fd = unix_socket();
	if (fd >= 0)
		found = is_announced(fd, &a, false, 2 * NAMES) ||
			is_announced(fd, &a, true, 2 * NAMES);
	base_fd_close(fd);
	errno = saved;
	return found;
}

bool host_tells(const struct sockaddr *addr, socklen_t len, bool any)
{
	int saved = errno, fd = -1;
	union address a;
	bool found = false;

	if (address_of(addr, len, &a))
		fd = unix_socket();
	if (fd >= 0)
		found = is_announced(fd, &a, any, NAMES);
	base_fd_close(fd);
	errno = saved;
	return found;
}
