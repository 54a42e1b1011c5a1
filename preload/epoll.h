/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EPOLL_H
#define PRELOAD_EPOLL_H

#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "preload/sock.h"

/*
 * Epoll sets with members that are ours. A set without them is the kernel's alone and unknown here.
 */
struct epset;

/* The set behind a descriptor, with a reference; NULL: the kernel's alone */
struct epset *epoll_get(int epfd);
void epoll_put(struct epset *set);

/* A set that the program has made: what may be duplicated must be known from the beginning */
int epoll_set_create(int epfd);
/* A member that is ours */
int epoll_member_ctl(int epfd, int op, int fd, struct sock *s, const struct epoll_event *event);
/* Events, 0 or -errno */
int epoll_set_wait(struct epset *set, struct epoll_event *events, int max, uint64_t deadline,
		   const sigset_t *mask);

/* The socket became a stream: what it is ready for is judged otherwise now */
void epoll_rearm(struct sock *s);
/* The socket is worked on by another descriptor: the kernel's sets are to know it by that one */
void epoll_rekey(struct sock *s);
/* The socket's last descriptor goes: out of every set */
void epoll_forget(struct sock *s);
/* The socket becomes the kernel's: its registrations too */
void epoll_give_back(struct sock *s);

#endif
