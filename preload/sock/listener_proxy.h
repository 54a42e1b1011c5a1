/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LISTENER_PROXY_H
#define PRELOAD_LISTENER_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct rnic_native_listener;
struct sock;

/* What stands in epoll sets for one of the numbers that the program has it by; never changed */
struct listener_proxy_number {
	struct listener_proxy_number *next;
	int fd, stands;
};

/* A socket that a device listens for. Under the lock of preload/device/, unless it is atomic */
struct listener_proxy {
	struct rnic_native_listener *listener; /* atomic; NULL: it does not, or no more */
	int fd;				       /* atomic: what stands for both; -1: the socket */
	struct listener_proxy_number *numbers; /* atomic: those that have been in a set */
	uint32_t pinned;		       /* atomic: sets that took it in, threads that wait */
	bool served;			       /* atomic: one of the device's was accepted */
	bool beside;			       /* the kernel listens, too */
	bool kernel_next;		       /* whose turn it is */
	bool given;			       /* by who may have it yet, and a device */
};

/* Its descriptor; -1: there is none */
int listener_proxy_of(const struct sock *s);
/* Does a device listen? */
bool listener_proxy_listens(const struct sock *s);
/* @listener does, from now on; -errno, and it is still the caller's */
int listener_proxy_open(struct sock *s, struct rnic_native_listener *listener);
/* It does no more */
void listener_proxy_leave(struct sock *s);
/* Where it was alone, the socket stands there from now on, whatever that is ready for */
void listener_proxy_stay(struct sock *s);
/* When the socket goes */
void listener_proxy_end(struct sock *s);
/* In a child: it is the parent's */
void listener_proxy_forget(struct sock *s);

/* What stands for @fd where one waits for it */
int listener_proxy_wait_fd(int fd);
/*
 * The same in an epoll set, for as long as the socket is there; @enters: from now on, or -ENOMEM.
 * @fd itself if it has never been in one
 */
int listener_proxy_stands(int fd, bool enters);

#endif
