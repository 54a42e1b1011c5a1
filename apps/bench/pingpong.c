/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A message there and back, one at a time; the value is the mean time of a round trip.
 */
#include "apps/bench/bench.h"

#include <errno.h>

/* Round trips before the clock runs: caches, branch predictors, the congestion window */
#define WARM_UP 100

static int pong(struct bench_end *end, int fd, char *buf)
{
	size_t size = end->plan->size;
	int got;

	do {
		got = bench_wire_recv(end, fd, buf, size);
		if (got > 0)
			got = bench_wire_send(end, fd, buf, size);
	} while (got > 0);
	return got;
}

static int round_trip(const struct bench_end *end, int fd, char *buf)
{
	int got = bench_wire_send(end, fd, buf, end->plan->size);

	return got > 0 ? bench_wire_recv(end, fd, buf, end->plan->size) : got;
}

static int ping(struct bench_end *end, int fd, char *buf)
{
	struct bench_limit limit;
	uint64_t n = 0;
	double begin;
	int got = 1;

	for (int i = 0; i < WARM_UP && got > 0; i++)
		got = round_trip(end, fd, buf);
	begin = bench_clock();
	bench_limit_init(&limit, end->plan);
	for (bool more = got > 0; more; n++) {
		got = round_trip(end, fd, buf);
		more = got > 0 && bench_limit_go(&limit);
	}
	end->value = (bench_clock() - begin) * 1e6 / (double)n;
	return got > 0 ? 0 : got < 0 ? got : -ECONNRESET;
}

int bench_pingpong_server(struct bench_end *end)
{
	return bench_wire_run(end, pong);
}

int bench_pingpong_client(struct bench_end *end)
{
	return bench_wire_run(end, ping);
}
