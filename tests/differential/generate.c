/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A seed becomes a program. Each operation is drawn from a generator of its own, so that an
 * operation is the same whichever others are left out: a failing program is made smaller by
 * leaving out operations of the same seed.
 */
#include <stdlib.h>

#include "op.h"

#define PROGRAM_OPS 160

static const uint16_t weights[OP_KINDS] = {
	[OP_WRITE] = 120, [OP_WRITEV] = 40,    [OP_SEND] = 60,	      [OP_SEND_MORE] = 6,
	[OP_SENDTO] = 8,  [OP_SENDMSG] = 24,   [OP_READ] = 110,	      [OP_READV] = 30,
	[OP_RECV] = 110,  [OP_RECVFROM] = 12,  [OP_RECVMSG] = 30,     [OP_SHUTDOWN] = 6,
	[OP_CLOSE] = 5,	  [OP_DUP] = 6,	       [OP_FIONREAD] = 20,    [OP_FIONBIO] = 10,
	[OP_SETFL] = 14,  [OP_GETFL] = 10,     [OP_SETOPT] = 12,      [OP_GETOPT] = 12,
	[OP_NAMES] = 6,	  [OP_POLL] = 60,      [OP_PPOLL] = 12,	      [OP_SELECT] = 30,
	[OP_PSELECT] = 6, [OP_EPOLL_CTL] = 60, [OP_EPOLL_WAIT] = 120,
};

struct rng {
	uint64_t state;
};

static uint64_t next(struct rng *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint32_t below(struct rng *r, uint32_t n)
{
	return (uint32_t)(next(r) % n);
}

static uint8_t draw_kind(struct rng *r)
{
	unsigned int sum = 0, at, kind = 0;

	for (unsigned int i = 0; i < OP_KINDS; i++)
		sum += weights[i];
	at = below(r, sum);
	while (at >= weights[kind])
		at -= weights[kind++];
	return (uint8_t)kind;
}

static uint32_t draw_length(struct rng *r)
{
	static const uint32_t most[] = { 1, 16, 16, 16, 300, 300, 300, 300, 300, 4096, 4096, 4096 };
	uint32_t which = below(r, 32);

	if (which == 31)
		return below(r, LENGTH_MAX + 1);
	return below(r, most[which % 12] + 1);
}

static int draw_timeout(struct rng *r, enum shape shape)
{
	uint32_t which = below(r, 16);

	if (which == 0)
		return 2;
	return which < 5 && shape != SHAPE_ONE ? -1 : 0;
}

/* Mostly the ends themselves, now and then what dup() may have made of them */
static uint8_t draw_slot(struct rng *r)
{
	return (uint8_t)(below(r, 5) ? below(r, 2) : below(r, SLOTS));
}

static void draw(struct op *op, uint64_t seed, unsigned int i, enum shape shape)
{
	struct rng r = { seed * 0x10001u + i * 0x9e3779b9u };

	next(&r);
	*op = (struct op){
		.kind = draw_kind(&r),
		.slot = draw_slot(&r),
		.set = (uint8_t)below(&r, SETS),
		.thread = (uint8_t)below(&r, THREADS),
		.a = draw_length(&r),
		.b = (uint32_t)next(&r),
		.c = (uint32_t)next(&r),
		.timeout = draw_timeout(&r, shape),
	};
}

void program_generate(struct program *p, uint64_t seed, enum shape shape)
{
	*p = (struct program){ seed, PROGRAM_OPS, calloc(PROGRAM_OPS, sizeof(*p->op)) };
	if (!p->op)
		abort();
	for (unsigned int i = 0; i < p->n; i++)
		draw(&p->op[i], seed, i, shape);
}

void program_free(struct program *p)
{
	free(p->op);
}
