/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_EXPR_INSIDE_H
#define BPFGEN_EXPR_INSIDE_H

/* The tree of an expression, which bpfgen/expr.c builds and bpfgen/expr_code.c reads. */

#include "bpfgen/expr.h"
#include "bpfgen/regex.h"

enum expr_kind { EXPR_NUMBER, EXPR_FIELD, EXPR_MATCH, EXPR_EQUAL, EXPR_UNARY, EXPR_BINARY };

struct expr_node {
	enum expr_kind kind;
	bool is_signed, used;
	enum bpfgen_op op;
	bpfgen_node a, b;
	uint64_t value;
	uint32_t field, match; /* indexes */
	bool bounded;	       /* the value lies from low to high */
	int64_t low, high;
	bool flat;     /* it is computed without a jump */
	uint16_t size; /* nodes, with those below */
};

/* What a text is compared with: a regular expression, or bytes */
struct expr_match {
	struct bpfgen_regex *regex;
	uint8_t *bytes;
	size_t len;
	unsigned int label;
	bool labelled; /* code calls it that does not have it yet */
};

struct bpfgen_expr {
	struct bpfgen_field *fields; /* with names of its own */
	size_t field_count;
	uint32_t record;
	struct expr_node *nodes;
	size_t count, room;
	struct expr_match matches[BPFGEN_MATCHES_MAX];
	size_t match_count;
	bpfgen_node whole;
	int error;
	struct bpfgen_error why;
};

static inline bool expr_is_comparison(enum bpfgen_op op)
{
	return op >= BPFGEN_EQ && op <= BPFGEN_GE;
}

/* The field of this name, or -1; @len bytes of @name */
int expr_field_find(const struct bpfgen_expr *e, const char *name, size_t len);
/* The calls of bpfgen/expr.h for a field that was found */
bpfgen_node expr_field_add(struct bpfgen_expr *e, int field);
bpfgen_node expr_match_add(struct bpfgen_expr *e, int field, const char *pattern, size_t len,
			   unsigned int flags);
/* bpfgen/expr_range.c: of all nodes, what the last members say */
void expr_ranges_find(struct bpfgen_expr *e);
bpfgen_node expr_equal_add(struct bpfgen_expr *e, int field, const char *bytes, size_t len);

#endif
