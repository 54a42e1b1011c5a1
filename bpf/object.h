/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_OBJECT_H
#define BPF_OBJECT_H

/*
 * A program that was loaded and verified. It never changes, so any number of threads may run it at
 * once, each with a run of its own (bpf/run.h). docs/bpf.md says what programs may do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/insn.h"

struct ebpf_object;
struct ebpf_run;

/* Limits of one object */
enum {
	EBPF_INSNS_MAX = 1 << 16,
	EBPF_CONSTANTS_MAX = 16 << 20, /* bytes of .rodata, all sections of that kind */
	EBPF_DATA_MAX = 1 << 20,       /* bytes of .data and .bss; each run has a copy */
	EBPF_FRAME_SIZE = 512,	       /* the stack of one function */
	EBPF_DEPTH_MAX = 8,	       /* functions that are active at once, the first included */
};

/* Where the program sees its own memory. Regions of the caller lie below EBPF_OWN_ADDR. */
#define EBPF_OWN_ADDR 0x8000000000000000u
#define EBPF_STACK_ADDR 0x8000000100000000u
#define EBPF_CONSTANTS_ADDR 0x8000000200000000u
#define EBPF_DATA_ADDR 0x8000000300000000u

/*
 * What a program may call. @call gets r1 to r5 and gives r0 through @result. A negative errno
 * ends the program with EBPF_HELPER. Programs name a helper by @id, or by @name as an undefined
 * function.
 */
struct ebpf_helper {
	const char *name;
	uint32_t id;
	uint32_t args; /* how many of r1 to r5 must be initialised */
	int (*call)(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result);
};

struct ebpf_helpers {
	const struct ebpf_helper *list;
	size_t count;
};

/* A place in the source, by the object's own line information */
struct ebpf_line {
	const char *file; /* "" where nothing is known; lives as long as the object */
	const char *text; /* the line itself, or "" */
	unsigned int line, column;
};

#define EBPF_NO_PC UINT32_MAX

/* Why an object was refused */
struct ebpf_error {
	uint32_t pc;	/* the instruction, or EBPF_NO_PC */
	char text[400]; /* one line: the reason, then instruction and source line if there is one */
};

enum ebpf_load {
	EBPF_LOAD_NO_JIT = 1, /* interpret, as where there is no JIT or code cannot be mapped */
};

/*
 * Loads an ELF object as clang -target bpf makes it. -ENOEXEC: no such object; -EINVAL: refused by
 * the verifier; -E2BIG: over a limit; both with @err filled in. @helpers must outlive the object.
 */
int ebpf_object_load(const void *elf, size_t len, const struct ebpf_helpers *helpers,
		     unsigned int flags, struct ebpf_object **out, struct ebpf_error *err);
/* The same for instructions that were made at run time; the one function is called "main" */
int ebpf_object_assemble(const struct ebpf_insn *insns, size_t count,
			 const struct ebpf_helpers *helpers, unsigned int flags,
			 struct ebpf_object **out, struct ebpf_error *err);
/* No run of it may be under way */
void ebpf_object_destroy(struct ebpf_object *obj);

/* Where the function begins that can be run under this name; NULL: the first. -ENOENT */
int ebpf_object_entry(const struct ebpf_object *obj, const char *name, uint32_t *pc);
/* The name of entry number @i, or NULL behind the last */
const char *ebpf_object_entry_name(const struct ebpf_object *obj, size_t i);
bool ebpf_object_has_jit(const struct ebpf_object *obj);
/* Bytes of machine code; 0 without JIT */
size_t ebpf_object_code_size(const struct ebpf_object *obj);
const struct ebpf_insn *ebpf_object_insns(const struct ebpf_object *obj, size_t *count);
/* What is known of the source of an instruction */
void ebpf_object_line(const struct ebpf_object *obj, uint32_t pc, struct ebpf_line *line);

/*
 * One instruction in words, as LLVM's disassembler writes it. @next is the slot behind it, which
 * only a 64-bit constant uses. Returns @text.
 */
const char *ebpf_insn_text(const struct ebpf_insn *in, const struct ebpf_insn *next, char *text,
			   size_t room);

#endif
