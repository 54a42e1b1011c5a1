/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of an epoll set to each other. One file is one noun or one verb:
 *
 *	epoll_reg.c	a registration: what it is ready for, and whether that is to be told
 *	epoll_list.c	which of them are told first
 *	epoll_ctl.c	members come, change and go
 *	epoll_set.c	a set: its shadow, its end, sets in sets, fork
 *	epoll_wait.c	waiting
 *	epoll_take.c	members of the kernel's that become ours
 *
 * A set without members of ours is the kernel's alone, but for the knowledge that it is a set. The
 * first member of ours gives it a shadow, an epoll descriptor of our own:
 *
 *	shadow --- TCP sockets of our members, edge-triggered for all there is
 *	       --- shadows of sets with a shadow that are members
 *	       --- the wakeup fd, an eventfd
 *	       --- the program's own descriptor, with the members that are the kernel's
 *
 * So nothing of ours stands in the program's set: it may be shared with other processes, and what
 * is in it needs no look of ours. Whoever waits sleeps on the shadow.
 *
 * Locks: nest, then the lock of a set, an outer one before the inner, then a socket's.
 */
#ifndef PRELOAD_EPSET_H
#define PRELOAD_EPSET_H

#include <pthread.h>

#include "preload/guard/spin.h"
#include "preload/sock/sets.h"
#include "preload/table/libc.h"
#include "preload/table/pool.h"
#include "preload/wait/epoll.h"

/* What is left of a mask when a one-shot registration has spoken */
#define EPSET_PRIVATE (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

struct epset_look;

struct epset_reg {
	struct sock_watch watch;   /* in the list of what is registered */
	struct base_list member;   /* in set->members */
	struct base_list node;	   /* in set->candidates, or by itself */
	struct base_list starting; /* in set->starting, or by itself */
	struct epset_reg *next;	   /* on the stack */
	struct epset *set;
	struct sock *sock;   /* a reference; NULL: a set in the set */
	struct epset *inner; /* a reference */
	bool (*inner_ready)(struct epset *set, struct epset_look *look); /* epset_is_ready() */
	int fd;	  /* as the program names it */
	int kfd;  /* as the shadow knows it */
	bool own; /* by a duplicate of its own */
	uint32_t mask;
	epoll_data_t data;
	struct stream_edges seen;
	uint32_t of;	/* sock->streams: whose edges these are */
	uint32_t marks; /* how often the kernel said something: edges of what is no stream */
	bool fresh;	/* ADD, MOD, another stream: an edge by itself */
	bool kernels;	/* a set that is in the program's own, as long as it has no shadow */
	bool stacked;	/* atomic */
	bool dead;	/* atomic */
	bool drain;	/* atomic: the kernel said something */
	bool broken;	/* atomic: it spoke of an error */
	bool looking;	/* atomic: its levels are about to be looked at */
	bool parked;	/* atomic, written under the set's lock: the program has removed it */
};

struct epset {
	struct fdent ent;
	int fd; /* the program's or, @own, a duplicate; atomic */
	bool own;
	int shadow, wakeup; /* -1: never had a member of ours; atomic */
	int heard;	    /* the wakeup fd of other processes that is in the shadow; -1. atomic */
	unsigned int age;   /* fork_gen when the shadow was made */
	unsigned int ours;  /* members in the shadow; atomic */
	unsigned int sleepers;	     /* on the shadow; atomic */
	unsigned int nested;	     /* registrations of this set in shadows; atomic */
	unsigned int native_waiters; /* sleepers on the program's descriptor; atomic */
	struct spin_place place;     /* of its waits */
	bool woken;		     /* the wakeup fd stands there for them */
	unsigned int left;	     /* how often candidates were left for others; atomic */
	struct epset_reg *stack;     /* atomic */
	pthread_mutex_t lock;
	struct base_list members;
	struct base_list candidates;
	struct base_list starting; /* whose peers owe a Reply, and all sets */
	struct base_list watches;  /* registrations of this set, under nest */
	struct epset_reg program;  /* in the candidates' list: the members that are the kernel's */
	bool fork_locked;
	struct epset *fork_next; /* of those */
};

/* A socket that a look found to be plain, with a reference: to be given back without a lock */
struct epset_look {
	struct sock *plain;
};

extern struct pool epset_regs;
extern pthread_mutex_t epset_nest;

static inline long epset_kernel_ctl(int epfd, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	return libc_try(libc.epoll_ctl(epfd, op, fd, &event));
}

/* -1: it has none */
static inline int epset_shadow(const struct epset *set)
{
	return __atomic_load_n(&set->shadow, __ATOMIC_ACQUIRE);
}

static inline bool epset_has_shadow(const struct epset *set)
{
	return epset_shadow(set) >= 0;
}

/* Is a member to be looked at, of which the kernel says nothing more? */
static inline bool epset_has_ready(const struct epset *set)
{
	return __atomic_load_n(&set->stack, __ATOMIC_SEQ_CST);
}

static inline int epset_fd(const struct epset *set)
{
	return __atomic_load_n(&set->fd, __ATOMIC_ACQUIRE);
}

/* --- epoll_ctl.c: what becomes of a socket that is in sets (preload/sock/sets.h) ------------- */

void epset_rekey(struct sock *s);
void epset_forget(struct sock *s);
void epset_give_back(struct sock *s);
unsigned int epset_pass(struct sock *s);

/* --- epoll_reg.c: set->lock, but for push --------------------------------------------------- */

/* Is the shadow the parent's? Then it is not to be touched */
bool epset_is_inherited(const struct epset *set);
/* The shadow's members: 0 or -errno; one that is the parent's is left alone */
int epset_shadow_ctl(const struct epset *set, int op, struct epset_reg *r);
/* Puts it on the ready list; @quiet: who calls is about to look, and sees to it that others do */
void epset_reg_push(struct epset_reg *r, bool quiet);
/* As a watch of a socket's */
bool epset_reg_wake(struct sock_watch *watch);
/* The kernel said something of it */
void epset_reg_mark_ready(struct epset_reg *r);
/* The events to tell, 0 none; then it is a candidate no longer */
uint32_t epset_reg_judge(struct epset_reg *r, struct stream_edges *now, struct epset_look *look);
void epset_reg_told(struct epset_reg *r, const struct stream_edges *now);
/* What the program wants to know */
void epset_reg_arm(struct epset_reg *r, const struct epoll_event *event, bool is_new);
/* The program has removed it, and may add it again: the shadow has it until it speaks of it */
void epset_reg_park(struct epset_reg *r);
void epset_reg_kill(struct epset_reg *r);
void epset_reg_free(struct epset_reg *r);

/* --- epoll_list.c: set->lock ---------------------------------------------------------------- */

/* The shadow said something of it; a parked one goes */
void epset_hear_of(struct epset_reg *r);
/* Ready ones become candidates, dead ones go */
void epset_stack_empty(struct epset *set);
/* Is there something to tell? */
bool epset_peek(struct epset *set, struct epset_look *look);
/* One that is not ready is a candidate no longer. Are there any? */
bool epset_place(struct epset *set, struct epset_reg *r, struct epset_look *look);
/* The first @max events */
int epset_collect(struct epset *set, struct epoll_event *events, int max, struct epset_look *look);
/* Without those that only say that the set has members of ours now */
int epset_wakes_drop(const struct epset *set, struct epoll_event *events, int n);

/* --- epoll_set.c ---------------------------------------------------------------------------- */

/* Gives it a shadow, and those that it is in; after a fork, one of this process. 0 or -errno */
int epset_engage(struct epset *set);
/* The same under nest */
int epset_engage_nested(struct epset *set);
/* A set that the program had from elsewhere becomes known, with a reference */
int epset_adopt(int epfd, struct epset **out);
/* set->lock. One member of ours more; who sleeps on the program's descriptor comes over */
void epset_count(struct epset_reg *r);
/* Sleepers on the program's descriptor count themselves */
void epset_native_waiter_enter(struct epset *set);
void epset_native_waiter_leave(struct epset *set);
/* The shadow is to hear what other processes say */
void epset_hear(struct epset *set);

/* --- epoll_wait.c --------------------------------------------------------------------------- */

/* Would a wait return at once? Under the lock of a set that it is in, or none */
bool epset_is_ready(struct epset *set, struct epset_look *look);
void epset_look_end(struct epset_look *look);
/* set->lock. A registration that was armed takes its place in the list; then, without the lock */
void epset_settle(struct epset *set, struct epset_reg *r, bool is_new, struct epset_look *look);
void epset_settled(struct epset *set, struct epset_look *look);

#endif
