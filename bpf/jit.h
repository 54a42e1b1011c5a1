/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_JIT_H
#define BPF_JIT_H

/* What the parts of the JIT for x86-64 share: the finished code, and the code in the making. */

#include "bpf/program.h"
#include "bpf/state.h"
#include "bpf/x86.h"

/* Numbers in run->site that are no site */
#define JIT_ENDED UINT32_MAX
#define JIT_OVER (UINT32_MAX - 1)

/* Where machine code may stop. With rights it wanted a window; else the interpreter goes on. */
struct jit_site {
	uint32_t pc;
	uint32_t refund; /* fuel that was taken for this and what is behind it in the block */
	uint32_t resume; /* where the code begins that is to be tried again */
	int32_t lo;	 /* from the base register */
	uint8_t base, len, rights, window;
};

struct ebpf_jit {
	uint64_t number; /* no other of this process has or had it */
	uint8_t *code;
	size_t size;
	uint32_t *entry;   /* of an instruction: where its code begins, if one can begin there */
	uint32_t *landing; /* of a call: the code behind it */
	struct jit_site *sites;
	uint32_t site_count;
	uint8_t spans[EBPF_SPANS];
	uint8_t window_rights[EBPF_WINDOWS]; /* of each that the code uses */
	uint32_t window_count;
};

struct jit_link {
	size_t at;	 /* in the code */
	uint32_t to;	 /* a site, or an instruction */
	uint32_t refund; /* fuel to give back on the way */
};

struct jit_links {
	struct jit_link *list;
	size_t count, room;
};

/*
 * Register rcx and r9 together hold the host's address of what r<base> + org means, good for all
 * bytes from lo up to hi behind r<base>, if valid.
 */
struct jit_held {
	bool valid;
	unsigned int base, rights;
	int64_t lo, hi, org;
};

/* What is held where several ways meet: kept only if it is the same on all of them */
struct jit_meeting {
	struct jit_held held;
	uint32_t expected, seen; /* jumps that lead here */
	bool differ;
};

/* Instructions that are paid at once */
struct jit_block {
	uint32_t length, last;
};

struct jit_making {
	struct x86 c;
	const struct ebpf_object *obj;
	struct ebpf_jit *jit;
	uint32_t *begin; /* of an instruction: where its code begins */
	uint32_t *paid;	 /* of the first one of a block: where it begins behind the payment */
	struct jit_meeting *meetings;
	struct jit_block *blocks; /* from each instruction on */
	struct jit_links jumps, paid_jumps, exits, refunds;
	struct jit_held held;
	uint8_t window_of[EBPF_WINDOWS]; /* by register and kind: its number, counted from 1 */
	uint32_t charged;		 /* fuel taken from here on: for the block, and ahead */
	uint32_t block;			 /* where the one that was paid last begins */
	size_t sites_room, leave;
};

/* bpf/jit_alu.c */
void jit_alu(struct jit_making *m, const struct ebpf_insn *in);
void jit_compare(struct jit_making *m, const struct ebpf_insn *in);
/* A move and what adds to it, which are one instruction here; no jump leads between them */
bool jit_is_sum(const struct ebpf_object *obj, uint32_t pc);
void jit_sum(struct jit_making *m, const struct ebpf_insn *in);
enum x86_reg jit_reg(unsigned int reg);
/* The register that holds this operand: of r10 its value, which is put into r9 */
enum x86_reg jit_operand(struct jit_making *m, unsigned int reg);
/* Whether the instruction needs rcx or r9, so that nothing can be held in them across it */
bool jit_uses_scratch(const struct ebpf_object *obj, uint32_t pc);
/* bpf/jit_memory.c */
void jit_memory(struct jit_making *m, uint32_t pc);
/* After an instruction that writes a register: is what is held still good? */
void jit_held_update(struct jit_making *m, const struct ebpf_insn *in);
/* bpf/jit_compile.c: a jump to where the run stops at @pc */
void jit_exit(struct jit_making *m, unsigned int condition, const struct jit_site *site);
int jit_compile(struct jit_making *m);

/* rbx points into the run so that the first windows are near, in one byte of displacement */
#define JIT_BIAS ((int32_t)offsetof(struct ebpf_run, window) + 128)
#define JIT_AT(offset) ((struct x86_mem){ X86_RBX, X86_NONE, (int32_t)(offset)-JIT_BIAS })
#define JIT_RUN(field) JIT_AT(offsetof(struct ebpf_run, field))
#define JIT_REG(i) JIT_AT(offsetof(struct ebpf_run, reg) + 8 * (size_t)(i))
#define JIT_T1 X86_RCX
#define JIT_T2 X86_R9
#define JIT_FUEL X86_R11

#endif
