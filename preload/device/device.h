/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_DEVICE_H
#define PRELOAD_DEVICE_H

#include "preload/sock/sock.h"

struct rnic_native_ops;
struct rnic_ops;

/*
 * Connections that a device carries, and not the program's socket, where the provider that is
 * wished for is one of devices.
 */

/* NULL: it is not */
const struct rnic_native_ops *device_ops(const struct sock *s);
/* The provider that is wished for, or, where the route decides, the first; NULL: no devices */
const struct rnic_ops *device_provider(const struct sock *s);
/* It is to serve; empty: the route decides */
void device_choose(struct sock *s, const char *provider);
/* What a rule says of the provider, unless it is NULL or the program has said another one */
void device_wish(struct sock *s, const char *provider);
/* Why no device is to be had */
enum config_reason device_reason(int err);
/* The software provider is to serve, for @reason */
void device_forgo(struct sock *s, enum config_reason reason);

/* --- connect() --- */

/*
 * Does the route to @peer lead over a device of the provider that is wished for, or of any where
 * the route decides? Then sock->native is the connection, for the stream to come. -ENODEV: it does
 * not, and the software provider serves; -EOPNOTSUPP: the provider has no devices
 */
int device_reach(struct sock *s, const struct sockaddr *peer, socklen_t len);
/* No stream has come of it: the software provider is to serve */
void device_drop(struct sock *s);
/*
 * A device could not begin: anew over the socket. As sock_progress(), which has said @err
 * (fallback.c)
 */
int device_leave(struct sock *s, int err);

/* --- what it answers (device/ask.c) --- */

/* Has it a stream, and a device carries that? */
bool device_carries(const struct sock *s);
/* Its addresses, as getsockname() and getpeername() give them */
long device_name_give(const struct sock *s, bool peer, struct sockaddr *addr, socklen_t *len);
/* As getsockopt(); CALL_THEIRS: the kernel knows */
long device_option(struct sock *s, int level, int name, void *value, socklen_t *len);

/* --- listen(), accept() (device/listen.c) --- */

/* As listen() of one of ours: the kernel, a device, or both listen then */
long device_listen(struct sock *s, int fd, int backlog);
/* Does a device? */
bool device_listens(const struct sock *s);
/* The same, when the socket goes */
void device_unlisten(struct sock *s);
/* As shutdown() of such a listener */
long device_shutdown(struct sock *s, int fd, int how);
/* One that asked; NULL is fine */
void device_refuse(const struct sock *listener, struct rnic_native *native);
/* What stands for @fd where one waits for it */
int device_wait_fd(int fd);
/*
 * The same in an epoll set, for as long as the socket is there; @enters: from now on, or -ENOMEM.
 * @fd itself if it has never been in one
 */
int device_stands(int fd, bool enters);

struct device_call {
	int fd;
	struct sockaddr *addr;
	socklen_t *len;
	int flags;
	struct rnic_native *native; /* out */
};

/* Is accept() to be made by device_take()? Without a reference */
bool device_accepts(int fd);
/* Takes @c->native, the device's, or else returns what the kernel's accept4() gave */
long device_take(struct sock *s, struct device_call *c);
/* Was a process that has the listener, too, at it (device_take()) when the kernel said EAGAIN? */
bool device_misled(const struct sock *s, int fd);
/* Makes a descriptor of @c->native */
long device_serve(struct sock *s, const struct device_call *c);
/* A filter is to stand: it would not let through what the libraries of devices do */
void device_before_sandbox(void);
/* This process is to be another program */
void device_before_exec(void);
void device_before_fork(void);
void device_after_fork(bool child);

#endif
