/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The code of helpers, made by bpfgen/. It goes through memory by eight bytes, then by one.
 */
#include "bpfkernel/library.h"

#include <errno.h>
#include <stdlib.h>

struct bpfkernel_library {
	struct bpfgen_code *code[BPFKERNEL_HELPERS_MAX];
	struct bpfkernel_helper helpers[BPFKERNEL_HELPERS_MAX];
	size_t count;
};

/* if r@len < 8 goto @rest; else a whole step is done, @step bytes on */
static void loop_begin(struct bpfgen_code *c, unsigned int again, unsigned int rest)
{
	bpfgen_here(c, again);
	bpfgen_if_imm(c, EBPF_JLT, 3, 8, rest);
}

static void forward(struct bpfgen_code *c, unsigned int to, int32_t step)
{
	bpfgen_alu_imm(c, EBPF_ADD, to, step);
	bpfgen_alu_imm(c, EBPF_ADD, 2, step);
	bpfgen_alu_imm(c, EBPF_SUB, 3, step);
}

/* r3 bytes from r2 to the address in @to, upwards; r0 is changed */
static void copy_up(struct bpfgen_code *c, unsigned int to, unsigned int end)
{
	unsigned int words = bpfgen_label(c), bytes = bpfgen_label(c);

	loop_begin(c, words, bytes);
	bpfgen_load(c, EBPF_DW, 0, 2, 0);
	bpfgen_store(c, EBPF_DW, to, 0, 0);
	forward(c, to, 8);
	bpfgen_goto(c, words);
	bpfgen_here(c, bytes);
	bpfgen_if_imm(c, EBPF_JEQ, 3, 0, end);
	bpfgen_load(c, EBPF_B, 0, 2, 0);
	bpfgen_store(c, EBPF_B, to, 0, 0);
	forward(c, to, 1);
	bpfgen_goto(c, bytes);
}

/* The same from the end on, for a place that lies behind what is copied */
static void copy_down(struct bpfgen_code *c, unsigned int end)
{
	unsigned int words = bpfgen_label(c), bytes = bpfgen_label(c);

	bpfgen_alu(c, EBPF_ADD, 1, 3);
	bpfgen_alu(c, EBPF_ADD, 2, 3);
	loop_begin(c, words, bytes);
	bpfgen_load(c, EBPF_DW, 0, 2, -8);
	bpfgen_store(c, EBPF_DW, 1, -8, 0);
	forward(c, 1, -8);
	bpfgen_alu_imm(c, EBPF_SUB, 3, 16);
	bpfgen_goto(c, words);
	bpfgen_here(c, bytes);
	bpfgen_if_imm(c, EBPF_JEQ, 3, 0, end);
	bpfgen_load(c, EBPF_B, 0, 2, -1);
	bpfgen_store(c, EBPF_B, 1, -1, 0);
	forward(c, 1, -1);
	bpfgen_alu_imm(c, EBPF_SUB, 3, 2);
	bpfgen_goto(c, bytes);
}

static void copy_write(struct bpfgen_code *c)
{
	unsigned int down = bpfgen_label(c), end = bpfgen_label(c);

	bpfgen_alu(c, EBPF_MOV, 4, 1);
	bpfgen_alu(c, EBPF_SUB, 4, 2);
	bpfgen_if(c, EBPF_JLT, 4, 3, down);
	copy_up(c, 1, end);
	bpfgen_here(c, down);
	copy_down(c, end);
	bpfgen_here(c, end);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_exit(c);
}

static void fill_write(struct bpfgen_code *c)
{
	unsigned int words = bpfgen_label(c), bytes = bpfgen_label(c), end = bpfgen_label(c);

	bpfgen_alu_imm(c, EBPF_AND, 2, 0xff);
	bpfgen_constant(c, 4, 0x0101010101010101);
	bpfgen_alu(c, EBPF_MUL, 4, 2);
	loop_begin(c, words, bytes);
	bpfgen_store(c, EBPF_DW, 1, 0, 4);
	forward(c, 1, 8);
	bpfgen_goto(c, words);
	bpfgen_here(c, bytes);
	bpfgen_if_imm(c, EBPF_JEQ, 3, 0, end);
	bpfgen_store(c, EBPF_B, 1, 0, 4);
	forward(c, 1, 1);
	bpfgen_goto(c, bytes);
	bpfgen_here(c, end);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_exit(c);
}

/* Words that differ are looked at byte by byte: the first byte that differs decides. */
static void compare_write(struct bpfgen_code *c)
{
	unsigned int words = bpfgen_label(c), bytes = bpfgen_label(c), end = bpfgen_label(c);

	loop_begin(c, words, bytes);
	bpfgen_load(c, EBPF_DW, 0, 1, 0);
	bpfgen_load(c, EBPF_DW, 4, 2, 0);
	bpfgen_if(c, EBPF_JNE, 0, 4, bytes);
	forward(c, 1, 8);
	bpfgen_goto(c, words);
	bpfgen_here(c, bytes);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_if_imm(c, EBPF_JEQ, 3, 0, end);
	bpfgen_load(c, EBPF_B, 0, 1, 0);
	bpfgen_load(c, EBPF_B, 4, 2, 0);
	bpfgen_alu(c, EBPF_SUB, 0, 4);
	bpfgen_if_imm(c, EBPF_JNE, 0, 0, end);
	forward(c, 1, 1);
	bpfgen_goto(c, bytes);
	bpfgen_here(c, end);
	bpfgen_exit(c);
}

static void find_write(struct bpfgen_code *c)
{
	unsigned int again = bpfgen_label(c), end = bpfgen_label(c);

	bpfgen_alu_imm(c, EBPF_AND, 2, 0xff);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_here(c, again);
	bpfgen_if(c, EBPF_JGE, 0, 3, end);
	bpfgen_load(c, EBPF_B, 4, 1, 0);
	bpfgen_if(c, EBPF_JEQ, 4, 2, end);
	bpfgen_alu_imm(c, EBPF_ADD, 1, 1);
	bpfgen_alu_imm(c, EBPF_ADD, 0, 1);
	bpfgen_goto(c, again);
	bpfgen_here(c, end);
	bpfgen_exit(c);
}

static void output_write(struct bpfgen_code *c)
{
	enum { BLOCK = BPFKERNEL_HELPER_BASE };
	unsigned int fits = bpfgen_label(c), end = bpfgen_label(c);
	int16_t used = offsetof(struct bpfkernel_block, output);

	bpfgen_alu(c, EBPF_MOV, 3, 2);
	bpfgen_alu(c, EBPF_MOV, 2, 1);
	bpfgen_constant(c, BLOCK, BPFKERNEL_BLOCK_ADDR);
	bpfgen_load(c, EBPF_DW, 4, BLOCK, used);
	bpfgen_load(c, EBPF_DW, 0, BLOCK, offsetof(struct bpfkernel_block, output_room));
	bpfgen_alu(c, EBPF_SUB, 0, 4);
	bpfgen_if(c, EBPF_JLE, 3, 0, fits);
	bpfgen_alu_imm(c, EBPF_MOV, 0, -E2BIG);
	bpfgen_exit(c);
	bpfgen_here(c, fits);
	bpfgen_alu(c, EBPF_ADD, BLOCK, 4);
	bpfgen_alu_imm(c, EBPF_ADD, BLOCK, sizeof(struct bpfkernel_block));
	bpfgen_alu(c, EBPF_ADD, 4, 3);
	copy_up(c, BLOCK, end);
	bpfgen_here(c, end);
	bpfgen_constant(c, BLOCK, BPFKERNEL_BLOCK_ADDR);
	bpfgen_store(c, EBPF_DW, BLOCK, used, 4);
	bpfgen_alu(c, EBPF_MOV, 0, 4);
	bpfgen_exit(c);
}

static void choose_write(struct bpfgen_code *c, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned int next = bpfgen_label(c);

		bpfgen_if_imm(c, EBPF_JNE, 1, (int32_t)i, next);
		bpfgen_constant(c, 0, values[i]);
		bpfgen_exit(c);
		bpfgen_here(c, next);
	}
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_exit(c);
}

static void function_write(struct bpfgen_code *c, enum bpfkernel_function what,
			   const uint64_t *values, size_t count)
{
	switch (what) {
	case BPFKERNEL_OUTPUT:
		output_write(c);
		break;
	case BPFKERNEL_COPY:
		copy_write(c);
		break;
	case BPFKERNEL_FILL:
		fill_write(c);
		break;
	case BPFKERNEL_COMPARE:
		compare_write(c);
		break;
	case BPFKERNEL_FIND:
		find_write(c);
		break;
	case BPFKERNEL_CHOOSE:
		choose_write(c, values, count);
		break;
	}
}

int bpfkernel_library_create(struct bpfkernel_library **out)
{
	struct bpfkernel_library *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	*out = l;
	return 0;
}

void bpfkernel_library_destroy(struct bpfkernel_library *l)
{
	for (size_t i = 0; l && i < l->count; i++)
		bpfgen_code_destroy(l->code[i]);
	free(l);
}

int bpfkernel_library_add(struct bpfkernel_library *l, uint32_t id, enum bpfkernel_function what,
			  const uint64_t *values, size_t count)
{
	struct bpfkernel_helper *h = &l->helpers[l->count];
	struct bpfgen_code *c;
	struct bpfgen_error err;
	int ret;

	if (l->count == BPFKERNEL_HELPERS_MAX)
		return -E2BIG;
	ret = bpfgen_code_create(&c);
	if (ret)
		return ret;
	bpfgen_function(c, bpfgen_label(c), "helper");
	function_write(c, what, values, count);
	ret = bpfgen_code_finish(c, &err);
	if (ret) {
		bpfgen_code_destroy(c);
		return ret;
	}
	h->id = id;
	h->insns = bpfgen_code_insns(c, &h->count);
	l->code[l->count++] = c;
	return 0;
}

const struct bpfkernel_helper *bpfkernel_library_helpers(const struct bpfkernel_library *l,
							 size_t *count)
{
	*count = l->count;
	return l->helpers;
}
