/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_CODE_H
#define BPFGEN_CODE_H

/*
 * eBPF code that is made at run time, one instruction after another, with labels for what jumps
 * and calls lead to. docs/active-code.md
 *
 * Registers are numbers, 0 to 10. Nothing that appends returns an error: the first one is kept, and
 * bpfgen_code_finish() tells it. Operations are those of bpf/insn.h.
 */

#include <stdint.h>

#include "bpf/object.h"
#include "bpfgen/error.h"

struct bpfgen_code;

int bpfgen_code_create(struct bpfgen_code **out);
void bpfgen_code_destroy(struct bpfgen_code *c);

/* A new label, which has no place yet */
unsigned int bpfgen_label(struct bpfgen_code *c);
/* The place of @label is here, before the next instruction */
void bpfgen_here(struct bpfgen_code *c, unsigned int label);
/*
 * A function begins here. With a name it can be run; a name is at most 63 bytes long. The first
 * function is the one that bpfgen_code_insns() and an object's NULL entry begin with.
 */
void bpfgen_function(struct bpfgen_code *c, unsigned int label, const char *name);

/* Any instruction that does not jump */
void bpfgen_insn(struct bpfgen_code *c, struct ebpf_insn in);
/* dst = dst @op src, of 64 bits; EBPF_MOV: dst = src */
void bpfgen_alu(struct bpfgen_code *c, enum ebpf_alu op, unsigned int dst, unsigned int src);
void bpfgen_alu_imm(struct bpfgen_code *c, enum ebpf_alu op, unsigned int dst, int32_t imm);
/* EBPF_DIV and EBPF_MOD of signed numbers */
void bpfgen_signed(struct bpfgen_code *c, enum ebpf_alu op, unsigned int dst, unsigned int src);
/* dst = @value, in one slot or two */
void bpfgen_constant(struct bpfgen_code *c, unsigned int dst, uint64_t value);
/* dst = the @size at src + off; the signed one extends its sign (not EBPF_DW) */
void bpfgen_load(struct bpfgen_code *c, enum ebpf_size size, unsigned int dst, unsigned int src,
		 int16_t off);
void bpfgen_load_signed(struct bpfgen_code *c, enum ebpf_size size, unsigned int dst,
			unsigned int src, int16_t off);
/* The @size at dst + off = src */
void bpfgen_store(struct bpfgen_code *c, enum ebpf_size size, unsigned int dst, int16_t off,
		  unsigned int src);

void bpfgen_goto(struct bpfgen_code *c, unsigned int label);
/* if dst @op src goto label */
void bpfgen_if(struct bpfgen_code *c, enum ebpf_jump op, unsigned int dst, unsigned int src,
	       unsigned int label);
void bpfgen_if_imm(struct bpfgen_code *c, enum ebpf_jump op, unsigned int dst, int32_t imm,
		   unsigned int label);
/* Any instruction that goes to @label or on, such as one that compares 32 bits */
void bpfgen_branch(struct bpfgen_code *c, struct ebpf_insn in, unsigned int label);
void bpfgen_call(struct bpfgen_code *c, unsigned int label);
void bpfgen_call_helper(struct bpfgen_code *c, uint32_t id);
void bpfgen_exit(struct bpfgen_code *c);

/* How many instructions there are at least, for those who have a limit of their own */
size_t bpfgen_code_size(const struct bpfgen_code *c);
/*
 * Gives labels their places and jumps their distances; nothing can be appended afterwards.
 * -EINVAL: a label without a place or with two, no such register, no function at the beginning;
 * -E2BIG: more than EBPF_INSNS_MAX instructions; -ENOMEM
 */
int bpfgen_code_finish(struct bpfgen_code *c, struct bpfgen_error *err);

/* --- of code that is finished ------------------------------------------------------------------*/

/* For ebpf_object_assemble(); they live as long as @c */
const struct ebpf_insn *bpfgen_code_insns(const struct bpfgen_code *c, size_t *count);
/* An ELF file that ebpf_object_load() reads, here or at a peer; to be freed with free() */
int bpfgen_code_elf(const struct bpfgen_code *c, void **elf, size_t *len);
/* That file as an object of this process; errors are those of ebpf_object_load() */
int bpfgen_code_object(const struct bpfgen_code *c, const struct ebpf_helpers *helpers,
		       unsigned int flags, struct ebpf_object **out, struct ebpf_error *err);

#endif
