/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif
