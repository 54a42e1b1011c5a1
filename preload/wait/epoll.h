/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EPOLL_H
#define PRELOAD_EPOLL_H

#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "preload/sock/sock.h"

/*
 * Epoll sets. Each is known from its making; one without members that are ours is the kernel's
 * alone. Results are -errno.
 */
struct epset;

struct epoll_wait {
	struct epoll_event *events;
	int max;
	uint64_t deadline;
	const sigset_t *mask;
};

/* At the start */
void epoll_init(void);
/* A set that the program has made; @epfd < 0: it has not */
void epoll_born(int epfd);
/* The set behind a descriptor, with a reference; NULL: not known */
struct epset *epoll_get(int epfd);
void epoll_put(struct epset *set);

/* The set waits for the socket @fd, too, which is the kernel's: it may tell where the peer runs */
void epoll_hint(int epfd, int fd);

/* A member that is ours, or that is a set */
int epoll_sock_ctl(int epfd, int op, int fd, struct sock *s, const struct epoll_event *event);
int epoll_nest_ctl(int epfd, int op, int fd, struct epset *inner, const struct epoll_event *event);
/* Events, 0 or -errno */
int epoll_set_wait(struct epset *set, const struct epoll_wait *w);

/*
 * For who polls the set's descriptor: between begin and end, the descriptor that the look gives
 * becomes readable when another look is due
 */
void epoll_poll_begin(struct epset *set);
bool epoll_poll_look(struct epset *set, int *fd);
/* Behind it: when another look is due in any case */
uint64_t epoll_poll_limit(struct epset *set);
/* A look at a member has stopped at its bound: no sleep before the next one */
bool epoll_poll_more(struct epset *set);
void epoll_poll_end(struct epset *set);

/* Around fork(): nobody works on a set meanwhile. A child makes shadows of its own */
void epoll_before_fork(void);
void epoll_after_fork(bool child);

#endif
