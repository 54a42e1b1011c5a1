/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who executes operations: in the simplest shape the player itself; else threads of this process,
 * or of this and another one, that wait for an operation in shared memory and say when it is
 * done. That a thread sleeps in a call is read off /proc.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "op.h"

#define LIMIT_MS 10000

struct arena *arena;

static void futex_wait(uint32_t *at, uint32_t value, long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	syscall(SYS_futex, at, FUTEX_WAIT, value, ms < 0 ? NULL : &ts, NULL, 0);
}

static void state_set(struct box *box, enum box_state state)
{
	__atomic_store_n(&box->state, state, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &box->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint32_t state_of(const struct box *box)
{
	return __atomic_load_n(&box->state, __ATOMIC_SEQ_CST);
}

static void *work(void *arg)
{
	struct box *box = arg;
	size_t at = (size_t)(box - &arena->box[0][0][0]);

	box->tid = (int)syscall(SYS_gettid);
	for (;;) {
		while (state_of(box) != BOX_POSTED)
			futex_wait(&box->state, state_of(box) == BOX_DONE ? BOX_DONE : BOX_IDLE,
				   -1);
		__atomic_store_n(&box->state, BOX_RUNNING, __ATOMIC_SEQ_CST);
		call_run((unsigned int)(at / (PROCS * BOXES)), box);
		state_set(box, BOX_DONE);
	}
	return NULL;
}

static void threads_start(unsigned int proc)
{
	for (unsigned int w = 0; w < WORLDS; w++)
		for (unsigned int t = 0; t < BOXES; t++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, work, &arena->box[w][proc][t]))
				abort();
		}
}

void workers_start(enum shape shape)
{
	arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (arena == MAP_FAILED)
		abort();
	arena->shape = shape;
	if (shape == SHAPE_ONE)
		return;
	/* Before there is any thread or socket */
	if (shape == SHAPE_TWO && fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		threads_start(1);
		for (;;)
			pause();
	}
	threads_start(0);
}

struct box *box_post(unsigned int world, unsigned int proc, unsigned int thread,
		     const struct op *op)
{
	struct box *box = &arena->box[world][proc][thread];

	box->op = *op;
	if (arena->shape == SHAPE_ONE) {
		call_run(world, box);
		box->state = BOX_DONE;
	} else {
		state_set(box, BOX_POSTED);
	}
	return box;
}

bool box_done(const struct box *box)
{
	return state_of(box) == BOX_DONE;
}

/* Field 3 of /proc/TID/stat; the name before it, ours, has no blank */
static bool asleep(const struct box *box)
{
	char path[64], text[256] = "", *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", box->tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

bool box_wait(struct box *box, bool may_sleep)
{
	long limit = now_ms() + LIMIT_MS;

	for (;;) {
		uint32_t state = state_of(box);

		if (state == BOX_DONE)
			return true;
		if (may_sleep && state == BOX_RUNNING && asleep(box))
			return true;
		if (now_ms() > limit)
			return false;
		futex_wait(&box->state, state, may_sleep || state == BOX_POSTED ? 1 : 100);
	}
}

const struct outcome *box_run(unsigned int world, unsigned int proc, unsigned int thread,
			      const struct op *op)
{
	struct box *box = box_post(world, proc, thread, op);

	if (!box_wait(box, false)) {
		printf("a call of the player hangs: %s\n", op_name(op->kind));
		fflush(stdout);
		_exit(1);
	}
	return &box->out;
}
