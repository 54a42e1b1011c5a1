/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Machine code of the JIT, the interpreter and native C beside one another.
 *
 *	speed OBJECT [MILLISECONDS]
 *
 * For each function and size: nanoseconds for one step (a hop, a look-up, a byte), and the ratio
 * to native C. The three take turns, and the best of all turns counts, for others use the
 * machine, too. The last line is what a run costs to start and to end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/run.h"
#include "kernels.h"

enum { MEMORY = 1 << 20, TURNS = 15, BATCH = 4 };

static uint8_t *memory;
static double turn_ms = 2;

__attribute__((noinline)) static uint64_t native_nothing(uint64_t a, uint64_t b, uint64_t c)
{
	return 0;
}

__attribute__((noinline)) static uint64_t native_walk(uint64_t a, uint64_t b, uint64_t c)
{
	return list_walk(a, b, c);
}

__attribute__((noinline)) static uint64_t native_table(uint64_t a, uint64_t b, uint64_t c)
{
	return hash_get(a, b);
}

__attribute__((noinline)) static uint64_t native_bytes(uint64_t a, uint64_t b, uint64_t c)
{
	return hash_bytes(a, b);
}

__attribute__((noinline)) static uint64_t native_search(uint64_t a, uint64_t b, uint64_t c)
{
	return byte_search(a, b, c);
}

__attribute__((noinline)) static uint64_t native_find(uint64_t a, uint64_t b, uint64_t c)
{
	return byte_find(a, b, c);
}

/* A list whose nodes stand in an order that no processor guesses */
static void list_fill(void)
{
	enum { NODES = 1024, STEP = 389 };
	struct node *nodes = (void *)memory;

	for (unsigned int i = 0; i < NODES; i++)
		nodes[i * STEP % NODES] =
			(struct node){ .next = (uintptr_t)&nodes[(i + 1) * STEP % NODES],
				       .value = i };
}

static void table_fill(void)
{
	struct bucket *table = (void *)memory;

	memset(memory, 0, MEMORY);
	for (uint64_t key = 1; key <= BUCKETS / 2; key++) {
		uint64_t h = key * 0x9e3779b97f4a7c15u, i = (h ^ h >> 32) & (BUCKETS - 1);

		while (table[i].key)
			i = (i + 1) & (BUCKETS - 1);
		table[i] = (struct bucket){ key, key * 3 };
	}
}

static void text_fill(void)
{
	for (size_t i = 0; i < MEMORY; i++)
		memory[i] = (uint8_t)("a line of text that is searched\n"[i % 32]);
}

static const struct test {
	const char *name, *entry;
	void (*fill)(void);
	uint64_t (*native)(uint64_t a, uint64_t b, uint64_t c);
	uint64_t arg, arg2; /* the second and third argument */
	uint64_t steps;
} tests[] = {
	{ "list walk, 8 hops", "walk", list_fill, native_walk, 8, 1000, 8000 },
	{ "list walk, 64 hops", "walk", list_fill, native_walk, 64, 100, 6400 },
	{ "list walk, 1000 hops", "walk", list_fill, native_walk, 1000, 10, 10000 },
	{ "hash table, 2000 look-ups", "table", table_fill, native_table, 2000, 0, 2000 },
	{ "hash of 64 KiB", "bytes", text_fill, native_bytes, 65536, 0, 65536 },
	{ "byte search in 4 KiB", "search", text_fill, native_search, 4096, '~', 4096 },
	{ "byte search in 64 KiB", "search", text_fill, native_search, 65536, '~', 65536 },
	{ "the same, one by one", "find", text_fill, native_find, 65536, '~', 65536 },
	{ "a run that does nothing", "nothing", text_fill, native_nothing, 0, 0, 1 },
};

struct engine {
	struct ebpf_object *obj;
	struct ebpf_run *run;
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t engine_call(struct engine *e, uint32_t entry, const struct test *t)
{
	const struct ebpf_region region = { memory, (uintptr_t)memory, MEMORY, 0, EBPF_MAY_READ };
	struct ebpf_params params = { .entry = entry,
				      .arg = { (uintptr_t)memory, t->arg, t->arg2 },
				      .regions = &region,
				      .count = 1 };
	struct ebpf_result result;

	if (ebpf_run_start(e->run, e->obj, &params) ||
	    ebpf_run_continue(e->run, UINT64_MAX >> 1, &result) != EBPF_DONE) {
		fputs("speed: a program failed\n", stderr);
		exit(1);
	}
	return result.value;
}

/* Nanoseconds for a step; who is NULL for native C */
static double measure(const struct test *t, struct engine *who, uint32_t entry, uint64_t *value)
{
	double begin = now_ns(), end = begin + turn_ms * 1e6, now;
	uint64_t calls = 0;

	do {
		for (int i = 0; i < BATCH; i++)
			*value = who ? engine_call(who, entry, t)
				     : t->native((uintptr_t)memory, t->arg, t->arg2);
		calls += BATCH;
		now = now_ns();
	} while (now < end);
	return (now - begin) / (double)(calls * t->steps);
}

static int test_run(const struct test *t, struct engine engines[2])
{
	double best[3] = { 1e9, 1e9, 1e9 };
	uint64_t value[3];
	uint32_t entry;

	if (ebpf_object_entry(engines[0].obj, t->entry, &entry))
		return 1;
	t->fill();
	for (int turn = 0; turn < TURNS; turn++)
		for (int i = 0; i < 3; i++) {
			double ns = measure(t, i ? &engines[i - 1] : NULL, entry, &value[i]);

			best[i] = ns < best[i] ? ns : best[i];
		}
	printf("%-26s %9.2f %9.2f %9.2f %9.2f %9.1f\n", t->name, best[0], best[1], best[2],
	       best[1] / best[0], best[2] / best[0]);
	return value[0] != value[1] || value[0] != value[2];
}

static void *file_read(const char *name, size_t *len)
{
	FILE *f = fopen(name, "r");
	void *bytes = malloc(MEMORY);

	if (!f || !bytes) {
		perror(name);
		exit(1);
	}
	*len = fread(bytes, 1, MEMORY, f);
	fclose(f);
	return bytes;
}

int main(int argc, char **argv)
{
	struct engine engines[2];
	struct ebpf_error err;
	size_t len;
	void *elf;

	if (argc < 2) {
		fputs("usage: speed OBJECT [MILLISECONDS]\n", stderr);
		return 2;
	}
	turn_ms = argc > 2 ? atof(argv[2]) : turn_ms;
	elf = file_read(argv[1], &len);
	memory = aligned_alloc(4096, MEMORY);
	for (int i = 0; i < 2; i++)
		if (!memory || ebpf_run_create(&engines[i].run) ||
		    ebpf_object_load(elf, len, NULL, i ? EBPF_LOAD_NO_JIT : 0, &engines[i].obj,
				     &err)) {
			fprintf(stderr, "speed: %s\n", err.text);
			return 1;
		}
	printf("%-26s %9s %9s %9s %9s %9s\n", "ns for one step", "native", "JIT", "interpr.",
	       "JIT ratio", "interpr.");
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (test_run(&tests[i], engines)) {
			fprintf(stderr, "speed: %s: different results\n", tests[i].name);
			return 1;
		}
	return 0;
}
