/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFKERNEL_KERNEL_H
#define BPFKERNEL_KERNEL_H

/*
 * Verified programs as code for Linux's own eBPF, on memory in one BPF arena. docs/bpf.md
 *
 * The result is a body without a beginning and an end of its own: whoever appends it to other code
 * decides what kind of program it becomes, and what it does with a result.
 */

#include "bpf/run.h"
#include "bpfgen/code.h"

enum {
	BPFKERNEL_WINDOWS_MAX = 16,
	BPFKERNEL_HELPERS_MAX = 16,
	BPFKERNEL_HELPER_BASE = 5,
	BPFKERNEL_DATA_MAX = 4096,   /* bytes of .data and .bss */
	BPFKERNEL_FRAME_OWN = 128,   /* bytes at r10 that the body leaves to the code around it */
	BPFKERNEL_SLOTS_MAX = 40000, /* of one body */
};

enum bpfkernel_flag {
	BPFKERNEL_IN_BLOCK = 1, /* @place counts from the block's beginning */
	BPFKERNEL_HELPERS =
		2, /* for the code of helpers alone, by register BPFKERNEL_HELPER_BASE */
};

/* Memory that the program sees at @addr. addr and place leave the same remainder by 8. */
struct bpfkernel_window {
	uint64_t addr;
	uint32_t size, place;	    /* the place counts from the arena's beginning */
	unsigned int rights, flags; /* enum ebpf_right, enum bpfkernel_flag */
	uint32_t length_at; /* in the block: where a shorter length stands (64 bits), or 0 */
};

/*
 * What stands for a helper: a function like those of programs, without calls and r10. Its accesses
 * are checked like the program's, and end the run in the same way, at the instruction that called.
 * What it has for itself it reaches by BPFKERNEL_HELPER_BASE, which must not be an address that the
 * program gave.
 */
struct bpfkernel_helper {
	uint32_t id;
	const struct ebpf_insn *insns;
	size_t count;
};

/*
 * A block is memory of one run, in the arena: this head, then the stack of the program, then its
 * data. Two runs at once have two blocks. Stack and data are zero when a run begins, and the body
 * leaves them so: nothing that a program had there stays for the next one.
 */
struct bpfkernel_block {
	uint64_t arg[5]; /* r1 to r5 */
	uint64_t fuel;	 /* how much there is; behind the run: what is left, or negative */
	uint64_t value;	 /* of EBPF_DONE */
	uint64_t addr;	 /* of EBPF_ADDRESS, EBPF_RIGHTS, EBPF_ALIGN */
	uint32_t pc, status;
	uint32_t len, rights;
	uint64_t output, output_room; /* bytes, for helpers; those are behind the block */
	uint64_t args_len;
	uint64_t own[4]; /* for the code around the body */
	uint8_t stack[EBPF_DEPTH_MAX * EBPF_FRAME_SIZE];
	uint8_t data[BPFKERNEL_DATA_MAX];
};

struct bpfkernel_params {
	const struct ebpf_object *object;
	uint32_t entry; /* from ebpf_object_entry() */
	uint64_t arena; /* where it begins; 64 KiB before and behind it are in the same 4 GiB */
	const struct bpfkernel_window *windows; /* the first that serves is the quickest */
	size_t window_count;
	const struct bpfkernel_helper *helpers;
	size_t helper_count;
	uint32_t constants; /* where in the arena .rodata and what .data begins with were copied */
	uint32_t data;	    /* to, 8 bytes aligned */
};

/* Copies .rodata and the beginning of .data; *size: bytes of both, with @to NULL too */
void bpfkernel_data_copy(const struct ebpf_object *object, uint8_t *to, size_t *constants_size,
			 size_t *size);
/* dst = the kernel's pointer to the place in the arena whose address is in src */
void bpfkernel_cast(struct bpfgen_code *c, unsigned int dst, unsigned int src);
/*
 * Appends the body. It begins with the block's address in r1, and ends behind its last instruction
 * with the block in r1, as the kernel's pointer, and its status in r0. -EOPNOTSUPP: something that
 * cannot go into the kernel, -E2BIG: too long for it; with @err filled in. -ENOMEM
 */
int bpfkernel_emit(struct bpfgen_code *c, const struct bpfkernel_params *params,
		   struct ebpf_error *err);

#endif
