/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program runs in both worlds, step by step.
 *
 * A step is one operation of one thread, in the plain world and in the other at the same time; the
 * next begins when both have come to rest. An operation that has to wait is known beforehand,
 * from what the plain world looks like, and is seen to sleep in both; the steps of other threads
 * end it. Left out, in both worlds, is what has no one answer even on Linux: two threads that
 * wait for the same octets, or close() under a thread that waits. Also what a buffer's size
 * would decide: unread octets never fill one.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "play.h"

#define NOTHING_HEARD UINT64_MAX

uint64_t play_unread(const struct play *p, unsigned int side)
{
	return p->accepted[!side] - p->taken[side];
}

uint64_t play_news(const struct play *p, unsigned int side)
{
	return p->accepted[!side] + p->ended[!side];
}

bool play_holds_octets(const struct play *p, unsigned int side)
{
	for (unsigned int i = 0; i < PROCS * THREADS; i++) {
		const struct blocked *b = &p->blocked[i / THREADS][i % THREADS];

		if (b->is && op_is_receive(b->op.kind) && op_side(b->op.slot) == side &&
		    !(recv_flags(&b->op) & MSG_PEEK))
			return true;
	}
	return false;
}

static unsigned int proc_of(const struct op *op)
{
	return op_proc(op->kind == OP_EPOLL_WAIT ? op->set : op->slot);
}

static bool is_open(unsigned int slot)
{
	return arena->world[PLAIN].fd[slot] >= 0;
}

/* --- telling --- */

void op_print(const struct op *op)
{
	printf("%s slot %u set %u thread %u a %u b %#x c %#x timeout %d", op_name(op->kind),
	       op->slot, op->set, op->thread, op->a, op->b, op->c, op->timeout);
}

void outcome_print(const char *world, const struct outcome *out)
{
	printf("  %s: %ld errno %d", world, out->ret, out->err);
	if (out->sigpipes)
		printf(" SIGPIPE %d", out->sigpipes);
	for (unsigned int i = 0; i < out->n; i++)
		printf(" %#lx", out->value[i]);
	printf("\n");
}

void play_fail(struct play *p, const char *format, ...)
{
	va_list args;

	printf("seed %lu, after %u operations: ", p->program->seed, p->executed);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	p->failed = true;
}

static bool outcomes_equal(const struct outcome *a, const struct outcome *b)
{
	return a->ret == b->ret && a->err == b->err && a->sigpipes == b->sigpipes && a->n == b->n &&
	       !memcmp(a->value, b->value, a->n * sizeof(a->value[0]));
}

void outcome_compare(struct play *p, const struct op *op, struct box *const box[WORLDS])
{
	const struct outcome *plain = &box[PLAIN]->out, *ddp = &box[DDP]->out;
	bool same = outcomes_equal(plain, ddp);

	if (p->verbose) {
		printf("%3u ", p->executed);
		op_print(op);
		printf("\n");
		outcome_print("plain", plain);
		if (!same)
			outcome_print("ddp", ddp);
	}
	if (same && !memcmp(box[PLAIN]->data, box[DDP]->data, plain->octets))
		return;
	if (exception_knows(p, op, plain, ddp))
		return;
	play_fail(p, "%s", same ? "other octets" : "another outcome");
	op_print(op);
	printf("\n");
	outcome_print("plain", plain);
	outcome_print("ddp", ddp);
}

/* --- what may be done now --- */

/* The slots that a waiting operation is about, as bits */
static uint32_t slots_of(const struct play *p, const struct op *op)
{
	if (op->kind == OP_EPOLL_WAIT)
		return p->members[op->set];
	return (op_is_wait(op->kind) ? op->b & ((1u << SLOTS) - 1) : 0) | 1u << op->slot;
}

static uint32_t sides_of(uint32_t slots)
{
	return (slots & 0x15 ? 1u : 0) | (slots & 0x2A ? 2u : 0);
}

/* Does a thread that waits touch the sides of @op? */
static bool somebody_waits(const struct play *p, const struct op *op)
{
	uint32_t sides = sides_of(slots_of(p, op));

	for (unsigned int i = 0; i < PROCS * THREADS; i++) {
		const struct blocked *b = &p->blocked[i / THREADS][i % THREADS];

		if (b->is && (sides & sides_of(slots_of(p, &b->op)) ||
			      (op->kind == OP_EPOLL_WAIT && b->op.kind == OP_EPOLL_WAIT &&
			       b->op.set == op->set)))
			return true;
	}
	return false;
}

/* Two that receive at once share octets as it comes */
static bool somebody_receives(const struct play *p, unsigned int side)
{
	for (unsigned int i = 0; i < PROCS * THREADS; i++) {
		const struct blocked *b = &p->blocked[i / THREADS][i % THREADS];

		if (b->is && op_is_receive(b->op.kind) && op_side(b->op.slot) == side)
			return true;
	}
	return false;
}

static bool is_asleep(const struct play *p)
{
	bool any = false;

	for (unsigned int i = 0; i < PROCS * THREADS; i++)
		any |= p->blocked[i / THREADS][i % THREADS].is;
	return any;
}

static unsigned int threads_free(const struct play *p, unsigned int proc)
{
	unsigned int n = 0;

	for (unsigned int t = 0; t < THREADS; t++)
		n += !p->blocked[proc][t].is;
	return n;
}

static bool is_sendable(const struct play *p, const struct op *op)
{
	return play_unread(p, !op_side(op->slot)) + op->a <= UNREAD_MAX;
}

static bool is_applicable(const struct play *p, const struct op *op)
{
	unsigned int proc = proc_of(op);

	if (op->kind != OP_EPOLL_WAIT && !is_open(op->slot))
		return false;
	if (p->blocked[proc][op->thread].is ||
	    (op->kind == OP_EPOLL_CTL && op_proc(op->set) != proc))
		return false;
	if (op->kind == OP_SEND_MORE && is_asleep(p))
		return false; /* its first half wakes or not, as it comes */
	if (op_is_send(op->kind))
		return is_sendable(p, op);
	if (op_is_receive(op->kind) || op->kind == OP_EPOLL_CTL)
		return !somebody_receives(p, op_side(op->slot));
	if (op->kind == OP_CLOSE || op->kind == OP_DUP || op->kind == OP_EPOLL_WAIT)
		return !somebody_waits(p, op);
	return true;
}

/* Octets without which a receiving call sleeps */
static uint64_t octets_wanted(const struct op *op)
{
	if ((op->kind == OP_READ || op->kind == OP_READV) && !op->a)
		return 0;
	return recv_flags(op) & MSG_WAITALL && op->a ? op->a : 1;
}

static bool octets_lack(const struct play *p, const struct op *op)
{
	const struct seen *seen = &p->seen[PLAIN][op->slot];

	if (seen->events & (POLLRDHUP | POLLHUP | POLLERR))
		return false;
	return play_unread(p, op_side(op->slot)) < octets_wanted(op);
}

static bool may_sleep(const struct play *p, const struct op *op)
{
	if (op_is_wait(op->kind))
		return op->timeout < 0;
	return op_is_receive(op->kind) && !(p->seen[PLAIN][op->slot].flags & O_NONBLOCK) &&
	       !(recv_flags(op) & MSG_DONTWAIT) && !p->timed[op_side(op->slot)];
}

/* Is there nothing for an operation that may sleep? Receivers are judged by what was sent */
bool op_lacks(const struct play *p, unsigned int world, const struct op *op)
{
	struct op probe = *op;

	if (op_is_receive(op->kind))
		return octets_lack(p, op);
	if (p->released[proc_of(op)])
		return false;
	probe.timeout = 0;
	if (op->kind == OP_EPOLL_WAIT) {
		if (op->b % 16 == 15)
			return false;
		probe.kind = OP_SET_READY;
	}
	return box_run(world, proc_of(op), OBSERVER, &probe)->ret == 0;
}

/* --- what was done --- */

static bool is_last(unsigned int slot)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (op_side(i) == op_side(slot) && is_open(i))
			return false;
	return true;
}

static void account_end(struct play *p, const struct op *op, long ret)
{
	unsigned int side = op_side(op->slot);

	if (op->kind == OP_SHUTDOWN && !ret && op->b % 7 != 3)
		p->ended[side] = true;
	if (op->kind == OP_SHUTDOWN && (op->b % 7 == 3 || op->b % 7 == 4))
		p->deaf[side] = true;
	if (op->kind == OP_CLOSE && is_last(op->slot)) {
		p->reset |= play_unread(p, side) && !p->gone[!side];
		p->gone[side] = p->ended[side] = true;
	}
}

/* A registration, new or changed, must tell what there is; and what was told is no news */
static void account_set(struct play *p, const struct op *op, const struct outcome *out)
{
	if (op->kind == OP_EPOLL_CTL && !out->ret) {
		p->heard[op->set][op->slot] = NOTHING_HEARD;
		if (out->value[0] == EPOLL_CTL_ADD)
			p->members[op->set] |= 1u << op->slot;
	}
	for (unsigned int i = 0; op->kind == OP_EPOLL_WAIT && out->ret > 0 && i < SLOTS; i++)
		if (out->value[i])
			p->heard[op->set][i] = play_news(p, op_side(i));
}

static void account_send(struct play *p, unsigned int side, long ret)
{
	p->accepted[side] += (uint64_t)ret;
	p->late[side] |= p->ended[!side] && (p->gone[!side] || p->deaf[!side]);
	p->reset |= p->late[side];
}

static void account(struct play *p, const struct op *op, const struct outcome *out)
{
	unsigned int side = op_side(op->slot);

	if (op_is_send(op->kind) && out->ret > 0)
		account_send(p, side, out->ret);
	if (op_is_receive(op->kind) && out->ret > 0 && !(recv_flags(op) & MSG_PEEK))
		p->taken[side] += (uint64_t)out->ret;
	if (op->kind == OP_SETOPT && op->b % 5 == 2)
		p->timed[side] = op->c & 1;
	account_set(p, op, out);
	account_end(p, op, out->ret);
}

void blocked_end(struct play *p, struct blocked *b)
{
	b->is = false;
	outcome_compare(p, &b->op, b->box);
	account(p, &b->op, &b->box[PLAIN]->out);
}

static void step(struct play *p, struct op op)
{
	struct box *box[WORLDS];
	bool sleeps;

	op.thread = arena->shape == SHAPE_ONE ? 0 : op.thread;
	if (!is_applicable(p, &op))
		return;
	sleeps = may_sleep(p, &op) && op_lacks(p, PLAIN, &op);
	/* What one world alone would sleep for is a difference to judge, not one to wait out */
	if (op.timeout < 0 && op_is_wait(op.kind) && !sleeps && op_lacks(p, DDP, &op))
		op.timeout = 0;
	/* Who wants no octets and sleeps is woken by anything */
	if (sleeps && (arena->shape == SHAPE_ONE || (op_is_receive(op.kind) && !op.a) ||
		       threads_free(p, proc_of(&op)) < 2 || somebody_waits(p, &op)))
		return;
	op.at = p->accepted[op_side(op.slot)];
	p->executed++;
	for (unsigned int w = 0; w < WORLDS; w++)
		box[w] = box_post(w, proc_of(&op), op.thread, &op);
	for (unsigned int w = 0; w < WORLDS && !p->failed; w++)
		if (!box_wait(box[w], sleeps))
			play_fail(p, "%s hangs in world %u", op_name(op.kind), w);
	if (p->failed)
		return;
	if (sleeps) {
		p->blocked[proc_of(&op)][op.thread] =
			(struct blocked){ true, op, { box[0], box[1] } };
	} else {
		outcome_compare(p, &op, box);
		account(p, &op, &box[PLAIN]->out);
	}
	if (!p->failed && !p->stop)
		settle(p);
}

/* --- a program --- */

static bool both(struct play *p, const struct op *op, unsigned int proc)
{
	for (unsigned int w = 0; w < WORLDS; w++)
		if (box_run(w, proc, OBSERVER, op)->ret < 0) {
			play_fail(p, "%s fails in world %u: %d", op_name(op->kind), w,
				  arena->box[w][proc][OBSERVER].out.err);
			return false;
		}
	return true;
}

static bool begin(struct play *p)
{
	unsigned int asks = p->program->seed & 1, other = !asks;
	struct op connect = { .kind = OP_CONNECT, .slot = (uint8_t)asks, .a = op_proc(other) };
	struct op accept = { .kind = OP_ACCEPT, .slot = (uint8_t)other, .a = op_proc(other) };

	for (unsigned int w = 0; w < WORLDS; w++) {
		struct box *box[2];

		for (unsigned int i = 0; i < SLOTS; i++)
			arena->world[w].fd[i] = -1;
		for (unsigned int i = 0; i < SETS; i++)
			arena->world[w].set[i] = -1;
		box[0] = box_post(w, op_proc(asks), 0, &connect);
		box[1] = box_post(w, op_proc(other), 1, &accept);
		for (unsigned int i = 0; i < 2; i++)
			if (!box_wait(box[i], false) || box[i]->out.ret < 0) {
				play_fail(p, "no connection in world %u: errno %d", w,
					  box[i]->out.err);
				return false;
			}
	}
	return settle(p);
}

static void shut(unsigned int slot)
{
	struct op end = { .kind = OP_SHUTDOWN, .slot = (uint8_t)slot };

	for (unsigned int i = slot; i < SLOTS; i += 2)
		if (is_open(i))
			end.slot = (uint8_t)i;
	for (unsigned int w = 0; w < WORLDS && is_open(end.slot); w++)
		box_run(w, op_proc(slot), OBSERVER, &end);
}

/* Who still sleeps is woken: those in poll by an eventfd, those that receive by an end */
static void wake_all(struct play *p)
{
	for (unsigned int slot = 0; slot < 2 && !p->failed; slot++) {
		struct op ring = { .kind = OP_RELEASE, .slot = (uint8_t)slot };

		both(p, &ring, op_proc(slot));
		p->released[op_proc(slot)] = true;
		if (!p->stop)
			settle(p);
		shut(slot);
		p->ended[slot] |= is_open(slot) || is_open(slot + 2) || is_open(slot + 4);
		if (!p->stop && !p->failed)
			settle(p);
	}
}

/* Where the worlds have parted, sleepers come back without being compared */
static void wait_all(struct play *p)
{
	for (unsigned int i = 0; i < WORLDS * PROCS * THREADS; i++) {
		const struct blocked *b = &p->blocked[i / WORLDS / THREADS][i / WORLDS % THREADS];

		if (b->is && !p->failed && !box_wait(b->box[i % WORLDS], false))
			play_fail(p, "%s does not come back in world %u", op_name(b->op.kind),
				  i % WORLDS);
	}
}

static void finish(struct play *p)
{
	if (is_asleep(p))
		wake_all(p);
	wait_all(p);
	if (p->failed)
		return;
	for (unsigned int proc = 0; proc < (arena->shape == SHAPE_TWO ? 2u : 1u); proc++)
		both(p, &(struct op){ .kind = OP_RELEASE, .slot = (uint8_t)proc, .a = 1 }, proc);
}

long play(const struct program *program, const bool *only, bool verbose)
{
	struct play p = { .program = program, .verbose = verbose };

	if (begin(&p))
		for (unsigned int i = 0; i < program->n && !p.failed && !p.stop; i++)
			if (!only || only[i])
				step(&p, program->op[i]);
	if (!p.failed)
		finish(&p);
	return p.failed ? -1 : (long)p.executed;
}
