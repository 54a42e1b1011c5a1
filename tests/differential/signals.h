/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The differential test of signals. Its program runs over the kernel's TCP and over DDP and says
 * the same both times; signals.py compares.
 *
 *	signals_plan.c   a seed becomes a scene: a call, masks, handlers, and when signals come
 *	signals_ends.c   connections, what brings a call to its end, and the calls
 *	signals.c        the two threads that play a scene, and what is said of it
 *	signals_storm.c  signals at random moments, of which only what never happens is said
 */
#ifndef TESTS_DIFFERENTIAL_SIGNALS_H
#define TESTS_DIFFERENTIAL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIGNALS = 3, STEPS = 3 };
enum { ALL = (1 << SIGNALS) - 1, NO_MASK = ALL + 1 };

enum kind {
	KIND_RECV,
	KIND_READ,
	KIND_READV,
	KIND_RECVMSG,
	KIND_SEND,
	KIND_WRITE,
	KIND_ACCEPT,
	KIND_CONNECT,
	KIND_POLL,
	KIND_PPOLL,
	KIND_SELECT,
	KIND_PSELECT,
	KIND_EPOLL_WAIT,
	KIND_EPOLL_PWAIT,
	KIND_EPOLL_PWAIT2,
	KINDS
};

/* What a handler does besides saying that it ran */
enum deed { DEED_NONE, DEED_POLL, DEED_TALK, DEED_PPOLL, DEED_BRING, DEEDS };

struct action {
	int flags;
	unsigned int mask; /* sa_mask, as bits of signals */
	enum deed deed;
};

/* How the call ends if no signal ends it */
enum ending {
	END_RELEASE, /* it gets what it waits for */
	END_TIMEOUT, /* its own, a short one */
	END_BOTH,    /* what it waits for, and right behind that a signal */
	END_READY,   /* what it waits for was there before */
	ENDINGS
};

struct scene {
	enum kind kind;
	enum ending ending;
	unsigned int own, mask;		 /* blocked by the thread; by the call, or NO_MASK */
	unsigned int early;		 /* come before the call */
	unsigned int step[STEPS], steps; /* come while it waits, one after the other */
	bool process;			 /* sent to the process, not to the thread */
	unsigned int limit;		 /* which long time-out it has, where it has one */
	struct action action[SIGNALS];
};

void scene_make(struct scene *s, uint64_t seed);
void scene_say(const struct scene *s);
uint32_t scene_random(uint32_t below);
bool kind_has_mask(enum kind kind);
bool kind_waits(enum kind kind); /* it is poll or one of its kin */

/* --- signals_ends.c --- */

void ends_make(void);
/* Before a scene: nothing is left of the one before */
void ends_begin(const struct scene *s);
long ends_call(const struct scene *s);
/* poll() for input, among so many that looking at all of them takes its time */
long ends_poll_many(void);
/* The call gets what it waits for; true: again until it has returned */
bool ends_release(const struct scene *s);
void ends_finish(const struct scene *s, long result);
/* What handlers do */
long ends_deed(enum deed deed);

extern const int signals_number[SIGNALS];
sigset_t signals_set(unsigned int bits);
unsigned int signals_bits(const sigset_t *set);
void signals_sleep(long us);
char signals_state(int tid);

int storm(uint64_t seed);

#endif
