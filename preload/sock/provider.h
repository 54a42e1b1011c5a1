/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PROVIDER_H
#define PRELOAD_PROVIDER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "config/reason.h"

struct rnic_native;
struct rnic_native_ops;
struct rnic_ops;
struct sock;

/* Who serves a socket: software over the socket itself, or a device that carries a connection */

/* Of the provider that is wished for, if it is one of devices; NULL: it is not */
const struct rnic_native_ops *provider_ops(const struct sock *s);
/* The provider that is wished for, or, where the route decides, the first; NULL: no devices */
const struct rnic_ops *provider_of(const struct sock *s);
/* It is to serve; empty: the route decides */
void provider_choose(struct sock *s, const char *provider);
/* What a rule says of the provider, unless it is NULL or the program has said another one */
void provider_wish(struct sock *s, const char *provider);
/* Why no device is to be had */
enum config_reason provider_reason(int err);
/* The software provider is to serve, for @reason */
void provider_forgo(struct sock *s, enum config_reason reason);

/*
 * Does the route to @peer lead over a device of the provider that is wished for, or of any where
 * the route decides? Then sock->native is the connection, for the stream to come. -ENODEV: it does
 * not, and the software provider serves; -EOPNOTSUPP: the provider has no devices
 */
int provider_reach(struct sock *s, const struct sockaddr *peer, socklen_t len);
/* No stream has come of it: the software provider is to serve */
void provider_drop(struct sock *s);
/* What the program wishes of a device's connection by options that the socket keeps */
void provider_keepalive(const struct sock *s);
/* A connection that nobody is to have; NULL is fine */
void provider_refuse(const struct sock *s, struct rnic_native *native);
/* A device has a listener or a connection of this process, or had one */
void provider_use(void);
bool provider_is_used(void);

#endif
