/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that has work to do, beside others that wait:
 *
 *     bench_third SECONDS
 *
 * One thread computes all the time: its share of a processor is told. Another one sleeps for a
 * millisecond again and again: how late it wakes up is told. It has no socket.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/tools/tool.h"

#define PERIOD (TOOL_NS / 1000)
#define SAMPLES (600 * 1000)

static uint64_t until;
static uint32_t late[SAMPLES];

static void *wake(void *arg)
{
	size_t *n = arg;

	uint64_t now = tool_now();

	do { /* once at least, also where the other thread has been faster */
		uint64_t due = now + PERIOD;

		tool_sleep_until(due);
		now = tool_now();
		late[(*n)++] = (uint32_t)(now - due);
	} while (now < until && *n < SAMPLES);
	return NULL;
}

static uint64_t compute(void)
{
	volatile uint64_t x = 1;
	uint64_t turns = 0;

	for (; tool_now() < until; turns++)
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	return turns;
}

int main(int argc, char **argv)
{
	uint64_t begin = tool_now(), turns;
	struct timespec cpu;
	double seconds;
	size_t n = 0;
	pthread_t thread;

	if (argc != 2) {
		fputs("usage: bench_third SECONDS\n", stderr);
		return 2;
	}
	until = begin + (uint64_t)(tool_number(argv[1], 0.01, 600) * TOOL_NS);
	if (pthread_create(&thread, NULL, wake, &n))
		tool_die("a thread");
	turns = compute();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	seconds = (double)(tool_now() - begin) / TOOL_NS;
	pthread_join(thread, NULL);
	printf("{\"share\": %.5f, \"work\": %.1f, \"wakes\": %zu, ",
	       ((double)cpu.tv_sec + (double)cpu.tv_nsec / TOOL_NS) / seconds,
	       (double)turns / seconds, n);
	tool_quantiles("late", late, n);
	puts("}");
	return 0;
}
