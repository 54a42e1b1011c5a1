/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_INSIDE_H
#define BPFGEN_INSIDE_H

/* The inside of code, which bpfgen/code.c fills and bpfgen/elf_write.c reads. */

#include "bpfgen/code.h"

enum { BPFGEN_NAME_MAX = 63 };

enum bpfgen_kind { BPFGEN_PLAIN, BPFGEN_BRANCH, BPFGEN_GOTO, BPFGEN_CALL };

/* One instruction; a branch that leads too far for 16 bits takes three slots */
struct bpfgen_item {
	struct ebpf_insn in;
	uint8_t kind;
	bool far;
	uint32_t label;
	uint32_t pc;
};

struct bpfgen_entry {
	char name[BPFGEN_NAME_MAX + 1]; /* "": cannot be run */
	uint32_t label;
};

struct bpfgen_code {
	struct bpfgen_item *items;
	size_t count, room;
	uint32_t *labels; /* the item that a label stands before */
	size_t label_count, label_room;
	struct bpfgen_entry *entries;
	size_t entry_count, entry_room;
	struct ebpf_insn *insns;
	uint32_t insn_count;
	int error;
	const char *why;
};

/* Where a function begins in finished code */
uint32_t bpfgen_entry_pc(const struct bpfgen_code *c, const struct bpfgen_entry *e);
/* Makes room for one more of @size bytes in *list; false: no memory */
bool bpfgen_grow(void **list, size_t *room, size_t count, size_t size);

#endif
