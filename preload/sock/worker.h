/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_WORKER_H
#define PRELOAD_WORKER_H

#include "preload/guard/sandbox.h"
#include "preload/sock/sock.h"
#include "preload/sock/urgent.h"

/*
 * Streams that must get on although their program may not call: closed ones that have something
 * left to do, those whose connect() did not wait for the Reply, and those that owe octets.
 */

/*
 * By a descriptor of its own, from now on; where there is none, TCP alone goes on with what the
 * kernel has
 */
void worker_closed(struct sock *s);
/*
 * There are no descriptors any more: lets a closed one go, of which the peer has everything, or not
 * @acked: of which it may not. False: there is none
 */
bool worker_room(bool acked);
/* A connection of the program's has got the number @fd: are there enough for other files? */
void worker_number(int fd);
/* Until it is open and what was written meanwhile has left */
void worker_starting(struct sock *s);
/* One that was accepted: its Request is answered after @ns if no call has done it before */
void worker_accepted(struct sock *s, uint64_t ns);
/* The peer may use memory of ours, or an urgent byte may come, whatever the program does */
static inline bool worker_is_awaited(const struct sock *s)
{
	return stream_serves(s->stream) || urgent_is_awaited(s);
}

/* The program has set which process gets SIGURG: the thread looks for urgent bytes from now on */
void worker_urgent_owner(struct sock *s);
/* There is something, or a filter may have come between the thread and closed ones */
void worker_look_after(struct sock *s);

/* After a call: if the kernel did not take all that was accepted, sees to it that it leaves */
static inline void worker_owing(struct sock *s)
{
	if (worker_is_awaited(s) || stream_owes(s->stream) ||
	    __atomic_load_n(&sandbox_on, __ATOMIC_RELAXED))
		worker_look_after(s);
}

/* One that was accepted is open: its program sees to it */
void worker_decided(struct sock *s);
/* The stream of an open socket is about to go */
void worker_forget(struct sock *s);
/*
 * Before the process ends: waits until the peers of closed ones have what they were sent, at most
 * until @deadline. How many have not.
 */
unsigned int worker_finish(uint64_t deadline);
/*
 * Before a program is executed: the same is left to another process, which @make makes (0) or not.
 * False: something is left to this one still: there is no other, or a device carries it
 */
bool worker_give(int (*make)(void));
/* In that one, which has nothing but them, before worker_finish() */
void worker_begin_in_helper(void);
/* There, work_list.named, and no program was executed: they have no names again */
void worker_unname_in_helper(void);
/* The least descriptor from @from on that one of them has; -1 */
int worker_next(void *ctx, int from);
/* So that no descriptor has to be made later */
void worker_prepare(void);
/* Ends the thread. It is back when it is needed, if a sandbox lets it */
void worker_stop(void);
/* One that has ended by itself is no more */
void worker_join(void);
/*
 * As the process ends: the thread goes to no stream any more, for what a device needs ends now, and
 * nobody waits for it
 */
void worker_retire(void);
/* Begins it anew behind worker_stop(), if there is anything to attend to */
void worker_resume(void);
/* What is closed has no program any more whose flags would count (preload/wait/confine.c) */
void worker_confine(void);
/* Threads that are ours */
unsigned int worker_threads(void);
/*
 * Around fork(): nobody is attended meanwhile. In a child the closed ones are the parent's, and
 * the others have a new worker thread.
 */
void worker_before_fork(void);
void worker_after_fork(bool child);

#endif
