/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_INTR_SLEEP_H
#define PRELOAD_INTR_SLEEP_H

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "preload/guard/spin.h"

struct base_recv_sleep;

/*
 * The one way to sleep inside a call: until one of @fds is ready, as ppoll(), or @deadline passes
 * (base/clock.h; 0: not at all). How many, 0, or -EINTR: a signal has been noted, or the thread is
 * to be cancelled, and the call should come back with what it has. @mask as ppoll() has it, or
 * NULL. It spins before it sleeps where the history of @place says so; NULL: never
 */
int intr_sleep(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
	       struct spin_place *place);
/*
 * The same without a deadline, for bytes of @fd: it sleeps in @receive, which takes in what comes.
 * False: it did not sleep, or may not
 */
int intr_sleep_receive(struct pollfd *fd, struct spin_place *place,
		       bool (*receive)(void *ctx, struct base_recv_sleep *sleep), void *ctx);
/* For calls that Linux never restarts: -EINTR also when nothing was noted */
int intr_sleep_final(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place);
/* As that, but for -EINVAL of a list that is longer than RLIMIT_NOFILE, as poll() has it */
int intr_sleep_exact(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place);
/*
 * The spin alone, before a call that the kernel sleeps in: how many are ready, 0, -EINTR as
 * intr_sleep(); -EAGAIN: it does not spin now
 */
int intr_sleep_spin(struct pollfd *fds, unsigned int n, struct spin_place *place);
/* As intr_sleep_final() on an epoll set */
int intr_sleep_epoll(int epfd, struct epoll_event *events, int max, uint64_t deadline,
		     const sigset_t *mask, struct spin_place *place);
/*
 * Where a thread of ours cannot be had, who sleeps does its work: called before each sleep and
 * from time to time in it, with nothing held. True: there is more. NULL: nothing to do
 */
extern bool (*intr_sleep_chore)(void); /* atomic */
/* What a process is to do once, before it sleeps first, with nothing held; NULL: nothing */
extern void (*intr_sleep_first)(void); /* atomic */
/* The same before a sleep in the kernel */
void intr_sleep_first_do(void);
/* What is there, without a sleep that a signal could end */
int intr_sleep_epoll_now(int epfd, struct epoll_event *events, int max);

#endif
