/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SPIN_H
#define PRELOAD_SPIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/guard/history.h"
#include "preload/guard/processor.h"

/*
 * Spinning: a wait looks for its input itself for a while, before it sleeps in the kernel.
 *
 *	struct spin spin;
 *
 *	if (spin_begin(&spin, place, base_now(), deadline))
 *		do {
 *			found = look();
 *		} while (!found && spin_goes_on(&spin, base_now()));
 *		spin_end(&spin, found);
 *
 * Nothing is held meanwhile. Times are nanoseconds.
 */

/* Where one waits: a socket and direction, a set, a thread's poll(). Zeros are a new one */
struct spin_place {
	struct spin_history history; /* atomic, as a whole */
	/* Atomic: the socket whose input came last, to be asked for its peer, plus one; 0: none */
	int fd;
	enum processor_peer peer; /* atomic: where @fd is 0: as it was when input came last */
};

struct spin {
	struct spin_place *place;
	uint64_t began, end, turn;
	unsigned int cpu;
};

/* What became of the waits of this process. All but the last are waits that did not spin */
enum spin_fate {
	SPIN_UNLIKELY, /* the history says that it does not pay */
	SPIN_ALONE,  /* the thread may run on one processor only, and its peer may be there, too */
	SPIN_URGENT, /* SCHED_FIFO or SCHED_RR */
	SPIN_QUOTA,  /* of the cgroup */
	SPIN_BUSY,   /* other programs want the processor */
	SPIN_PEER_HERE, /* the peer runs on this processor */
	SPIN_TAKEN,	/* another thread spins there */
	SPIN_FOUND,	/* it spun, and the input came */
	SPIN_ENDED,	/* it spun for nothing */
	SPIN_GAP,	/* it spun, and lost the processor meanwhile */
	SPIN_MOVED,	/* or came to another */
	SPIN_FATES,
};

/* @cap: so long a wait spins at most; 0: never. @low: the cgroup gives less than two processors */
void spin_init(uint64_t cap, bool low);
/* From now on each wait spins until its end, but where the slot is taken: for tests */
void spin_force(void);
/* What a thread has of its own */
struct spin_thread {
	struct processor_thread processor;
	struct spin_place polls, connects;
	struct spin_place accepted; /* waits of accepted sockets */
	uint64_t accept;	    /* when accept() began; 0: that is of no use */
	bool yields;		    /* spin.c: it has a short slice */
	uint64_t offered;	    /* spin.c: when it offered its processor to others */
	unsigned int own_runs;	    /* spin.c: as it was when a preemption was looked into last */
};

/* The calling thread's (preload/guard/call.c); NULL: it has none, and does not spin */
struct spin_thread *spin_self(void);

/* What is known of one place goes to another */
static inline void spin_place_take(struct spin_place *to, struct spin_place *from)
{
	enum processor_peer peer = __atomic_load_n(&from->peer, __ATOMIC_RELAXED);
	struct spin_history h;

	__atomic_load(&from->history, &h, __ATOMIC_RELAXED);
	__atomic_store(&to->history, &h, __ATOMIC_RELAXED);
	__atomic_store_n(&to->peer, peer, __ATOMIC_RELAXED);
}

/* Places of the calling thread; or NULL */
static inline struct spin_place *spin_of_polls(void)
{
	struct spin_thread *t = spin_self();

	return t ? &t->polls : NULL;
}

static inline struct spin_place *spin_of_connects(void)
{
	struct spin_thread *t = spin_self();

	return t ? &t->connects : NULL;
}

static inline struct spin_place *spin_of_accepted(void)
{
	struct spin_thread *t = spin_self();

	return t ? &t->accepted : NULL;
}

/* A thread of the library's own runs: the gap that it makes is nobody else's need */
void spin_disturb(void);
/* Does any wait spin? */
bool spin_may(void);
/* How often; for the report and for tests */
uint64_t spin_count(enum spin_fate fate);
/* In a child: these were the parent's */
void spin_forget(void);

/* Is this one of the waits that sleep because of spins before? Then it is not noted either */
bool spin_rests(struct spin_place *place);
/* Do waits there last, so that who is about to wait need not look before? */
bool spin_lasts(struct spin_place *place);
/* Could it be that a wait there spins, now or soon? */
bool spin_might(struct spin_place *place);
/* False: sleep at once */
bool spin_begin(struct spin *s, struct spin_place *place, uint64_t now, uint64_t deadline);
bool spin_goes_on(struct spin *s, uint64_t now);
/* @found: the wait has what it waits for, and is over. @stopped: a signal, or a failure */
void spin_end(struct spin *s, bool found, bool stopped, uint64_t now);
/* A wait that slept is over. @waited: BASE_NEVER: its time was over */
void spin_note(struct spin_place *place, uint64_t waited);

/* Who sends in that place */
static inline void spin_place_of(struct spin_place *place, int fd)
{
	__atomic_store_n(&place->fd, fd + 1, __ATOMIC_RELAXED);
}

/*
 * Input has just come at @fd in that place. Later the socket may tell of an acknowledgement, which
 * the peer's kernel sends on the processor of who is acknowledged
 */
void spin_place_learn(struct spin_place *place, int fd);

#endif
