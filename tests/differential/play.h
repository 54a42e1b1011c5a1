/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of a program that runs, and how its two worlds are compared.
 */
#ifndef TESTS_DIFFERENTIAL_PLAY_H
#define TESTS_DIFFERENTIAL_PLAY_H

#include "op.h"

/* --- play.c, settle.c --- */

struct seen {
	bool open;
	short events;
	int unread;
	int flags;
};

struct blocked {
	bool is;
	struct op op;
	struct box *box[WORLDS];
};

struct play {
	const struct program *program;
	struct seen seen[WORLDS][SLOTS];
	uint64_t accepted[2], taken[2]; /* octets sent by a side; received by it */
	bool ended[2];			/* a side sends no more */
	bool deaf[2];			/* a side has shut its receiving */
	bool gone[2];			/* all its descriptors are closed */
	bool late[2];			/* a side has written behind the other's end */
	bool reset;
	bool timed[2];	      /* SO_RCVTIMEO is set */
	bool released[PROCS]; /* who sleeps in poll for ever is to come back */
	uint32_t members[SETS];
	uint64_t heard[SETS][SLOTS]; /* play_news() when a set told of a slot, or had to */
	struct blocked blocked[PROCS][THREADS];
	unsigned int executed;
	bool stop;   /* an exception after which the worlds part */
	bool failed; /* has been told */
	bool verbose;
};

/* Runs the operations of @only (NULL: all); how many were executed, -1 failed */
long play(const struct program *program, const bool *only, bool verbose);
bool settle(struct play *p);
/* Both have come back: compared and entered in the books */
void blocked_end(struct play *p, struct blocked *b);
bool op_lacks(const struct play *p, unsigned int world, const struct op *op);
/* Compares; a difference that no exception knows is told and fails the program */
void outcome_compare(struct play *p, const struct op *op, struct box *const box[WORLDS]);
/* Has a thread that waits for more taken octets already? */
bool play_holds_octets(const struct play *p, unsigned int side);
uint64_t play_unread(const struct play *p, unsigned int side);
/* What the other side has done that this one can be told of as readable: it only grows */
uint64_t play_news(const struct play *p, unsigned int side);
__attribute__((format(printf, 2, 3))) void play_fail(struct play *p, const char *format, ...);
void op_print(const struct op *op);
void outcome_print(const char *world, const struct outcome *out);

/* --- exceptions.c --- */

/* Is this difference one of those that docs/limits.md tells of? It may stop the program */
bool exception_knows(struct play *p, const struct op *op, const struct outcome *plain,
		     const struct outcome *ddp);
void exceptions_print(void);

#endif
