/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_STATE_H
#define BPF_STATE_H

/* The inside of a run. Machine code knows these structs by their offsets. */

#include "bpf/run.h"

struct ebpf_jit;

/* Lengths that machine code checks at once; those behind 8 are neighbours in one check */
enum { EBPF_SPANS = 8, EBPF_SPAN_MAX = 64, EBPF_WINDOWS = EBPF_FP * 3, EBPF_OWN_REGIONS = 3 };

/*
 * A window: a part of a region whose size is a power of two, or a region in the room of one.
 * Machine code has the one that served it last for each register and kind of access. host + (n &
 * mask) is inside for any n, so also for one that a mispredicted check let pass.
 */
struct ebpf_window {
	uint64_t addr, mask;
	uint8_t *host;
	uint64_t limit[EBPF_SPANS]; /* offsets below may be the first of that many bytes */
};

/* What a caller inside the program gets back. Machine code's own return addresses are elsewhere. */
struct ebpf_frame {
	uint64_t saved[4]; /* r6 to r9 */
	uint64_t back;	   /* the instruction behind the call */
	uint64_t native;   /* its machine code, filled in only to go back into machine code */
};

struct ebpf_run {
	uint64_t reg[EBPF_REGS];
	uint64_t fuel;
	uint32_t pc, site; /* where machine code stopped, as a number of its table of sites */
	void *native_sp;
	uint64_t target, scratch;
	struct ebpf_frame *frame;     /* the first that is free */
	struct ebpf_frame *frame_end; /* behind the last */
	uint8_t *host_frame;	      /* the end of the active function's stack frame */
	uint64_t frame_shift;	      /* what leads from the host's address of the stack to ours */
	uint8_t *data;
	struct ebpf_window window[EBPF_WINDOWS];

	/* The number of the region that each was filled with last: a guess, also in the next run */
	size_t window_region[EBPF_WINDOWS];
	uint64_t windows_of; /* the machine code that they are filled for, by its number; or 0 */
	const struct ebpf_object *obj;
	struct ebpf_region region[EBPF_OWN_REGIONS + EBPF_REGIONS_MAX]; /* in the order of addr */
	size_t region_count, region_last;
	struct ebpf_result result;
	bool over;
	void *cookie;
	uint8_t *output;
	size_t output_room, output_used;
	uint64_t owed; /* fuel that a helper took and the run did not have */
	size_t data_room;
	struct ebpf_frame frames[EBPF_DEPTH_MAX];
	uint8_t room[EBPF_RUN_ROOM] __attribute__((aligned(64)));
	uint8_t stack[EBPF_DEPTH_MAX * EBPF_FRAME_SIZE] __attribute__((aligned(64)));
};

/* bpf/memory.c */
enum ebpf_status ebpf_memory_find(struct ebpf_run *run, uint64_t addr, uint64_t len,
				  unsigned int rights, void **out);
/* The regions of the last run, if the windows are of this code */
struct ebpf_before {
	const struct ebpf_region *regions;
	size_t count;
};

/*
 * Fills @count windows before a run begins: each with the region that it had in the last run if
 * that allows its rights, else with the first that does. The stack allows everything. One whose
 * region is as it was stays. False: all have stayed
 */
bool ebpf_windows_guess(struct ebpf_run *run, const uint8_t *rights, size_t count,
			const uint8_t spans[EBPF_SPANS], const struct ebpf_before *before);
/* A load that runs ahead of the stores to a window could see half of it; this keeps it behind */
void ebpf_window_settle(void);
bool ebpf_window_fill(struct ebpf_run *run, struct ebpf_window *window, uint64_t addr, uint64_t len,
		      unsigned int rights, const uint8_t spans[EBPF_SPANS]);

/* bpf/alu.c: the value of dst behind the instruction */
uint64_t ebpf_alu(const struct ebpf_insn *in, uint64_t dst, uint64_t src);
bool ebpf_taken(const struct ebpf_insn *in, uint64_t dst, uint64_t src);
/* bpf/atomic.c: @at is aligned */
void ebpf_atomic(const struct ebpf_insn *in, void *at, uint64_t reg[EBPF_REGS]);

/* bpf/interp.c: the run ends as the result says, or, at an instruction of @stops, goes on there */
enum { EBPF_STOPPED = 100 };
int ebpf_interpret(struct ebpf_run *run, const uint32_t *stops);
/* Calls the helper: 0, or the run is over */
int ebpf_helper_call(struct ebpf_run *run, uint32_t index);

/* bpf/jit.c, or jit-fallback.c: -ENOTSUP; -EPERM where no code can be mapped */
int ebpf_jit_create(const struct ebpf_object *obj, struct ebpf_jit **out);
void ebpf_jit_destroy(struct ebpf_jit *jit);
size_t ebpf_jit_size(const struct ebpf_jit *jit);
/* Makes a run forget the regions of an earlier one: @count, as they were, at @before */
void ebpf_jit_reset(const struct ebpf_jit *jit, struct ebpf_run *run,
		    const struct ebpf_region *before, size_t count);
enum ebpf_status ebpf_jit_run(const struct ebpf_jit *jit, struct ebpf_run *run);

#endif
