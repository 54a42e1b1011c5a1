/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the processes of one case know of each other, and what is left of those that were killed: a
 * file that all of them map. kills.py reads it by the same layout.
 *
 * Who sends enters what send() said right behind it, so a kill between the two leaves at most one
 * call in doubt, of which the octets stand between @sent and @upto.
 */
#ifndef KILLS_LEDGER_H
#define KILLS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_ENDS 16384
#define END_OF_STREAM 1u /* an errno is added to END_ERROR */
#define END_ERROR 1000u

/* One direction of a connection */
struct way {
	uint64_t total; /* octets that are to go */
	uint64_t sent, upto;
	/* Who goes on after a killed sender leaves out what is in doubt */
	uint64_t doubt_from, doubt_to;
	uint64_t got, asked; /* octets that were right; a recv() up to here may be under way */
	uint64_t filled;     /* its last recv() that got all it asked for; noted before @got */
	uint32_t end;	     /* what its reader was told, and what its sender */
	uint32_t failed;
	uint32_t shut;	/* all is sent, and the end said */
	uint32_t wrong; /* octets that were not those sent */
	uint32_t ends;	/* send() calls, and how far each came */
	uint32_t pad;
	uint64_t end_at[LEDGER_ENDS];
};

/* A connection beside the one that suffers: each sends what the other has echoed */
struct side {
	uint32_t opened, pings, after, end, wrong, closed;
};

enum { BY_CONNECT, BY_LISTEN, ROLES };

struct ledger {
	uint32_t port, side_port; /* of who listens, and of the side */
	uint32_t killed;	  /* the case is over for somebody: nobody waits for him */
	uint32_t over;		  /* for all */
	uint32_t turn;		  /* of two that share a connection */
	uint32_t child;		  /* pid */
	uint32_t idle[ROLES];
	uint32_t done[ROLES + 1]; /* came to its end; the last one: the child */
	uint32_t alone;	 /* of two that share, who outlived the other: 1, or 2 for the child */
	uint32_t joined; /* the child has the connection */
	uint32_t after;	 /* who was over is another program */
	uint32_t asked;	 /* who listens, plainly, was sent a Request */
	uint32_t fallen; /* and has the connection that came behind it */
	struct side side[ROLES];
	struct way way[ROLES]; /* octets of who connects, and of who listens */
};

#define ledger_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define ledger_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

struct plan {
	uint64_t seed;
	const char *flags;
	uint64_t total[ROLES];
	char **argv; /* for who executes this program again */
	/* A child that is there before the connection, and where that is sent to */
	int pass, child;
};

static inline bool plan_has(const struct plan *plan, char flag)
{
	for (const char *p = plan->flags; *p; p++)
		if (*p == flag)
			return true;
	return false;
}

/* Octets of way @role from position @at */
void pattern_put(int role, uint64_t at, uint8_t *p, size_t len);
/* How many of them are right */
size_t pattern_check(int role, uint64_t at, const uint8_t *p, size_t len);
uint32_t pattern_random(uint64_t *seed, uint32_t below);

/* The point at which a test wants to kill is none for this process, from now on */
void point_hide(bool hide);
/* The connection of the case, from its first octet to its close() */
void talk(struct ledger *l, const struct plan *plan, int role, int fd, int side);
/* The same for the child, which it came to as @fd */
_Noreturn void talk_on(struct ledger *l, const struct plan *plan, int fd, int parent);
/* A child to which the connection will be sent, and in it the rest of its life */
void talk_child(struct ledger *l, struct plan *plan);

/* The other connection; each call does what can be done within @ms */
int side_connect(struct ledger *l, int role);
void side_step(struct ledger *l, int role, int fd);
void side_finish(struct ledger *l, int role, int fd);
/* Nothing is under way; and from there on in another program of this process */
void side_rest(struct ledger *l, int role, int fd);
void side_resume(struct ledger *l, int role);
/* Who sees to the other end of those */
void side_serve(struct ledger *l);

#endif
