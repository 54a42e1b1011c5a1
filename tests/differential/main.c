/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line of the differential test, which runs under `warpsock run --all --mode on`:
 *
 *	differential SHAPE SEED OPERATIONS    programs of SEED, SEED + 1 ... for so many operations
 *	differential SHAPE SEED only I,J,...  one program, only these operations of it
 *
 * SHAPE: one (one thread), threads (three of them), two (the ends in two processes).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "play.h"

static const char *const shapes[] = { "one", "threads", "two" };

static int shape_of(const char *name)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(name, shapes[i]))
			return i;
	fprintf(stderr, "differential: no such shape: %s\n", name);
	exit(2);
}

/* A hanging thread must not hold up the end, nor a connection that will never be over */
static void leave(int status)
{
	fflush(stdout);
	syscall(SYS_exit_group, status);
}

static void listen_all(void)
{
	unsigned int procs = arena->shape == SHAPE_TWO ? 2 : 1;

	for (unsigned int i = 0; i < WORLDS * procs; i++) {
		struct op op = { .kind = OP_LISTEN, .slot = (uint8_t)(i % procs) };

		if (box_run(i / procs, i % procs, OBSERVER, &op)->ret) {
			printf("no listener\n");
			leave(1);
		}
	}
}

static bool *only_parse(char *list, unsigned int n)
{
	bool *only = calloc(n, sizeof(*only));

	for (char *p = strtok(list, ","); only && p; p = strtok(NULL, ","))
		if ((unsigned int)atoi(p) < n)
			only[atoi(p)] = true;
	return only;
}

static void one(enum shape shape, uint64_t seed, char *list)
{
	struct program p;

	program_generate(&p, seed, shape);
	leave(play(&p, only_parse(list, p.n), true) < 0);
}

static void many(enum shape shape, uint64_t seed, long want)
{
	long sum = 0, programs = 0;

	for (; sum < want; seed++, programs++) {
		struct program p;
		long n;

		program_generate(&p, seed, shape);
		n = play(&p, NULL, false);
		program_free(&p);
		if (n < 0) {
			printf("FAILED %s %lu\n", shapes[shape], seed);
			leave(1);
		}
		sum += n;
	}
	exceptions_print();
	printf("%ld operations in %ld programs, the last seed %lu\n", sum, programs, seed - 1);
	leave(0);
}

int main(int argc, char **argv)
{
	enum shape shape = argc >= 4 ? (enum shape)shape_of(argv[1]) : SHAPE_ONE;

	if (argc < 4) {
		fprintf(stderr, "usage: differential SHAPE SEED OPERATIONS | only LIST\n");
		return 2;
	}
	calls_init();
	workers_start(shape);
	listen_all();
	if (argc == 5 && !strcmp(argv[3], "only"))
		one(shape, strtoull(argv[2], NULL, 10), argv[4]);
	many(shape, strtoull(argv[2], NULL, 10), atol(argv[3]));
}
