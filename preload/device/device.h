/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_DEVICE_H
#define PRELOAD_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "preload/sock/sock.h"

struct rnic_native;

/* Sockets whose connection, or whose listener, is a device's (preload/sock/provider.h) */

/* --- what it answers (ask.c) --- */

/* Its addresses, as getsockname() and getpeername() give them */
long device_name_give(const struct sock *s, bool peer, struct sockaddr *addr, socklen_t *len);
/* As those calls; CALL_THEIRS: the kernel knows */
long device_name_tell(struct sock *s, bool peer, struct sockaddr *addr, socklen_t *len);
/* As bind(); CALL_THEIRS likewise */
long device_bind(const struct sock *s, const struct sockaddr *addr, socklen_t len);
/* As getsockopt(); CALL_THEIRS: the kernel knows */
long device_option(struct sock *s, int level, int name, void *value, socklen_t *len);
/* As setsockopt(), likewise */
long device_option_set(struct sock *s, int level, int name, const void *value, socklen_t len);

/* --- listen() (listen.c) --- */

/* As listen() of one of ours: the kernel, a device, or both listen then */
long device_listen(struct sock *s, int fd, int backlog);

/* --- accept() (accept.c) --- */

struct device_call {
	int fd;
	struct sockaddr *addr;
	socklen_t *len;
	int flags;
	struct rnic_native *native; /* out */
	long made;		    /* the same: the descriptor for it */
};

/* Is accept() to be made by device_take()? Without a reference */
bool device_accepts(int fd);
/* Takes @c->native, the device's, or else returns what the kernel's accept4() gave */
long device_take(struct sock *s, struct device_call *c);
/* Was a process that has the listener, too, at it (device_take()) when the kernel said EAGAIN? */
bool device_misled(const struct sock *s, int fd);
/* Makes a descriptor of @c->native */
long device_serve(struct sock *s, const struct device_call *c);

/* --- it listens no more (yield.c) --- */

/* Of all listeners: who takes from one, or changes it. Before all other locks of preload/ */
extern pthread_mutex_t device_lock;

/* Lock. To the kernel's listener, and to software */
void device_yield(struct sock *s, enum config_reason reason);
/* Lock. Of a process that accepts for others software serves all of them */
void device_yield_declined(struct sock *s);
/* As shutdown() of a listener that is a device's */
long device_shutdown(struct sock *s, int fd, int how);
/* A filter is to stand: it would not let through what the libraries of devices do */
void device_before_sandbox(void);
/* This process is to be another program */
void device_before_exec(void);
void device_before_fork(void);
void device_after_fork(bool child);

#endif
