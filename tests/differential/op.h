/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the differential test to each other. One file is one step of the way:
 *
 *	generate.c    a seed becomes a program, a list of operations
 *	calls.c       one operation becomes one call, and what it gave an outcome
 *	calls_wait.c  those that wait
 *	worker.c      threads and processes that operations are handed to, one at a time
 *	play.c        a program runs in both worlds, step by step
 *	settle.c      both worlds come to rest and look alike
 *	exceptions.c  the differences that docs/limits.md admits
 *	main.c        the command line
 *
 * A world is a TCP connection and what a program made of it: in the plain one the kernel's alone,
 * in the other one over DDP. Descriptors are named by slots, whose lowest bit says which end of
 * the connection it is; sets are epoll sets. All of it lies in memory that processes share.
 */
#ifndef TESTS_DIFFERENTIAL_OP_H
#define TESTS_DIFFERENTIAL_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PLAIN, DDP, WORLDS };
enum { SLOTS = 6, SETS = 4, PROCS = 2, THREADS = 3, OBSERVER = THREADS, BOXES };

/* Unread octets of a direction never come to this: no buffer of either world is ever full */
#define UNREAD_MAX 49152
#define LENGTH_MAX 16384
#define VALUES 24

enum op_kind {
	OP_WRITE,
	OP_WRITEV,
	OP_SEND,
	OP_SEND_MORE,
	OP_SENDTO,
	OP_SENDMSG,
	OP_READ,
	OP_READV,
	OP_RECV,
	OP_RECVFROM,
	OP_RECVMSG,
	OP_SHUTDOWN,
	OP_CLOSE,
	OP_DUP,
	OP_FIONREAD,
	OP_FIONBIO,
	OP_SETFL,
	OP_GETFL,
	OP_SETOPT,
	OP_GETOPT,
	OP_NAMES,
	OP_POLL,
	OP_PPOLL,
	OP_SELECT,
	OP_PSELECT,
	OP_EPOLL_CTL,
	OP_EPOLL_WAIT,
	OP_KINDS, /* those of programs; the rest is the player's */
	OP_LISTEN = OP_KINDS,
	OP_CONNECT,
	OP_ACCEPT,
	OP_OBSERVE,
	OP_SET_READY,
	OP_RELEASE,
	OP_ALL
};

struct op {
	uint8_t kind, slot, set, thread;
	uint32_t a, b, c;
	int timeout;
	uint64_t at; /* of the first octet to send; the player's to set */
};

struct outcome {
	long ret;
	int err;
	int sigpipes;
	unsigned int n;
	long value[VALUES];
	size_t octets; /* of the mailbox's data, to be compared */
};

struct world {
	int fd[SLOTS], set[SETS];
	int release[PROCS], listener[PROCS];
	uint16_t port[PROCS];
};

/* Where a worker is handed an operation; state is a futex */
enum box_state { BOX_IDLE, BOX_POSTED, BOX_RUNNING, BOX_DONE };

struct box {
	uint32_t state; /* atomic */
	int tid;
	struct op op;
	struct outcome out;
	uint8_t data[2 * LENGTH_MAX];
};

enum shape { SHAPE_ONE, SHAPE_THREADS, SHAPE_TWO };

struct arena {
	enum shape shape;
	struct world world[WORLDS];
	struct box box[WORLDS][PROCS][BOXES];
};

extern struct arena *arena;

static inline unsigned int op_side(unsigned int slot)
{
	return slot & 1;
}

static inline unsigned int op_proc(unsigned int slot)
{
	return arena->shape == SHAPE_TWO ? slot & 1 : 0;
}

/* Octet @at of a direction */
static inline uint8_t op_octet(unsigned int side, uint64_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) + side * 101);
}

/* --- generate.c --- */

struct program {
	uint64_t seed;
	unsigned int n;
	struct op *op;
};

void program_generate(struct program *p, uint64_t seed, enum shape shape);
void program_free(struct program *p);

/* --- calls.c, calls_wait.c --- */

struct call {
	const struct op *op;
	struct world *w;
	int fd;
	uint8_t *data;
	struct outcome *out;
};

const char *op_name(enum op_kind kind);
/* Plain sockets are made by libc's socket(), which the interposer does not see */
void calls_init(void);
void call_run(unsigned int world, struct box *box);
bool op_is_send(enum op_kind kind);
bool op_is_receive(enum op_kind kind);
bool op_is_wait(enum op_kind kind);
int recv_flags(const struct op *op);
static inline void call_value(struct call *c, long value)
{
	if (c->out->n < VALUES)
		c->out->value[c->out->n++] = value;
}

long call_poll(struct call *c);
long call_ppoll(struct call *c);
long call_select(struct call *c);
long call_pselect(struct call *c);
long call_epoll_ctl(struct call *c);
long call_epoll_wait(struct call *c);
long call_set_ready(struct call *c);
long call_release(struct call *c);
/* For each slot of a process: open, events, octets, flags */
long call_observe(struct call *c);

/* --- worker.c --- */

void workers_start(enum shape shape);
struct box *box_post(unsigned int world, unsigned int proc, unsigned int thread,
		     const struct op *op);
bool box_done(const struct box *box);
/* Done or, if it may, asleep in the call; false: neither in ten seconds */
bool box_wait(struct box *box, bool may_sleep);
/* Hands over and waits */
const struct outcome *box_run(unsigned int world, unsigned int proc, unsigned int thread,
			      const struct op *op);

#endif
