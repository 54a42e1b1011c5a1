/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree of an expression as code.
 *
 * Operands that wait for others are a stack: the first four are in r0 to r3, the top of a deeper
 * one in r4, what is below it in slots of the frame, each depth with its own. r5 is for the moment.
 * Conditions are jumps and no numbers as long as nobody needs the number.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/expr_inside.h"

enum { R_TOP = 4, R_SOME = 5, R_FRAME = 10 };

struct writer {
	struct bpfgen_expr *e;
	struct bpfgen_code *c;
	unsigned int base; /* the register of the record's address */
};

static void value_write(struct writer *w, bpfgen_node node, unsigned int depth);
static void truth_write(struct writer *w, bpfgen_node node, unsigned int depth);
static void branch_write(struct writer *w, bpfgen_node node, unsigned int depth, bool wanted,
			 unsigned int label);

static unsigned int reg_of(unsigned int depth)
{
	return base_min(depth, (unsigned int)R_TOP);
}

static int16_t slot_of(unsigned int depth)
{
	return (int16_t)(-8 * ((int)depth + 1));
}

/* --- operands --------------------------------------------------------------------------------- */

static void field_write(struct writer *w, const struct bpfgen_field *f, unsigned int to)
{
	static const enum ebpf_size sizes[] = { EBPF_B, EBPF_H, EBPF_W, EBPF_DW };
	bool is_signed = f->type >= BPFGEN_S8;
	unsigned int power = (unsigned int)f->type % 4, bits = 8u << power;
	enum ebpf_size size = sizes[power];

	if (is_signed && bits < 64 && !f->big_endian)
		bpfgen_load_signed(w->c, size, to, w->base, (int16_t)f->offset);
	else
		bpfgen_load(w->c, size, to, w->base, (int16_t)f->offset);
	if (!f->big_endian || bits == 8)
		return;
	bpfgen_insn(w->c, (struct ebpf_insn){ .code = EBPF_ALU | EBPF_END | EBPF_X,
					      .regs = (uint8_t)to,
					      .imm = (int32_t)bits });
	if (is_signed && bits < 64) {
		bpfgen_alu_imm(w->c, EBPF_LSH, to, (int32_t)(64 - bits));
		bpfgen_alu_imm(w->c, EBPF_ARSH, to, (int32_t)(64 - bits));
	}
}

/* Operands in registers are kept in their slots while a function is called: r5 = its result */
static void match_write(struct writer *w, const struct expr_node *n, unsigned int depth)
{
	const struct bpfgen_field *f = &w->e->fields[n->field];
	struct expr_match *m = &w->e->matches[n->match];
	unsigned int live = reg_of(depth);

	if (!m->labelled)
		m->label = bpfgen_label(w->c);
	m->labelled = true;
	for (unsigned int i = 0; i < live; i++)
		bpfgen_store(w->c, EBPF_DW, R_FRAME, slot_of(i), i);
	bpfgen_alu(w->c, EBPF_MOV, 1, w->base);
	bpfgen_alu_imm(w->c, EBPF_ADD, 1, (int32_t)f->offset);
	bpfgen_alu_imm(w->c, EBPF_MOV, 2, (int32_t)f->length);
	bpfgen_call(w->c, m->label);
	bpfgen_alu(w->c, EBPF_MOV, R_SOME, 0);
	for (unsigned int i = 0; i < live; i++)
		bpfgen_load(w->c, EBPF_DW, i, R_FRAME, slot_of(i));
}

/* Whether the node is a number that an instruction can hold */
static bool is_small(const struct writer *w, bpfgen_node node)
{
	const struct expr_node *n = &w->e->nodes[node];

	return n->kind == EXPR_NUMBER && (int64_t)n->value == (int32_t)n->value;
}

/*
 * The operands of a binary operation at this depth, or their truths: the registers of both. What
 * was in the left one's place has been put away.
 */
static void operands_write(struct writer *w, const struct expr_node *n, unsigned int depth,
			   bool truths, unsigned int *left, unsigned int *right)
{
	void (*const write)(struct writer *, bpfgen_node, unsigned int) = truths ? truth_write
										 : value_write;

	write(w, n->a, depth);
	*left = reg_of(depth);
	*right = reg_of(depth + 1);
	if (depth < R_TOP) {
		write(w, n->b, depth + 1);
		return;
	}
	bpfgen_store(w->c, EBPF_DW, R_FRAME, slot_of(depth), R_TOP);
	write(w, n->b, depth + 1);
	bpfgen_load(w->c, EBPF_DW, R_SOME, R_FRAME, slot_of(depth));
	*left = R_SOME;
}

static void negate_write(struct writer *w, unsigned int reg)
{
	bpfgen_insn(w->c,
		    (struct ebpf_insn){ .code = EBPF_ALU64 | EBPF_NEG, .regs = (uint8_t)reg });
}

/* --- numbers ---------------------------------------------------------------------------------- */

static const enum ebpf_alu alu_ops[BPFGEN_BINARY] = {
	[BPFGEN_BIT_OR] = EBPF_OR, [BPFGEN_BIT_XOR] = EBPF_XOR, [BPFGEN_BIT_AND] = EBPF_AND,
	[BPFGEN_SHL] = EBPF_LSH,   [BPFGEN_SHR] = EBPF_RSH,	[BPFGEN_ADD] = EBPF_ADD,
	[BPFGEN_SUB] = EBPF_SUB,   [BPFGEN_MUL] = EBPF_MUL,	[BPFGEN_DIV] = EBPF_DIV,
	[BPFGEN_MOD] = EBPF_MOD,
};

static bool is_shift(enum bpfgen_op op)
{
	return op == BPFGEN_SHL || op == BPFGEN_SHR;
}

static void arithmetic_apply(struct writer *w, const struct expr_node *n, unsigned int left,
			     unsigned int right)
{
	bool divides = n->op == BPFGEN_DIV || n->op == BPFGEN_MOD;

	if (divides && n->is_signed)
		bpfgen_signed(w->c, alu_ops[n->op], left, right);
	else if (n->op == BPFGEN_SHR && n->is_signed)
		bpfgen_alu(w->c, EBPF_ARSH, left, right);
	else
		bpfgen_alu(w->c, alu_ops[n->op], left, right);
}

/*
 * A right operand that is part of the instruction. Not of shifts and divisions: there are
 * verifiers that refuse some of theirs.
 */
static bool immediate_write(struct writer *w, const struct expr_node *n, unsigned int depth)
{
	if (is_shift(n->op) || n->op == BPFGEN_DIV || n->op == BPFGEN_MOD || !is_small(w, n->b))
		return false;
	value_write(w, n->a, depth);
	bpfgen_alu_imm(w->c, alu_ops[n->op], reg_of(depth), (int32_t)w->e->nodes[n->b].value);
	return true;
}

static void arithmetic_write(struct writer *w, const struct expr_node *n, unsigned int depth)
{
	unsigned int left, right;

	if (immediate_write(w, n, depth))
		return;
	operands_write(w, n, depth, false, &left, &right);
	arithmetic_apply(w, n, left, right);
	if (left != reg_of(depth))
		bpfgen_alu(w->c, EBPF_MOV, reg_of(depth), left);
}

static bool is_condition(const struct expr_node *n)
{
	if (n->kind == EXPR_MATCH || n->kind == EXPR_EQUAL)
		return true;
	if (n->kind == EXPR_UNARY)
		return n->op == BPFGEN_NOT;
	return n->kind == EXPR_BINARY &&
	       (n->op == BPFGEN_OR || n->op == BPFGEN_AND || expr_is_comparison(n->op));
}

/* 1 if the register is other than 0, else 0 */
static void nonzero_write(struct writer *w, unsigned int reg)
{
	bpfgen_alu(w->c, EBPF_MOV, R_SOME, reg);
	negate_write(w, R_SOME);
	bpfgen_alu(w->c, EBPF_OR, reg, R_SOME);
	bpfgen_alu_imm(w->c, EBPF_RSH, reg, 63);
}

/* A comparison as the sign of a difference; bpfgen/expr_range.c knows that it does not overflow */
static void difference_write(struct writer *w, const struct expr_node *n, unsigned int depth)
{
	bool inverse = n->op == BPFGEN_GE || n->op == BPFGEN_LE || n->op == BPFGEN_EQ;
	unsigned int to = reg_of(depth), left, right;

	if (is_small(w, n->b)) {
		value_write(w, n->a, depth);
		bpfgen_alu_imm(w->c, EBPF_SUB, to, (int32_t)w->e->nodes[n->b].value);
	} else {
		operands_write(w, n, depth, false, &left, &right);
		bpfgen_alu(w->c, EBPF_SUB, left, right);
		if (left != to)
			bpfgen_alu(w->c, EBPF_MOV, to, left);
	}
	if (n->op == BPFGEN_GT || n->op == BPFGEN_LE)
		negate_write(w, to);
	if (n->op == BPFGEN_EQ || n->op == BPFGEN_NE)
		nonzero_write(w, to);
	else
		bpfgen_alu_imm(w->c, EBPF_RSH, to, 63);
	if (inverse)
		bpfgen_alu_imm(w->c, EBPF_XOR, to, 1);
}

/* Loads the next four, two or one of @left bytes of a text, and returns what they are to be */
static int32_t piece_load(struct writer *w, const struct bpfgen_field *f,
			  const struct expr_match *m, size_t at, size_t left, unsigned int to,
			  size_t *bytes)
{
	int16_t offset = (int16_t)(f->offset + at);
	int32_t value = 0;

	*bytes = left >= 4 ? 4 : left >= 2 ? 2 : 1;
	memcpy(&value, m->bytes + at, *bytes);
	if (*bytes == 4)
		bpfgen_load_signed(w->c, EBPF_W, to, w->base, offset);
	else
		bpfgen_load(w->c, *bytes == 2 ? EBPF_H : EBPF_B, to, w->base, offset);
	return value;
}

/* All differences of the pieces, or-ed together */
static void flat_equal_write(struct writer *w, const struct expr_node *n, unsigned int depth)
{
	const struct bpfgen_field *f = &w->e->fields[n->field];
	const struct expr_match *m = &w->e->matches[n->match];
	size_t len = base_min(m->len + 1, (size_t)f->length), bytes;

	for (size_t at = 0; at < len; at += bytes) {
		unsigned int to = at ? R_SOME : reg_of(depth);
		int32_t value = piece_load(w, f, m, at, len - at, to, &bytes);

		bpfgen_alu_imm(w->c, EBPF_XOR, to, value);
		if (at)
			bpfgen_alu(w->c, EBPF_OR, reg_of(depth), R_SOME);
	}
	nonzero_write(w, reg_of(depth));
	bpfgen_alu_imm(w->c, EBPF_XOR, reg_of(depth), 1);
}

/* 1 or 0 of a condition, without a jump */
static void flat_write(struct writer *w, const struct expr_node *n, unsigned int depth)
{
	unsigned int to = reg_of(depth), left, right;

	if (n->kind == EXPR_EQUAL) {
		flat_equal_write(w, n, depth);
	} else if (n->kind == EXPR_UNARY) {
		truth_write(w, n->a, depth);
		bpfgen_alu_imm(w->c, EBPF_XOR, to, 1);
	} else if (expr_is_comparison(n->op)) {
		difference_write(w, n, depth);
	} else {
		operands_write(w, n, depth, true, &left, &right);
		bpfgen_alu(w->c, n->op == BPFGEN_AND ? EBPF_AND : EBPF_OR, left, right);
		if (left != to)
			bpfgen_alu(w->c, EBPF_MOV, to, left);
	}
}

/* The same with jumps */
static void jumps_write(struct writer *w, bpfgen_node node, unsigned int depth)
{
	unsigned int is_false = bpfgen_label(w->c), end = bpfgen_label(w->c);

	branch_write(w, node, depth, false, is_false);
	bpfgen_alu_imm(w->c, EBPF_MOV, reg_of(depth), 1);
	bpfgen_goto(w->c, end);
	bpfgen_here(w->c, is_false);
	bpfgen_alu_imm(w->c, EBPF_MOV, reg_of(depth), 0);
	bpfgen_here(w->c, end);
}

/* 1 or 0, whatever kind of node it is */
static void truth_write(struct writer *w, bpfgen_node node, unsigned int depth)
{
	const struct expr_node *n = &w->e->nodes[node];

	if (!is_condition(n)) {
		value_write(w, node, depth);
		nonzero_write(w, reg_of(depth));
	} else if (n->flat) {
		flat_write(w, n, depth);
	} else {
		jumps_write(w, node, depth);
	}
}

/* The value is in the register of this depth; those of lower depths stay as they are */
static void value_write(struct writer *w, bpfgen_node node, unsigned int depth)
{
	const struct expr_node *n = &w->e->nodes[node];
	unsigned int to = reg_of(depth);

	if (is_condition(n)) {
		truth_write(w, node, depth);
	} else if (n->kind == EXPR_NUMBER) {
		bpfgen_constant(w->c, to, n->value);
	} else if (n->kind == EXPR_FIELD) {
		field_write(w, &w->e->fields[n->field], to);
	} else if (n->kind == EXPR_BINARY) {
		arithmetic_write(w, n, depth);
	} else {
		value_write(w, n->a, depth);
		if (n->op == BPFGEN_INVERT)
			bpfgen_alu_imm(w->c, EBPF_XOR, to, -1);
		else
			negate_write(w, to);
	}
}

/* --- conditions ------------------------------------------------------------------------------- */

static enum ebpf_jump comparison_jump(const struct writer *w, const struct expr_node *n,
				      bool wanted)
{
	static const enum ebpf_jump jumps[][2] = {
		[BPFGEN_EQ - BPFGEN_EQ] = { EBPF_JEQ, EBPF_JEQ },
		[BPFGEN_NE - BPFGEN_EQ] = { EBPF_JNE, EBPF_JNE },
		[BPFGEN_LT - BPFGEN_EQ] = { EBPF_JLT, EBPF_JSLT },
		[BPFGEN_LE - BPFGEN_EQ] = { EBPF_JLE, EBPF_JSLE },
		[BPFGEN_GT - BPFGEN_EQ] = { EBPF_JGT, EBPF_JSGT },
		[BPFGEN_GE - BPFGEN_EQ] = { EBPF_JGE, EBPF_JSGE },
	};
	static const enum bpfgen_op opposite[] = { BPFGEN_NE, BPFGEN_EQ, BPFGEN_GE,
						   BPFGEN_GT, BPFGEN_LE, BPFGEN_LT };
	enum bpfgen_op op = wanted ? n->op : opposite[n->op - BPFGEN_EQ];
	bool is_signed = w->e->nodes[n->a].is_signed && w->e->nodes[n->b].is_signed;

	return jumps[op - BPFGEN_EQ][is_signed];
}

static void comparison_write(struct writer *w, const struct expr_node *n, unsigned int depth,
			     bool wanted, unsigned int label)
{
	enum ebpf_jump jump = comparison_jump(w, n, wanted);
	unsigned int left, right;

	if (is_small(w, n->b)) {
		value_write(w, n->a, depth);
		bpfgen_if_imm(w->c, jump, reg_of(depth), (int32_t)w->e->nodes[n->b].value, label);
		return;
	}
	operands_write(w, n, depth, false, &left, &right);
	bpfgen_if(w->c, jump, left, right, label);
}

/* && and ||: @stops is the value of the left operand that decides alone */
static void logic_write(struct writer *w, const struct expr_node *n, unsigned int depth,
			bool wanted, unsigned int label)
{
	bool stops = n->op == BPFGEN_OR;
	unsigned int behind;

	if (wanted == stops) {
		branch_write(w, n->a, depth, wanted, label);
		branch_write(w, n->b, depth, wanted, label);
		return;
	}
	behind = bpfgen_label(w->c);
	branch_write(w, n->a, depth, stops, behind);
	branch_write(w, n->b, depth, wanted, label);
	bpfgen_here(w->c, behind);
}

/* The bytes, and the 0 behind them if the field goes on there */
static void equal_write(struct writer *w, const struct expr_node *n, bool wanted,
			unsigned int label)
{
	const struct bpfgen_field *f = &w->e->fields[n->field];
	const struct expr_match *m = &w->e->matches[n->match];
	unsigned int differs = wanted ? bpfgen_label(w->c) : label;
	size_t len = base_min(m->len + 1, (size_t)f->length), bytes;

	if (m->len > f->length)
		bpfgen_goto(w->c, differs);
	for (size_t at = 0; at < len && m->len <= f->length; at += bytes) {
		int32_t value = piece_load(w, f, m, at, len - at, R_SOME, &bytes);

		bpfgen_if_imm(w->c, EBPF_JNE, R_SOME, value, differs);
	}
	if (!wanted)
		return;
	bpfgen_goto(w->c, label);
	bpfgen_here(w->c, differs);
}

/* Goes to @label if the truth of the node is what is wanted, else on */
static void branch_write(struct writer *w, bpfgen_node node, unsigned int depth, bool wanted,
			 unsigned int label)
{
	const struct expr_node *n = &w->e->nodes[node];

	if (n->kind == EXPR_EQUAL) {
		equal_write(w, n, wanted, label);
	} else if (n->kind == EXPR_MATCH) {
		match_write(w, n, depth);
		bpfgen_if_imm(w->c, wanted ? EBPF_JNE : EBPF_JEQ, R_SOME, -1, label);
	} else if (!is_condition(n)) {
		value_write(w, node, depth);
		bpfgen_if_imm(w->c, wanted ? EBPF_JNE : EBPF_JEQ, reg_of(depth), 0, label);
	} else if (n->op == BPFGEN_NOT) {
		branch_write(w, n->a, depth, !wanted, label);
	} else if (n->op == BPFGEN_AND || n->op == BPFGEN_OR) {
		logic_write(w, n, depth, wanted, label);
	} else {
		comparison_write(w, n, depth, wanted, label);
	}
}

/* --- the whole -------------------------------------------------------------------------------- */

void bpfgen_expr_value(struct bpfgen_expr *e, struct bpfgen_code *c, unsigned int base)
{
	struct writer w = { e, c, base };

	value_write(&w, e->whole, 0);
}

void bpfgen_expr_truth(struct bpfgen_expr *e, struct bpfgen_code *c, unsigned int base)
{
	struct writer w = { e, c, base };

	truth_write(&w, e->whole, 0);
}

void bpfgen_expr_branch(struct bpfgen_expr *e, struct bpfgen_code *c, unsigned int base,
			bool wanted, unsigned int label)
{
	struct writer w = { e, c, base };

	branch_write(&w, e->whole, 0, wanted, label);
}

int bpfgen_expr_functions(struct bpfgen_expr *e, struct bpfgen_code *c, struct bpfgen_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < e->match_count && !ret; i++)
		if (e->matches[i].labelled)
			ret = bpfgen_regex_text(e->matches[i].regex, c, e->matches[i].label, NULL,
						err);
	for (size_t i = 0; i < e->match_count; i++)
		e->matches[i].labelled = false;
	return ret;
}
