/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two kinds of code become one object: the walk, which clang has made, and functions that are made
 * of a pattern, a condition and an expression at run time. The walk calls these as if they were
 * helpers; the calls are turned to them. All other instructions stay where they are to one another,
 * so their jumps stay right.
 */
#include "walk_code.h"

#include <errno.h>
#include <stdio.h>
#include <warp/active_bpf.h>

#include "walk.h"

/* The object that the build made of walk.bpf.c */
extern const unsigned char walk_object[], walk_object_end[];

static const struct ebpf_helper list[] = {
	{ "warp_output", WARP_ACTIVE_HELPER_OUTPUT, 2, NULL },
	{ "warp_region", WARP_ACTIVE_HELPER_REGION, 1, NULL },
	{ "warp_copy", WARP_ACTIVE_HELPER_COPY, 3, NULL },
	{ "warp_fill", WARP_ACTIVE_HELPER_FILL, 3, NULL },
	{ "warp_compare", WARP_ACTIVE_HELPER_COMPARE, 3, NULL },
	{ "warp_find", WARP_ACTIVE_HELPER_FIND, 3, NULL },
	{ "warp_lock", WARP_ACTIVE_HELPER_LOCK, 1, NULL },
	{ "warp_unlock", WARP_ACTIVE_HELPER_UNLOCK, 1, NULL },
	{ "judge", WALK_JUDGE, 1, NULL },
	{ "lines", WALK_LINES, 2, NULL },
	{ "value", WALK_VALUE, 1, NULL },
};

static const struct ebpf_helpers helpers = { list, sizeof(list) / sizeof(*list) };

static bool calls(const struct ebpf_insn *in, int32_t id)
{
	return in->code == (EBPF_JMP | EBPF_CALL) && !(in->regs >> 4) && in->imm == id;
}

/* Labels of the functions that are made */
struct made {
	unsigned int judge, lines, value;
};

static int walk_append(struct bpfgen_code *c, const struct made *made, struct bpfgen_error *err)
{
	unsigned int walk = bpfgen_label(c);
	const struct ebpf_insn *insns;
	struct ebpf_object *object;
	struct ebpf_error refusal;
	uint32_t entry;
	size_t count;
	int ret = ebpf_object_load(walk_object, (size_t)(walk_object_end - walk_object), &helpers,
				   EBPF_LOAD_NO_JIT, &object, &refusal);

	if (ret) {
		snprintf(err->text, sizeof(err->text), "%.90s", refusal.text);
		return ret;
	}
	ret = ebpf_object_entry(object, "walk", &entry);
	insns = ebpf_object_insns(object, &count);
	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_call(c, walk);
	bpfgen_exit(c);
	for (size_t i = 0; i < count && !ret; i++) {
		if (i == entry)
			bpfgen_here(c, walk);
		if (calls(&insns[i], WALK_JUDGE))
			bpfgen_call(c, made->judge);
		else if (calls(&insns[i], WALK_LINES))
			bpfgen_call(c, made->lines);
		else if (calls(&insns[i], WALK_VALUE))
			bpfgen_call(c, made->value);
		else
			bpfgen_insn(c, insns[i]);
	}
	ebpf_object_destroy(object);
	return ret;
}

/* A function that the walk does not use: 0 */
static void nothing_append(struct bpfgen_code *c, unsigned int label)
{
	bpfgen_function(c, label, NULL);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_exit(c);
}

static int judge_append(struct bpfgen_code *c, unsigned int label, struct bpfgen_expr *where,
			struct bpfgen_error *err)
{
	bpfgen_function(c, label, NULL);
	if (!where) {
		bpfgen_alu_imm(c, EBPF_MOV, 0, 1);
		bpfgen_exit(c);
		return 0;
	}
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_expr_truth(where, c, 6);
	bpfgen_exit(c);
	return bpfgen_expr_functions(where, c, err);
}

static int value_append(struct bpfgen_code *c, unsigned int label, struct bpfgen_expr *value,
			struct bpfgen_error *err)
{
	bpfgen_function(c, label, NULL);
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_expr_value(value, c, 6);
	bpfgen_exit(c);
	return bpfgen_expr_functions(value, c, err);
}

static int made_append(struct bpfgen_code *c, const struct made *made,
		       const struct walk_question *q, struct bpfgen_error *err)
{
	int ret = walk_append(c, made, err);

	if (!ret && q->re)
		ret = bpfgen_regex_line(q->re, c, made->lines, NULL, err);
	else if (!ret)
		nothing_append(c, made->lines);
	if (!ret && !q->re)
		ret = judge_append(c, made->judge, q->where, err);
	else if (!ret)
		nothing_append(c, made->judge);
	if (!ret && q->value)
		ret = value_append(c, made->value, q->value, err);
	else if (!ret)
		nothing_append(c, made->value);
	return ret ? ret : bpfgen_code_finish(c, err);
}

int walk_code_make(const struct walk_question *q, void **elf, size_t *len, struct bpfgen_error *err)
{
	struct bpfgen_code *c;
	struct made made;
	int ret = bpfgen_code_create(&c);

	if (ret)
		return ret;
	made = (struct made){ bpfgen_label(c), bpfgen_label(c), bpfgen_label(c) };
	ret = made_append(c, &made, q, err);
	if (!ret)
		ret = bpfgen_code_elf(c, elf, len);
	bpfgen_code_destroy(c);
	return ret;
}
