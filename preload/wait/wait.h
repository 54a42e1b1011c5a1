/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_WAIT_H
#define PRELOAD_WAIT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/sock/sock.h"

/*
 * A sleeper's wakeup fd: what another thread took in while this one slept must wake it, since the
 * kernel will not. A process of one thread has none.
 */
struct wait_wakeup {
	int fd;	      /* -1: there is none */
	bool lacking; /* for want of a descriptor */
};

struct wait_watch {
	struct sock_watch watch;
	int wakeup;
	pthread_t looks; /* its thread, while it moves the stream and looks behind that; else 0 */
};

void wait_wakeup_get(struct wait_wakeup *wakeup);
void wait_wakeup_put(struct wait_wakeup *wakeup);
/* Until when one may sleep by it: who lacks one looks again soon */
uint64_t wait_wakeup_limit(const struct wait_wakeup *wakeup);
/*
 * From now until wait_unwatch() the wakeup fd is written to when the socket's levels may have
 * changed
 */
void wait_watch(struct wait_watch *w, const struct wait_wakeup *wakeup, struct sock *s);
void wait_unwatch(struct wait_watch *w, struct sock *s);
/* sock_progress() by the thread that watches, which looks at the levels next */
int wait_progress(struct wait_watch *w, struct sock *s);

/* So that nobody lacks a wakeup fd when no more descriptors can be had */
void wait_prepare(void);
void wait_before_fork(void);
/* A child has no sleepers, and wakeup fds of its own */
void wait_after_fork(bool child);

/* What poll() and epoll say of @levels: their numbers are the same */
uint32_t wait_level_events(unsigned int levels);

/*
 * Sleeps until one of the levels @wanted holds: 0, -EAGAIN when @deadline passed, -EINTR, or
 * -ENOMSG: the socket is plain
 */
int wait_levels(struct sock *s, unsigned int wanted, uint64_t deadline);
/*
 * For who has just tried on @stream and will try again, and so takes in the input himself: returns
 * 0 also when none of the levels holds, or the socket has another stream
 */
int wait_once(struct sock *s, struct stream *stream, unsigned int wanted, uint64_t deadline);

/*
 * For who waits in a loop, behind a wait that ended with input: -EAGAIN, the time is up, -EINTR, a
 * signal waits: then the next look is the last one, also where what keeps coming brings nothing. 0:
 * neither. @mask: what the wait blocks, or NULL; @vain: so many looks have found nothing
 */
int wait_ends(uint64_t deadline, const sigset_t *mask, unsigned int vain);

#endif
