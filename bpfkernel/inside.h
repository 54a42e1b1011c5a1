/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFKERNEL_INSIDE_H
#define BPFKERNEL_INSIDE_H

/* The inside of the rewriter. Registers r0 to r9 are those of the program. */

#include <stddef.h>

#include "bpf/program.h"
#include "bpfkernel/kernel.h"

/*
 * What is translated: the object's instructions, and behind them those of helpers. @callee: where
 * the function begins that a call leads to, NO_CALL where there is none.
 */
struct kernel_unit {
	const struct ebpf_object *object;
	struct ebpf_insn *insns;
	uint32_t count;
	uint32_t *callee, *function;
	uint16_t *live; /* bits of registers that may be read from this instruction on */
	bool *used;	/* of a function: the entry leads to it */
	bool *wanted;	/* of a function: some caller reads its r0 */
	uint32_t *head; /* instructions of the longest loop that begins here, or 0 */
};

#define NO_CALL UINT32_MAX

enum { KERNEL_STACK_WORDS = EBPF_DEPTH_MAX * EBPF_FRAME_SIZE / 8 };

/* Slots of the kernel's stack frame, as offsets from r10 */
enum {
	SLOT_BLOCK = -BPFKERNEL_FRAME_OWN - 8,
	SLOT_ZERO = SLOT_BLOCK - 8, /* 0, but the kernel's verifier does not know that */
	SLOT_FUEL = SLOT_ZERO - 8,
	SLOT_FIRST = SLOT_FUEL - 8, /* where a register waits that is needed for something else */
	SLOT_SECOND = SLOT_FIRST - 8,
	SLOT_SAVED = SLOT_SECOND - 8, /* r6 to r9 of those who call, downwards */
};

/* An access whose address is not in the first window; written behind everything else */
struct kernel_tail {
	struct ebpf_insn in;
	uint32_t pc; /* for whoever reads the error */
	bool helper;
	unsigned int x; /* the register that gets the place */
	uint32_t free;	/* bits of registers that may be changed */
	int first;	/* the window that was tried, or -1 */
	int16_t disp;	/* what the access adds to x */
	unsigned int slow, hit, misaligned;
};

struct kernel_emit {
	struct bpfgen_code *c;
	const struct bpfkernel_params *p;
	struct ebpf_error *err;
	struct kernel_unit unit;
	struct kernel_tail *tails;
	size_t tail_count, tail_room;
	struct kernel_stop { /* the end of a run that has nothing to do with memory */
		unsigned int label;
		uint32_t pc;
		enum ebpf_status status;
	} * stops;
	size_t stop_count, stop_room;
	unsigned int fuel_reg; /* or EBPF_FP: the fuel is in its slot */
	unsigned int depth;
	uint32_t at; /* the object's instruction for errors; that of the call in a helper */
	bool in_helper;
	unsigned int done, fail_memory, fail_plain;
	bool anywhere; /* some access may be to any address, also to the stack */
	uint64_t stored[KERNEL_STACK_WORDS / 64]; /* words of the stack that are stored to; bits */
	struct bpfkernel_window windows[BPFKERNEL_WINDOWS_MAX + 4];
	size_t window_count;
};

/* bpfkernel/unit.c */
int kernel_unit_make(struct kernel_unit *u, const struct bpfkernel_params *p,
		     struct ebpf_error *err);
void kernel_unit_free(struct kernel_unit *u);
/* Bits of the registers that an instruction reads and writes; calls aside */
uint32_t kernel_reads(const struct ebpf_insn *in);
uint32_t kernel_writes(const struct ebpf_insn *in);

/* bpfkernel/reg.c */
/*
 * A register out of @free, or one that is not of @busy and is put into its slot: *spilled tells
 * that it has to be taken from there again
 */
unsigned int kernel_scratch(struct kernel_emit *e, uint32_t free, uint32_t busy, int slot,
			    bool *spilled);
/* Registers that may be changed at @pc: nobody reads them, nor does the instruction itself */
uint32_t kernel_free_regs(const struct kernel_emit *e, uint32_t pc);
/* The number that r10 is for the program */
uint64_t kernel_frame(const struct kernel_emit *e);
/* A number that the kernel's verifier does not know. @free, @busy: as of kernel_scratch() */
void kernel_number(struct kernel_emit *e, unsigned int dst, uint64_t n, uint32_t free,
		   uint32_t busy);

/* bpfkernel/access.c */
int kernel_access(struct kernel_emit *e, uint32_t pc);
/* Everything that accesses jump to when they fail or are not quick */
void kernel_tails(struct kernel_emit *e);

#endif
