/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both worlds come to rest and look alike.
 *
 * The plain one is at rest when its receivers have what was sent to them, and who could go on
 * has gone on; then the other one has five seconds to show the same readiness and the same number
 * of unread octets at each descriptor, and to wake the same threads.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "play.h"

#define LIMIT_MS 5000
/* So long a difference stands before an exception may be made of it */
#define PATIENCE_MS 30

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void observe(struct play *p)
{
	for (unsigned int proc = 0; proc < (arena->shape == SHAPE_TWO ? 2u : 1u); proc++) {
		struct op op = { .kind = OP_OBSERVE, .slot = (uint8_t)proc };

		for (unsigned int w = 0; w < WORLDS; w++) {
			const struct outcome *out = box_run(w, proc, OBSERVER, &op);

			for (unsigned int i = 0; i < SLOTS; i++)
				if (op_proc(i) == proc)
					p->seen[w][i] = (struct seen){ out->value[4 * i],
								       (short)out->value[4 * i + 1],
								       (int)out->value[4 * i + 2],
								       (int)out->value[4 * i + 3] };
		}
	}
}

/* Has what was sent come, and what ended? And who waits for more has taken what there is */
static bool plain_rests(const struct play *p)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		const struct seen *seen = &p->seen[PLAIN][i];
		unsigned int side = op_side(i);
		uint64_t unread = play_holds_octets(p, side) ? 0 : play_unread(p, side);

		if (!seen->open)
			continue;
		if (p->reset) {
			if (!(seen->events & POLLHUP))
				return false;
			continue;
		}
		if (seen->events & (POLLERR | POLLHUP))
			continue;
		if (seen->unread != (int)unread)
			return false;
		if (p->ended[!side] && !(seen->events & POLLRDHUP))
			return false;
	}
	return true;
}

/* A pair of sleepers: both have come back, or neither and rightly so */
static bool sleeper_rests(struct play *p, struct blocked *b)
{
	bool plain = box_done(b->box[PLAIN]), ddp = box_done(b->box[DDP]);

	if (plain && ddp) {
		blocked_end(p, b);
		return false; /* the worlds have changed: look again */
	}
	return plain == ddp && op_lacks(p, PLAIN, &b->op);
}

static bool sleepers_rest(struct play *p)
{
	bool rest = true;

	for (unsigned int i = 0; i < PROCS * THREADS && !p->failed && !p->stop; i++) {
		struct blocked *b = &p->blocked[i / THREADS][i % THREADS];

		if (b->is)
			rest &= sleeper_rests(p, b);
	}
	return rest;
}

static bool seen_equal(const struct seen *a, const struct seen *b)
{
	return a->open == b->open && a->events == b->events && a->unread == b->unread &&
	       a->flags == b->flags;
}

static int first_difference(const struct play *p)
{
	for (int i = 0; i < SLOTS; i++)
		if (!seen_equal(&p->seen[PLAIN][i], &p->seen[DDP][i]))
			return i;
	return -1;
}

static struct outcome seen_outcome(const struct seen *seen)
{
	return (struct outcome){ .n = 3, .value = { seen->events, seen->unread, seen->flags } };
}

static bool difference_known(struct play *p)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct op op = { .kind = OP_OBSERVE, .slot = (uint8_t)i };
		struct outcome plain = seen_outcome(&p->seen[PLAIN][i]);
		struct outcome ddp = seen_outcome(&p->seen[DDP][i]);

		if (!seen_equal(&p->seen[PLAIN][i], &p->seen[DDP][i]) &&
		    !exception_knows(p, &op, &plain, &ddp))
			return false;
	}
	return true;
}

/* One has come back and the other sleeps, which is as if it had been told of nothing */
static bool waking_known(struct play *p)
{
	for (unsigned int i = 0; i < PROCS * THREADS; i++) {
		const struct blocked *b = &p->blocked[i / THREADS][i % THREADS];
		struct outcome out[WORLDS] = { { .ret = 0 }, { .ret = 0 } };

		if (!b->is || box_done(b->box[PLAIN]) == box_done(b->box[DDP]))
			continue;
		for (unsigned int w = 0; w < WORLDS; w++)
			if (box_done(b->box[w]))
				out[w] = b->box[w]->out;
		if (exception_knows(p, &b->op, &out[PLAIN], &out[DDP]) && p->stop)
			return true;
	}
	return false;
}

static void tell(struct play *p, bool rests)
{
	int at = first_difference(p);

	play_fail(p, "%s",
		  at >= 0 ? "the worlds look different"
		  : rests ? "a thread sleeps in one world"
			  : "the plain world does not come to rest");
	for (unsigned int i = 0; i < SLOTS; i++) {
		const struct seen *a = &p->seen[PLAIN][i], *b = &p->seen[DDP][i];

		if (a->open || b->open)
			printf("  slot %u: plain events %#x unread %d flags %#x, ddp events %#x "
			       "unread %d flags %#x\n",
			       i, a->events, a->unread, a->flags, b->events, b->unread, b->flags);
	}
	for (unsigned int i = 0; i < PROCS * THREADS; i++) {
		const struct blocked *b = &p->blocked[i / THREADS][i % THREADS];

		if (!b->is)
			continue;
		printf("  waits (plain %s, ddp %s): ", box_done(b->box[PLAIN]) ? "back" : "asleep",
		       box_done(b->box[DDP]) ? "back" : "asleep");
		op_print(&b->op);
		printf("\n");
		for (unsigned int w = 0; w < WORLDS; w++)
			if (box_done(b->box[w]))
				outcome_print(w == PLAIN ? "plain" : "ddp", &b->box[w]->out);
	}
}

bool settle(struct play *p)
{
	long begun = now_us(), pause = 20000;
	bool rests, sleepers;

	for (;;) {
		struct timespec ts = { 0, pause };
		long passed;

		observe(p);
		sleepers = sleepers_rest(p);
		if (p->failed || p->stop)
			return false;
		rests = plain_rests(p);
		if (rests && sleepers && first_difference(p) < 0)
			return true;
		passed = (now_us() - begun) / 1000;
		if (rests && sleepers && passed > PATIENCE_MS && difference_known(p))
			return !p->stop;
		if (rests && passed > PATIENCE_MS && waking_known(p))
			return false;
		if (passed > LIMIT_MS)
			break;
		nanosleep(&ts, NULL);
		pause = pause < 2000000 ? pause * 2 : pause;
	}
	tell(p, rests);
	return false;
}
