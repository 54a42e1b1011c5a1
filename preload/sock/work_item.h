/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of streams that the worker thread attends to (preload/sock/worker.c): what each waits
 * for, and the one look at those whose time has come.
 */
#ifndef PRELOAD_WORK_ITEM_H
#define PRELOAD_WORK_ITEM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct pollfd;
struct sock;

/* A socket's entry in the list. Under the list's lock */
struct work_item {
	struct base_list node;
	bool listed; /* atomic, for looks without the lock */
	bool closed;
	bool undecided;	 /* it was accepted, and its Request has not come */
	bool plain;	 /* its peer is plain TCP */
	bool busy;	 /* a thread works on it, without the lock; nobody else ends it */
	bool dropped;	 /* it is to end when that one has come back */
	bool ready;	 /* the kernel spoke of it, or nobody has looked yet */
	int watched;	 /* the descriptor that stands for it in the set; -1: none */
	uint64_t begin;	 /* not to be looked at before */
	uint64_t look;	 /* to be looked at in any case */
	uint64_t let_go; /* closed: from then on an acknowledgement is enough */
};

struct work_list {
	pthread_mutex_t lock;
	struct base_list list;
	/* Closed ones of which only the kernel has something to tell, in the order of time */
	struct base_list quiet;
	unsigned int closed, undecided; /* so many of them are */
	unsigned int working, waiting;	/* threads that are at work on one; that wait for those */
	bool over;			/* nobody works on any more */
	uint64_t asleep;		/* the thread sleeps until then; 0: it does not */
	int set;	/* an epoll set, in which each is armed for one event; -1: none */
	int wakeup;	/* wakes the thread; -1: none */
	bool in_helper; /* in a process of ours, which has nothing but them */
	bool named;	/* and which can execute a program that finds them */
};

extern struct work_list work_list;

/* All of these under work_list.lock */

static inline bool work_list_any(void)
{
	return !base_list_empty(&work_list.list) || !base_list_empty(&work_list.quiet);
}

/* Without it: takes it when nobody is at work on one. The list has all of them then */
void work_list_lock(void);

/*
 * Enters a socket, of which the caller gives up a reference, or makes an open one a closed one;
 * @begin: not to be looked at before
 */
void work_item_add(struct sock *s, bool closed, bool undecided, uint64_t begin);
/* Takes it out of the list, with its reference */
void work_item_end(struct work_item *c);
/* The same, now or when who works on it has come back */
void work_item_drop(struct work_item *c);
struct sock *work_item_sock(struct work_item *c);
/* It is open, or was refused */
void work_item_decided(struct work_item *c);
/*
 * No lock. Its descriptor is another one from now on, and that of before may be another file's
 * soon: it is to be looked at, and armed by the new one
 */
void work_item_moved(struct sock *s);
/* The thread, which sleeps or is about to, looks again */
void work_list_wake(void);
/* When a closed one is over: the peer has ended too, or it has acknowledged so much */
enum work_item_enough { WORK_ITEM_PEER_ENDED, WORK_ITEM_ALL_ACKED, WORK_ITEM_DATA_ACKED };
/* Looks at those that are ready or whose time has come, or at @all; the lock is free meanwhile */
void work_list_go(bool all, enum work_item_enough enough);
/* The same at a few closed ones that the thread leaves alone until a time before @begin */
void work_list_tidy(uint64_t begin);
/*
 * The lock is free meanwhile. Lets go the first of a few closed ones, the oldest first, of which
 * all data is acknowledged. False: there is none
 */
bool work_list_let_go(void);
/* The oldest closed one goes, whatever it waits for: TCP goes on with what the kernel has */
bool work_list_leave(void);
/* One is left to TCP alone, for want of descriptors */
void work_list_crowded(void);
/* Behind a look: asks the kernel about each that was looked at; when to look at the latest */
uint64_t work_list_arm(void);
/* What the set says, without waiting */
void work_list_hear(void);
/* Without a set: what to poll for the first @max of them, and until when */
unsigned int work_list_poll_list(struct pollfd *fds, unsigned int max, uint64_t *limit);

/* So many closed ones were given up before their peers had what they were sent */
void work_list_expired(unsigned int n);

#endif
