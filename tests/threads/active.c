/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Active RDMA by many threads: one client that all use, clients that come and go, runs that are
 * cancelled and dropped, and a server that ends with all of it under way.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/active/world.h"
#include "tests/tap.h"

enum { THREADS = 4, ROUNDS = 40 };

static struct world w;
static struct warp_active_client *shared;
static int bad, stop; /* atomic */

static void count_bad(bool good)
{
	if (!good)
		__atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
}

static void *use_shared(void *arg)
{
	static const struct world_call spin = { "spin" };
	uint64_t number = 0;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		const struct world_call call = { "steps", { i * 200 }, 1 };
		struct warp_active_request *r = world_start(&w, shared, &spin);
		struct warp_active_result result = world_run(&w, shared, &call);

		count_bad(result.code == WARP_ACTIVE_OK && result.value == i * 200);
		count_bad(!world_access(shared, WARP_ACTIVE_OP_READ, WORLD_RAW, 0, &number, 8));
		warp_active_cancel(r);
		if (i % 2)
			warp_active_drop(r);
		else
			count_bad(world_wait(r).code == WARP_ACTIVE_CANCELLED);
	}
	return NULL;
}

static void *come_and_go(void *arg)
{
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct warp_active_client *c = world_client(&w);
		const struct world_call push = { "push", { 1 }, 1, WORLD_HEAP + 1 };

		count_bad(world_run(&w, c, &push).code == WARP_ACTIVE_OK);
		warp_active_drop(world_start(&w, c, &push));
		warp_active_disconnect(c);
		world_stats(&w);
	}
	return NULL;
}

static bool together(void)
{
	pthread_t threads[2 * THREADS];

	world_open(&w, NULL);
	shared = world_client(&w);
	for (int i = 0; i < 2 * THREADS; i++)
		if (pthread_create(&threads[i], NULL, i % 2 ? use_shared : come_and_go, NULL))
			abort();
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	warp_active_disconnect(shared);
	world_close(&w);
	return !bad;
}

static void *run_until_it_ends(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (world_run(&w, shared, &(const struct world_call){ "sum" }).code)
			break;
	return NULL;
}

static bool server_ends(void)
{
	static const struct world_call spin = { "spin" };
	struct warp_active_request *r[8];
	pthread_t threads[THREADS];
	double begin;

	world_open(&w, NULL);
	shared = world_client(&w);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_until_it_ends, NULL))
			abort();
	for (int i = 0; i < 8; i++)
		r[i] = world_start(&w, shared, &spin);
	usleep(50000);
	begin = world_now();
	warp_active_server_destroy(w.server);
	count_bad(world_now() - begin < 5); /* less than the time that the programs have */
	w.server = NULL;
	for (int i = 0; i < 8; i++)
		warp_active_drop(r[i]);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	count_bad(!warp_active_disconnect(shared));
	world_close(&w);
	return !bad;
}

int main(int argc, char **argv)
{
	tap_case(together(), "one client of many threads, and clients that come and go");
	tap_case(server_ends(), "the server ends with programs under way");
	return tap_finish();
}
