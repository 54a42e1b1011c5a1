/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_NEAR_H
#define PRELOAD_NEAR_H

#include <stdbool.h>
#include <sys/socket.h>

/* Which hosts are asked beside a connection although no rule says so */

/* One host's, and not this host's by its form: neither loopback nor for several */
bool near_is_host(const struct sockaddr *addr, socklen_t len);
/* Private (RFC 1918), unique-local (RFC 4193) or link-local of IPv6 */
bool near_is_private(const struct sockaddr *addr, socklen_t len);
/* In a subnet of one of this host's addresses: asks the kernel */
bool near_is_on_link(const struct sockaddr *addr, socklen_t len);

#endif
