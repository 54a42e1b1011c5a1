/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-lock: a queue lock at a server, taken in two ways: by RDMA alone, and by programs that the
 * client sends. The lock's code is lock_code.h for both. It protects a number, which clients read
 * and write by RDMA.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "active_app.h"
#include "lock_code.h"
#include "place_rdma.h"

static struct active_common common = { .port = 7179 };
static unsigned long nodes = 1024, repeat, alone, wait_ms = 10000, hold_us;
static const struct active_app app;

/* --- server ------------------------------------------------------------------------------- */

/* New memory is zero, and so is a free lock */
static void lock_fill(void *memory)
{
}

static int serve(char **words)
{
	const struct warp_active_region_attr attr = {
		.name = "lock",
		.size = LOCK_NODES_AT + nodes * sizeof(struct lock_node),
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
	};

	return active_app_serve(&app, &attr, lock_fill, "a free lock");
}

/* --- client ------------------------------------------------------------------------------- */

struct side {
	struct place place;
	struct lock_args args;
	unsigned long number, operations;
};

static int run(struct side *s, const char *function, void *output, size_t room)
{
	struct warp_active_result result;
	int ret = active_end_run(&s->place.end, function, 7, &s->args, sizeof(s->args), output,
				 room, &result);

	s->place.operations++;
	return ret ? ret : (int)(int64_t)result.value;
}

static int enter(struct side *s)
{
	if (alone)
		return lock_enter(&s->place, &s->args, &s->args.node);
	return run(s, "enter", &s->args.node, sizeof(s->args.node));
}

static int look(struct side *s)
{
	return alone ? lock_look(&s->place, &s->args) : run(s, "look", NULL, 0);
}

static int give_up(struct side *s)
{
	return alone ? lock_give_up(&s->place, &s->args) : run(s, "give_up", NULL, 0);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* 0: the lock is ours; -ETIMEDOUT: others had it for too long */
static int lock_take(struct side *s)
{
	double end = now_ms() + (double)wait_ms;
	int ret = enter(s);

	while (!ret && now_ms() < end)
		ret = look(s);
	if (!ret)
		ret = give_up(s);
	return ret < 0 ? ret : ret ? 0 : -ETIMEDOUT;
}

static int leave(struct side *s)
{
	double end = now_ms() + (double)wait_ms;
	int ret;

	do
		ret = alone ? lock_leave(&s->place, &s->args) : run(s, "leave", NULL, 0);
	while (ret == PLACE_LATE && now_ms() < end);
	return ret;
}

static void hold(void)
{
	const struct timespec t = { (time_t)(hold_us / 1000000), (long)(hold_us % 1000000) * 1000 };

	if (hold_us)
		nanosleep(&t, NULL);
}

/* Two who do this at the same time, without a lock, would count one of them only */
static int count_one(void *arg)
{
	struct side *s = arg;
	unsigned long at;
	int ret;

	s->args.lock = s->place.end.region.addr;
	s->args.size = s->place.end.region.size;
	s->args.turns = alone ? 1 : 2000;
	s->place.operations = 0;
	at = s->args.lock + LOCK_NUMBER_AT;
	ret = lock_take(s);
	if (ret)
		return ret;
	ret = place_load(&s->place, at, &s->number);
	hold();
	s->number++;
	if (!ret)
		ret = place_store(&s->place, at, &s->number, sizeof(s->number));
	if (!ret)
		ret = leave(s);
	s->operations = s->place.operations;
	return ret;
}

static int count(char **words)
{
	struct side s = { 0 };
	double us = 0;
	int ret = active_app_ask(&app, &s.place.end, "lock", count_one, &s, repeat, &us);

	if (ret)
		return ret;
	printf("%lu\n", s.number);
	if (repeat)
		printf("%s, %lu round trips, %.1f us\n", alone ? "one-sided" : "active",
		       s.operations, us);
	return APP_OK;
}

/* --- command line ------------------------------------------------------------------------- */

static const struct active_verb verbs[] = {
	{ "serve", "", 0, serve },
	{ "count", "", 0, count },
	{ 0 },
};

static const struct active_option options[] = {
	{ 'n', "CLIENTS", "how many may wait at once (1024)", &nodes, 1, 1 << 20, NULL },
	{ '1', NULL, "one-sided: by RDMA alone, without a program at the server", &alone, 0, 0,
	  NULL },
	{ 'r', "TIMES", "do it so often more, and tell the median time", &repeat, 1, 10000000,
	  NULL },
	{ 'w', "MS", "wait so long for the lock (10000)", &wait_ms, 0, 1000000, NULL },
	{ 'k', "US", "keep it so long (0)", &hold_us, 0, 100000000, NULL },
	{ 0 },
};

static const struct active_app app = { "warp-lock",   &common,		verbs, options, NULL,
				       active_object, active_object_end };

int main(int argc, char **argv)
{
	return active_app_main(&app, argc, argv);
}
