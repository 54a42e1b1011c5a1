/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PROGRAM_H
#define BPF_PROGRAM_H

/* The inside of an object, which the loader fills, the verifier judges and the engines read. */

#include <errno.h>
#include <stdarg.h>

#include "bpf/object.h"

struct ebpf_jit;

struct ebpf_entry {
	char *name;
	uint32_t pc;
};

/* From instruction @pc on, in the order of pc */
struct ebpf_lineinfo {
	uint32_t pc;
	uint32_t file, text; /* offsets in strings */
	uint32_t line, column;
};

/* What the verifier knows of the address of a memory instruction */
enum ebpf_place {
	EBPF_ANYWHERE,	   /* checked when it runs */
	EBPF_IN_FRAME,	   /* always the same place of the own stack frame, inside */
	EBPF_IN_CONSTANTS, /* always the same place of .rodata, inside */
	EBPF_IN_DATA,	   /* the same for .data and .bss */
};

struct ebpf_fact {
	uint8_t place; /* enum ebpf_place */
	bool reached;
	bool start;  /* of a function */
	bool target; /* of a jump, or behind a call */
	int32_t at;  /* offset in the place; in a frame from its end, so negative */
};

struct ebpf_object {
	struct ebpf_insn *insns;
	struct ebpf_fact *facts;
	uint32_t count;
	const struct ebpf_helpers *helpers;
	struct ebpf_entry *entries;
	size_t entry_count;
	uint8_t *constants, *data; /* what data begins with, .bss included */
	size_t constants_size, data_size;
	struct ebpf_lineinfo *lines;
	size_t line_count;
	uint32_t frames; /* how many functions can be active at once */
	char *strings;	 /* always ends with a NUL */
	size_t strings_size;
	struct ebpf_jit *jit;
};

/* bpf/elf.c: everything but facts and jit */
int ebpf_elf_read(struct ebpf_object *obj, const void *elf, size_t len, struct ebpf_error *err);
/* bpf/structure.c: each instruction by itself, jumps and functions */
int ebpf_structure_check(struct ebpf_object *obj, struct ebpf_error *err);
/* bpf/flow.c: what each register and the stack hold, on all ways */
int ebpf_flow_check(struct ebpf_object *obj, struct ebpf_error *err);

/* The helper with this id, or -1 */
int ebpf_helper_find(const struct ebpf_object *obj, int32_t id);
/* Fills @err in, with the instruction and its line, and returns @error */
int ebpf_refuse(const struct ebpf_object *obj, struct ebpf_error *err, int error, uint32_t pc,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
