/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is told of all runs: medians, because one run that something else disturbed should not
 * count; the least and the most beside them, so that a reader sees how much was disturbed.
 */
#include "apps/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

struct figures {
	double median, min, max;
};

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct figures figures_of(const struct bench_turn *turn, unsigned int n)
{
	double value[BENCH_ROUNDS];

	for (unsigned int i = 0; i < n; i++)
		value[i] = turn[i].value;
	qsort(value, n, sizeof(value[0]), compare);
	return (struct figures){ (value[n / 2] + value[(n - 1) / 2]) / 2, value[0], value[n - 1] };
}

static void figures_json(const char *name, const struct bench_plan *plan,
			 const struct bench_turn *turn, const struct figures *f)
{
	printf("\"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, \"unit\": \"%s\", "
	       "\"runs\": [",
	       name, f->median, f->min, f->max, plan->kind->unit);
	for (unsigned int i = 0; i < plan->rounds; i++)
		printf("%s%.3f", i ? ", " : "", turn[i].value);
	printf("], \"turns\": [");
	for (unsigned int i = 0; i < plan->rounds; i++)
		printf("%s%u", i ? ", " : "", turn[i].number);
	printf("], \"server\": %s, \"client\": %s}, ", turn->said[BENCH_SERVER],
	       turn->said[BENCH_CLIENT]);
}

static void json(const struct bench_plan *plan, const struct bench_sums *sums,
		 const struct figures *f, double ratio)
{
	printf("{\"bench\": \"%s\", ", plan->kind->name);
	figures_json("ddp", plan, sums->turn[BENCH_DDP], &f[BENCH_DDP]);
	figures_json("tcp", plan, sums->turn[BENCH_TCP], &f[BENCH_TCP]);
	printf("\"ratio\": %.4f, \"settings\": {\"size\": %zu, \"count\": %llu, "
	       "\"seconds\": %g, \"rounds\": %u, \"wait\": \"%s\", \"crc\": %s, "
	       "\"cpus\": [%d, %d]}",
	       ratio, plan->size, (unsigned long long)plan->count, plan->seconds, plan->rounds,
	       plan->spin ? "spin" : "block", plan->crc ? "true" : "false", plan->cpu[BENCH_SERVER],
	       plan->cpu[BENCH_CLIENT]);
	if (!plan->kind->native)
		printf(", \"connections\": {\"software\": %lu, \"tcp\": %lu}", sums->software,
		       sums->tcp);
	puts("}");
}

static void text(const struct bench_plan *plan, const struct figures *f, double ratio)
{
	static const char *const names[] = { "DDP", "TCP" };

	printf("%s, %zu bytes, %s, CRC %s, processors %d and %d, %u runs each\n", plan->kind->name,
	       plan->size, plan->spin ? "spinning" : "blocking", plan->crc ? "on" : "off",
	       plan->cpu[BENCH_SERVER], plan->cpu[BENCH_CLIENT], plan->rounds);
	for (int via = 0; via < BENCH_VIAS; via++)
		printf("  %s  %12.2f %-5s (%.2f to %.2f)\n", names[via], f[via].median,
		       plan->kind->unit, f[via].min, f[via].max);
	printf("  DDP/TCP %8.3f\n", ratio);
}

void bench_report(const struct bench_plan *plan, const struct bench_sums *sums)
{
	struct figures f[BENCH_VIAS];
	double ratio;

	for (int via = 0; via < BENCH_VIAS; via++)
		f[via] = figures_of(sums->turn[via], plan->rounds);
	ratio = f[BENCH_DDP].median / f[BENCH_TCP].median;
	if (plan->json)
		json(plan, sums, f, ratio);
	else
		text(plan, f, ratio);
}
