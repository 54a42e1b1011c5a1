/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_PROCESSOR_H
#define PRELOAD_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What the kernel says of a thread and its processor, as far as it decides whether the thread may
 * spin. A unit test of preload/guard/spin.c has its own.
 */

/* Of a thread, looked up again when that is old */
struct processor_thread {
	uint64_t looked; /* when; 0: never */
	long preempted;	 /* how often others took its processor */
	bool confined;	 /* it may run on one processor only */
	bool urgent;	 /* it runs under SCHED_FIFO or SCHED_RR: others would not come to run */
};

/* The calling thread's processor; < 0: nobody knows */
int processor_here(void);
void processor_look(struct processor_thread *t, uint64_t now);
/* Has another thread taken the processor since it was asked last? */
bool processor_was_taken(struct processor_thread *t);

/*
 * The calling thread asks the kernel for the shortest slice, 0.1 ms instead of some: another thread
 * that becomes ready may have to wait so long for the processor. Before Linux 6.12 it asks in vain
 */
void processor_slice_shorten(void);

enum processor_peer {
	PROCESSOR_UNKNOWN, /* who sends is not known, or is another host */
	PROCESSOR_OTHER,   /* what came last at the socket @fd came over another processor */
	PROCESSOR_SAME,	   /* the peer is on this host and, the last time, on this processor */
};

enum processor_peer processor_of_peer(int fd, int here);

#endif
