/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One object that several threads run at once, each with a run of its own, in memory that they
 * share by atomics; meanwhile another thread loads objects and destroys them.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "bpf/run.h"
#include "tests/bpf/assemble.h"
#include "tests/tap.h"

enum { RUNNERS = 3, RUNS = 200, TURNS = 50, ADDR = 0x1000 };

static uint64_t counter __attribute__((aligned(8)));
static atomic_int failures, running;

/* Adds 1 to the counter, TURNS times; gives what it has on its own stack */
static const struct ebpf_insn program[] = {
	ST(EBPF_DW, 10, -8, 0),
	MOV(3, TURNS),
	MOV(2, 1),
	ATOMIC(EBPF_DW, EBPF_ADD | EBPF_FETCH, 1, 2, 0),
	MOV(2, 1),
	ATOMIC(EBPF_DW, EBPF_ADD, 10, 2, -8),
	ADD(3, -1),
	JK(EBPF_JNE, 3, 0, -6),
	LDX(EBPF_DW, 0, 10, -8),
	EXIT,
};
enum { PROGRAM_LENGTH = sizeof(program) / sizeof(program[0]) };

static void *runs(void *arg)
{
	const struct ebpf_region region = { &counter, ADDR, 8, 0, EBPF_MAY_ATOMIC };
	const struct ebpf_params params = { .arg = { ADDR }, .regions = &region, .count = 1 };
	struct ebpf_result result;
	struct ebpf_run *run;

	if (ebpf_run_create(&run))
		return NULL;
	for (int i = 0; i < RUNS; i++) {
		if (ebpf_run_start(run, arg, &params))
			failures++;
		while (ebpf_run_continue(run, 77, &result) == EBPF_FUEL)
			;
		failures += result.status != EBPF_DONE || result.value != TURNS;
	}
	ebpf_run_destroy(run);
	running--;
	return NULL;
}

static void *loads(void *arg)
{
	while (running) {
		struct ebpf_object *obj = NULL;

		if (ebpf_object_assemble(program, PROGRAM_LENGTH, NULL, 0, &obj, NULL))
			failures++;
		ebpf_object_destroy(obj);
	}
	return NULL;
}

static bool together(unsigned int flags)
{
	struct ebpf_object *obj = NULL;
	pthread_t threads[RUNNERS + 1];

	counter = 0;
	running = RUNNERS;
	if (ebpf_object_assemble(program, PROGRAM_LENGTH, NULL, flags, &obj, NULL))
		return false;
	for (int i = 0; i < RUNNERS; i++)
		pthread_create(&threads[i], NULL, runs, obj);
	pthread_create(&threads[RUNNERS], NULL, loads, NULL);
	for (int i = 0; i <= RUNNERS; i++)
		pthread_join(threads[i], NULL);
	ebpf_object_destroy(obj);
	return !failures && counter == (uint64_t)RUNNERS * RUNS * TURNS;
}

int main(void)
{
	tap_case(together(EBPF_LOAD_NO_JIT), "by the interpreter");
	tap_case(together(0), "by machine code");
	return tap_finish();
}
