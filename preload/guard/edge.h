/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EDGE_H
#define PRELOAD_EDGE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "base/list.h"
#include "base/recv_sleep.h"
#include "preload/guard/over.h"
#include "preload/guard/spin.h"
#include "preload/table/libc.h"

/*
 * The edge between a program's thread and our calls. Between edge_enter() and edge_leave(),
 * which the generated wrappers call, the program's signal handlers do not run and the thread is
 * not cancelled: signals are noted, and both happen in edge_leave(), when nothing of ours is
 * held, so that a handler may call us again, or never come back.
 */
#define EDGE_SIGNALS 64

/* A signal that came while the thread was inside */
struct edge_note {
	siginfo_t info;
	void (*handler)(int, siginfo_t *, void *);
	uint64_t mask;	/* what the handler is to run with */
	uint64_t order; /* of the thread's notes */
};

struct edge {
	unsigned int depth;
	bool cancel_off;     /* cancellation is disabled by us */
	int cancel_state;    /* and was this */
	int cancel_type;     /* the thread's kind; inside it is deferred */
	uint64_t noted;	     /* bit n - 1: signal n waits in note[n - 1] */
	uint64_t blocked;    /* of these, the ones that we block until then */
	uint64_t kept;	     /* blocked by the program, but for a sleep with a mask of its own */
	uint64_t muted;	     /* notes of these do not end a wait: a handler or a call blocks them */
	uint64_t notes;	     /* how many were taken */
	uint64_t swapped;    /* a call has a mask that differs from the thread's in these */
	struct timespec nap; /* atomic: of a sleep, what the kernel reads as its time-out */
	bool napping;	     /* atomic */
	struct base_recv_sleep sleep; /* the same for one in the kernel's receive */
	bool canceled;		      /* atomic: pthread_cancel() was called for the thread */
	struct spin_thread spin;
	pthread_t thread;
	int tid;
	struct base_list node;
	struct edge_note note[EDGE_SIGNALS];
};

/* The calling thread's; NULL: it was never inside, or there is no memory */
extern __thread struct edge *edge_self;
extern bool edge_cancels; /* atomic: pthread_cancel() has been called */

struct edge *edge_create(void);
void edge_cancel_hold(struct edge *e);
void edge_cancel_release(struct edge *e);
/* Signals, cancellation, the end of the process after a call; true: it is to be made again */
bool edge_settle(struct edge *e, long *r);
/* In between, with nothing held: what has been noted happens now */
void edge_pass(void);
void edge_init(void);
/* Around fork(): a child has one thread */
void edge_before_fork(void);
void edge_after_fork(bool child);

/* Does something wait for the call to come back: a signal, or that the thread is to end? */
static inline bool edge_wanted(const struct edge *e)
{
	return e->noted & ~e->muted || (__atomic_load_n(&e->canceled, __ATOMIC_SEQ_CST) &&
					e->cancel_off && e->cancel_state == PTHREAD_CANCEL_ENABLE);
}

/* Handlers of the same thread see done what stands before it */
static inline void edge_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* @point: a cancellation point */
static inline struct edge *edge_enter(bool point)
{
	struct edge *e = edge_self ? edge_self : edge_create();
	bool cancels = !__libc_single_threaded || __atomic_load_n(&edge_cancels, __ATOMIC_RELAXED);

	if (!e || e->depth++)
		return e;
	if (cancels && point) {
		e->depth = 0;
		pthread_testcancel();
		e->depth = 1;
	}
	edge_order();
	if (cancels)
		edge_cancel_hold(e);
	return e;
}

/* @r: what the call returned, on return what the program is to get; true: call again */
static inline bool edge_leave(struct edge *e, long *r)
{
	if (e && e->cancel_off && e->depth == 1)
		edge_cancel_release(e);
	edge_order();
	if (e && --e->depth)
		return false;
	edge_order();
	if (__builtin_expect((e && e->noted) || *r == -EINTR || *r == CALL_RESTART ||
				     __atomic_load_n(&over_begun, __ATOMIC_RELAXED),
			     0))
		return edge_settle(e, r);
	return false;
}

#endif
