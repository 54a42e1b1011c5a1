/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server or a client: pinned, set to work, and its result told (turn.c has the form).
 */
#include "apps/bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void bench_limit_init(struct bench_limit *l, const struct bench_plan *plan)
{
	l->left = plan->count ? plan->count : UINT64_MAX;
	l->end = bench_clock() + plan->seconds;
}

bool bench_limit_go(struct bench_limit *l)
{
	return --l->left > 0 && bench_clock() < l->end;
}

void bench_end_listens(struct bench_end *end, uint16_t port)
{
	printf("port %u\n", port);
	fflush(stdout);
}

static int pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static int work(struct bench_end *end, enum bench_via via)
{
	const struct bench_plan *plan = end->plan;
	int err = pin(plan->cpu[end->role]);

	if (!err)
		err = plan->kind->work[via][end->role](end);
	if (err)
		fprintf(stderr, "warpsock: bench: %s: %s\n",
			end->role == BENCH_SERVER ? "server" : "client", strerror(-err));
	return err;
}

int bench_end_main(int argc, char **argv)
{
	struct bench_end end = { .role = BENCH_SERVER };
	struct bench_plan plan;
	enum bench_via via;

	if (argc < 4)
		return 125;
	end.role = strcmp(argv[1], "server") ? BENCH_CLIENT : BENCH_SERVER;
	via = strcmp(argv[2], "ddp") ? BENCH_TCP : BENCH_DDP;
	end.port = (uint16_t)atoi(argv[3]);
	end.plan = &plan;
	if (bench_plan_parse(&plan, argc - 3, argv + 3) || work(&end, via))
		return 125;
	if (end.role == BENCH_CLIENT)
		printf("value %.6f\n", end.value);
	printf("said %s\n", end.said);
	return 0;
}
