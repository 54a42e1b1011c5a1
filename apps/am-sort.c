/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-sort: a distributed sort. Each rank has random keys, sends each to the rank that owns its
 * range in blocks, sorts what came, and the ranks check order, number and sum together. Timed are
 * sending and sorting, until the last rank has done.
 *
 *	am-sort N L [KEYS-PER-RANK]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "am_arguments.h"
#include "include/warp/amudp_spmd.h"

enum { KEYS = 1, TAKEN };
#define BLOCK 1024
#define KEYS_MOST 1000000000000

static const char usage[] = "usage: am-sort PROCESSES [LETTER] [KEYS]\n\n"
			    "Sorts KEYS (100000) random keys of each rank over all ranks, and "
			    "checks them.\n";

struct summary {
	uint64_t count;
	uint64_t sum;
	uint32_t least;
	uint32_t most;
};

static uint32_t *mine;
static size_t have, room;
static long taken;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void on_keys(void *token, void *buf, int n)
{
	size_t keys = (size_t)n / sizeof(uint32_t);

	if (have + keys > room) {
		room = 2 * (have + keys);
		mine = realloc(mine, room * sizeof(uint32_t));
		if (!mine)
			AMUDP_FatalErr("no memory for %zu keys", room);
	}
	memcpy(mine + have, buf, (size_t)n);
	have += keys;
	AM_Reply0(token, TAKEN);
}

static void on_taken(void *token)
{
	taken++;
}

static uint32_t next_key(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15ull;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	return (uint32_t)((z ^ (z >> 27)) * 0x94D049BB133111EBull >> 32);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sends the keys to their owners; the result sums up what was sent. */
static struct summary scatter(eb_t eb, ep_t ep, int n, long keys)
{
	uint32_t *blocks = malloc((size_t)n * BLOCK * sizeof(uint32_t));
	int *used = calloc((size_t)n, sizeof(int)), owner;
	uint64_t state = (uint64_t)AMUDP_SPMDMyProc() + 1;
	struct summary s = { 0 };
	long i, sent = 0;

	for (i = 0; i < keys; i++) {
		uint32_t key = next_key(&state);

		owner = (int)((uint64_t)key * (uint64_t)n >> 32);
		blocks[owner * BLOCK + used[owner]++] = key;
		s.count++;
		s.sum += key;
		if (used[owner] == BLOCK) {
			AM_RequestI0(ep, owner, KEYS, blocks + owner * BLOCK, BLOCK * 4);
			used[owner] = 0;
			sent++;
		}
	}
	for (owner = 0; owner < n; owner++, sent++)
		AM_RequestI0(ep, owner, KEYS, blocks + owner * BLOCK, used[owner] * 4);
	while (taken < sent)
		AM_Poll(eb);
	free(blocks);
	free(used);
	return s;
}

static struct summary summarise(int n)
{
	struct summary s = { .count = have, .least = UINT32_MAX };
	size_t i;

	for (i = 0; i < have; i++)
		s.sum += mine[i];
	if (have) {
		s.least = mine[0];
		s.most = mine[have - 1];
	}
	return s;
}

static int check(const struct summary *before, const struct summary *after, int n)
{
	struct summary a = { 0 }, b = { 0 };
	int i, bad = 0;

	for (i = 0; i < n; i++) {
		a.count += before[i].count;
		a.sum += before[i].sum;
		b.count += after[i].count;
		b.sum += after[i].sum;
		if (i && after[i].count && after[i - 1].count)
			bad += after[i - 1].most > after[i].least;
	}
	return bad || a.count != b.count || a.sum != b.sum;
}

int main(int argc, char **argv)
{
	struct summary before, after, *all_before, *all_after;
	struct am_arguments arguments = { .usage = usage };
	double seconds, keys = 0;
	uint64_t pid;
	int i, n, bad;
	long each;
	eb_t eb;
	ep_t ep;

	am_arguments_help(usage, argc, argv);
	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	arguments.argc = argc;
	arguments.argv = argv;
	each = am_argument_whole(&arguments, 1, 100000, 0, KEYS_MOST);
	am_arguments_end(&arguments, 1);
	n = AMUDP_SPMDNumProcs();
	all_before = calloc((size_t)n, sizeof(*all_before));
	all_after = calloc((size_t)n, sizeof(*all_after));
	AM_SetHandler(ep, KEYS, on_keys);
	AM_SetHandler(ep, TAKEN, on_taken);
	AMUDP_SPMDBarrier();
	seconds = now();
	before = scatter(eb, ep, n, each);
	AMUDP_SPMDBarrier();
	qsort(mine, have, sizeof(uint32_t), by_value);
	AMUDP_SPMDBarrier();
	seconds = now() - seconds;
	after = summarise(n);
	AMUDP_SPMDAllGather(&before, all_before, sizeof(before));
	AMUDP_SPMDAllGather(&after, all_after, sizeof(after));
	bad = check(all_before, all_after, n);
	for (i = 0; i < n; i++)
		keys += (double)all_before[i].count;
	if (AMUDP_SPMDMyProc() == 0)
		printf("%d ranks: %s, %.0f keys, %.6f s, %.0f keys/s\n", n,
		       bad ? "WRONG" : "sorted", keys, seconds, keys / seconds);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(bad);
}
