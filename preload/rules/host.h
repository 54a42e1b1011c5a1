/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_HOST_H
#define PRELOAD_HOST_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Listeners for DDP on this host, which the processes tell each other of: a reason for a client in
 * mode auto to ask. By network namespace, for all users.
 */

/*
 * The address that a connection to @addr reaches: an IPv4 address for a mapped one, the loopback
 * for none in particular. Its length; 0: no address of IP
 */
socklen_t host_reach(const struct sockaddr *addr, socklen_t len, struct sockaddr_storage *out);
/*
 * A descriptor of ours that stands for it until it is closed; negative: nobody will know. @told:
 * other hosts that ask are told of it, too
 */
int host_announce(const struct sockaddr *name, socklen_t len, bool told);
/* Is the address one of this host's? */
bool host_is_local(const struct sockaddr *addr, socklen_t len);
/* Would a connection to @peer reach one of them? */
bool host_listens(const struct sockaddr *peer, socklen_t len);
/* Is there one of exactly this address, or of all of them (@any), that other hosts are told of? */
bool host_tells(const struct sockaddr *addr, socklen_t len, bool any);

#endif
