/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What values a node can have, and from that, whether a condition can be computed without a jump:
 * a < b is the sign of a - b where the difference cannot overflow. A processor guesses jumps, and
 * on data that it cannot guess a wrong one costs more than the whole expression.
 *
 * A range is known of signed numbers only, and as long as nothing can overflow.
 */
#include "bpfgen/expr_inside.h"

enum { FLAT_SIZE_MAX = 16 }; /* nodes; a larger one may gain more by what it need not compute */

static void range_set(struct expr_node *n, int64_t low, int64_t high)
{
	n->bounded = n->is_signed;
	n->low = low;
	n->high = high;
}

static void field_range(const struct bpfgen_field *f, struct expr_node *n)
{
	unsigned int bits = 8u << ((unsigned int)f->type % 4);

	if (bits == 64 || f->type > BPFGEN_S64)
		return;
	if (f->type >= BPFGEN_S8)
		range_set(n, -((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1);
	else
		range_set(n, 0, ((int64_t)1 << bits) - 1);
}

/* Whether a - b, and its opposite, are exact for all values of both; then these are the ends */
static bool difference_range(const struct expr_node *a, const struct expr_node *b, int64_t *low,
			     int64_t *high)
{
	return a->bounded && b->bounded && !__builtin_sub_overflow(a->low, b->high, low) &&
	       !__builtin_sub_overflow(a->high, b->low, high) && *low != INT64_MIN;
}

/* A product's ends are among those of its operands' ends */
static void product_range(const struct expr_node *a, const struct expr_node *b, struct expr_node *n)
{
	const int64_t x[] = { a->low, a->high }, y[] = { b->low, b->high };
	int64_t low = INT64_MAX, high = INT64_MIN, value;

	for (int i = 0; i < 4; i++) {
		if (__builtin_mul_overflow(x[i / 2], y[i % 2], &value))
			return;
		low = value < low ? value : low;
		high = value > high ? value : high;
	}
	range_set(n, low, high);
}

static void arithmetic_range(const struct expr_node *a, const struct expr_node *b,
			     struct expr_node *n)
{
	bool natural = a->low >= 0 && b->low >= 0;
	int64_t low, high;

	if (!a->bounded || !b->bounded)
		return;
	if (n->op == BPFGEN_ADD && !__builtin_add_overflow(a->low, b->low, &low) &&
	    !__builtin_add_overflow(a->high, b->high, &high))
		range_set(n, low, high);
	else if (n->op == BPFGEN_SUB && difference_range(a, b, &low, &high))
		range_set(n, low, high);
	else if (n->op == BPFGEN_MUL)
		product_range(a, b, n);
	else if (n->op == BPFGEN_BIT_AND && natural)
		range_set(n, 0, a->high < b->high ? a->high : b->high);
	else if (n->op == BPFGEN_MOD && natural && b->low)
		range_set(n, 0, b->high - 1);
	else if (n->op == BPFGEN_DIV && natural)
		range_set(n, 0, a->high);
}

static bool is_logic(const struct expr_node *n)
{
	return n->kind == EXPR_BINARY && (n->op == BPFGEN_AND || n->op == BPFGEN_OR);
}

static void unary_find(const struct expr_node *a, struct expr_node *n)
{
	n->size = (uint16_t)(a->size + 1);
	n->flat = a->flat && n->size <= FLAT_SIZE_MAX;
	if (n->op == BPFGEN_NOT)
		range_set(n, 0, 1);
	else if (a->bounded && n->op == BPFGEN_NEGATE && a->low != INT64_MIN)
		range_set(n, -a->high, -a->low);
	else if (a->bounded && n->op == BPFGEN_INVERT)
		range_set(n, ~a->high, ~a->low);
}

static void binary_find(const struct expr_node *a, const struct expr_node *b, struct expr_node *n)
{
	int64_t low, high;
	bool exact = n->op == BPFGEN_EQ || n->op == BPFGEN_NE ||
		     difference_range(a, b, &low, &high);

	n->size = (uint16_t)(a->size + b->size + 1);
	n->flat = a->flat && b->flat && n->size <= FLAT_SIZE_MAX;
	if (expr_is_comparison(n->op)) {
		range_set(n, 0, 1);
		n->flat &= exact;
	} else if (is_logic(n)) {
		range_set(n, 0, 1);
	} else {
		arithmetic_range(a, b, n);
	}
}

/* A short text that fits is compared without a jump */
static void equal_find(const struct bpfgen_expr *e, struct expr_node *n)
{
	size_t len = e->matches[n->match].len;

	n->size = (uint16_t)(len / 2 + 1);
	n->flat = n->size <= FLAT_SIZE_MAX / 2 && len <= e->fields[n->field].length;
}

/* Operands come before what uses them */
void expr_ranges_find(struct bpfgen_expr *e)
{
	for (size_t i = 0; i < e->count; i++) {
		struct expr_node *n = &e->nodes[i];

		n->size = 1;
		n->flat = n->kind == EXPR_NUMBER || n->kind == EXPR_FIELD;
		if (n->kind == EXPR_NUMBER)
			range_set(n, (int64_t)n->value, (int64_t)n->value);
		else if (n->kind == EXPR_FIELD)
			field_range(&e->fields[n->field], n);
		else if (n->kind == EXPR_UNARY)
			unary_find(&e->nodes[n->a], n);
		else if (n->kind == EXPR_BINARY)
			binary_find(&e->nodes[n->a], &e->nodes[n->b], n);
		else
			range_set(n, 0, 1);
		if (n->kind == EXPR_EQUAL)
			equal_find(e, n);
	}
}
