/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_CALL_H
#define PRELOAD_CALL_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>
#include <time.h>

#include "base/list.h"
#include "base/recv_sleep.h"
#include "preload/guard/exiting.h"
#include "preload/guard/spin.h"
#include "preload/table/libc.h"

/*
 * A call of a program's thread to us. Between call_enter() and call_leave(),
 * which the generated wrappers call, the program's signal handlers do not run and the thread is
 * not cancelled: signals are noted, and both happen in call_leave(), when nothing of ours is
 * held, so that a handler may call us again, or never come back.
 */
#define CALL_SIGNALS 64

/* A signal that came while the thread was inside */
struct call_note {
	siginfo_t info;
	void (*handler)(int, siginfo_t *, void *);
	uint64_t mask;	/* what the handler is to run with */
	uint64_t order; /* of the thread's notes */
};

struct call {
	unsigned int depth;
	bool cancel_off;  /* cancellation is disabled by us */
	int cancel_state; /* and was this */
	int cancel_type;  /* the thread's kind; inside it is deferred */
	uint64_t noted;	  /* bit n - 1: signal n waits in note[n - 1] */
	uint64_t blocked; /* of these, the ones that we block until then */
	uint64_t kept;	  /* blocked by the program, but for a sleep with a mask of its own */
	uint64_t muted;	  /* notes of these do not end a wait: a handler or a call blocks them */
	uint64_t notes;	  /* how many were taken */
	uint64_t swapped; /* a call has a mask that differs from the thread's in these */
	struct timespec sleep_left; /* atomic: of a sleep, what the kernel reads as its time-out */
	bool sleeping;		    /* atomic */
	struct base_recv_sleep sleep; /* the same for one in the kernel's receive */
	bool canceled;		      /* atomic: pthread_cancel() was called for the thread */
	struct spin_thread spin;
	pthread_t thread;
	int tid;
	struct base_list node;
	struct call_note note[CALL_SIGNALS];
};

/* The calling thread's; NULL: it was never inside, or there is no memory */
extern __thread struct call *call_self;
extern bool call_cancels; /* atomic: pthread_cancel() has been called */

struct call *call_create(void);
void call_cancel_hold(struct call *e);
void call_cancel_release(struct call *e);
/* Signals, cancellation, the end of the process after a call; true: it is to be made again */
bool call_settle(struct call *e, long *r);
/* In between, with nothing held: what has been noted happens now */
void call_pass(void);
void call_init(void);
/* Around fork(): a child has one thread */
void call_before_fork(void);
void call_after_fork(bool child);

/* Does something wait for the call to come back: a signal, or that the thread is to end? */
static inline bool call_wanted(const struct call *e)
{
	return e->noted & ~e->muted || (__atomic_load_n(&e->canceled, __ATOMIC_SEQ_CST) &&
					e->cancel_off && e->cancel_state == PTHREAD_CANCEL_ENABLE);
}

/* Handlers of the same thread see done what stands before it */
static inline void call_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* @point: a cancellation point */
static inline struct call *call_enter(bool point)
{
	struct call *e = call_self ? call_self : call_create();
	bool cancels = !__libc_single_threaded || __atomic_load_n(&call_cancels, __ATOMIC_RELAXED);

	if (!e || e->depth++)
		return e;
	if (cancels && point) {
		e->depth = 0;
		pthread_testcancel();
		e->depth = 1;
	}
	call_order();
	if (cancels)
		call_cancel_hold(e);
	return e;
}

/* @r: what the call returned, on return what the program is to get; true: call again */
static inline bool call_leave(struct call *e, long *r)
{
	if (e && e->cancel_off && e->depth == 1)
		call_cancel_release(e);
	call_order();
	if (e && --e->depth)
		return false;
	call_order();
	if (__builtin_expect((e && e->noted) || *r == -EINTR || *r == CALL_RESTART ||
				     __atomic_load_n(&exiting_begun, __ATOMIC_RELAXED),
			     0))
		return call_settle(e, r);
	return false;
}

#endif
