/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_DEVICE_H
#define PRELOAD_DEVICE_H

#include "preload/sock.h"

/*
 * Connections that a device carries, and not the program's socket, where the provider that is
 * wished for is one of devices.
 */

/*
 * Does the route to @peer lead over a device of that provider? Then sock->native is the connection,
 * for the stream to come. -ENODEV: it does not, and the socket is for the software provider from
 * now on; -EOPNOTSUPP: the provider has no devices
 */
int device_reach(struct sock *s, const struct sockaddr *peer, socklen_t len);
/* No stream has come of it: the software provider is to serve */
void device_drop(struct sock *s);
/* Of a socket whose stream a device carries: its addresses */
bool device_carries(const struct sock *s);
int device_name(const struct sock *s, bool peer, struct sockaddr_storage *out);

#endif
