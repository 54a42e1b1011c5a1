/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warp-active bench`: how long a program takes, as machine code and by the interpreter.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apps/active/local.h"

enum { TIMES = 1000 };

static const uint64_t fuel_most = 10000000000; /* as a server's */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int once(struct local *l, const struct given *g, uint64_t *used)
{
	uint64_t fuel = g->fuel ? g->fuel : fuel_most;
	struct ebpf_result r;
	char text[600];

	if (local_start(l))
		return FAILED;
	ebpf_run_continue(l->run, fuel, &r);
	*used = fuel - r.fuel;
	if (r.status == EBPF_DONE)
		return DONE;
	complain(g->object, ebpf_result_text(&r, l->object, text, sizeof(text)));
	return REFUSED;
}

static int measure(struct local *l, const struct given *g, const char *name)
{
	unsigned long times = g->times ? g->times : TIMES;
	double *took = calloc(times, sizeof(*took));
	uint64_t used = 0;
	int ret = took ? once(l, g, &used) : FAILED;

	for (unsigned long i = 0; i < times && !ret; i++) {
		double begin = now_ns();

		ret = once(l, g, &used);
		took[i] = now_ns() - begin;
	}
	if (!ret) {
		qsort(took, times, sizeof(*took), by_size);
		printf("%-12s  %12.0f ns  %8.2f ns an instruction, %" PRIu64 " instructions\n",
		       name, took[times / 2], took[times / 2] / (double)(used ? used : 1), used);
	}
	free(took);
	return ret;
}

int bench_main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned int flags;
	} ways[] = { { "machine code", 0 }, { "interpreter", EBPF_LOAD_NO_JIT } };
	static struct given g;
	static struct local l;
	int ret = DONE;

	given_read(&g, argc, argv, 1, WORDS_MAX + 2);
	for (int i = 0; i < 2 && !ret; i++) {
		ret = local_open(&l, &g, ways[i].flags);
		if (!ret && !i && !ebpf_object_has_jit(l.object))
			puts("machine code  there is none: this processor or process has no JIT");
		else if (!ret)
			ret = measure(&l, &g, ways[i].name);
		local_close(&l, &g);
	}
	return ret;
}
