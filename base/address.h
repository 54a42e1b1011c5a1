/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Addresses of IPv4 and IPv6; what is not the one is the other. Ports are in the network's order */

static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	      "the port is at the same place in both families");

static inline bool base_address_is_four(const void *addr)
{
	return ((const struct sockaddr *)addr)->sa_family == AF_INET;
}

static inline socklen_t base_address_len(const void *addr)
{
	return base_address_is_four(addr) ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

static inline in_port_t base_address_port(const void *addr)
{
	return ((const struct sockaddr_in *)addr)->sin_port;
}

static inline void base_address_set_port(void *addr, in_port_t port)
{
	((struct sockaddr_in *)addr)->sin_port = port;
}

/* Is it that of all addresses? */
static inline bool base_address_is_any(const void *addr)
{
	if (base_address_is_four(addr))
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

/* An IPv4 address as a socket of IPv6 shows it; there is room for either */
static inline void base_address_map(void *addr)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = base_address_port(addr) };

	memset(&six.sin6_addr.s6_addr[10], 0xff, 2);
	memcpy(&six.sin6_addr.s6_addr[12], &((const struct sockaddr_in *)addr)->sin_addr, 4);
	memcpy(addr, &six, sizeof(six));
}

/* Back, if it is one that was mapped */
static inline void base_address_unmap(void *addr)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = base_address_port(addr) };
	struct sockaddr_in6 six;

	if (((const struct sockaddr *)addr)->sa_family != AF_INET6)
		return;
	memcpy(&six, addr, sizeof(six));
	if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof(four.sin_addr));
	memset(addr, 0, sizeof(six));
	memcpy(addr, &four, sizeof(four));
}

#endif
