/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree of an expression. A node is checked when it is added: its operands are nodes that were
 * added before and are used nowhere else, so it is a tree; its field exists, lies in the record,
 * and is a number where a number is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfgen/expr_inside.h"
#include "bpfgen/inside.h"

static const uint8_t type_bytes[] = {
	[BPFGEN_U8] = 1, [BPFGEN_U16] = 2, [BPFGEN_U32] = 4, [BPFGEN_U64] = 8,
	[BPFGEN_S8] = 1, [BPFGEN_S16] = 2, [BPFGEN_S32] = 4, [BPFGEN_S64] = 8
};

#define fail(e, error_, ...)                                                                   \
	do {                                                                                   \
		if (!(e)->error)                                                               \
			(e)->error =                                                           \
				bpfgen_refuse(&(e)->why, error_, BPFGEN_NOWHERE, __VA_ARGS__); \
	} while (0)

/* --- fields ----------------------------------------------------------------------------------- */

static int field_check(const struct bpfgen_field *f, uint32_t record, struct bpfgen_error *err)
{
	uint32_t bytes = f->type <= BPFGEN_S64 ? type_bytes[f->type] : f->length;

	if (f->type > BPFGEN_PAD || !f->name || !*f->name)
		return bpfgen_refuse(err, -EINVAL, BPFGEN_NOWHERE, "a field without type or name");
	if (f->offset > record || bytes > record - f->offset || !bytes)
		return bpfgen_refuse(err, -EINVAL, BPFGEN_NOWHERE,
				     "field %.64s lies outside of the record", f->name);
	return 0;
}

static int fields_copy(struct bpfgen_expr *e, const struct bpfgen_layout *layout,
		       struct bpfgen_error *err)
{
	int ret = 0;

	if (!layout->size || layout->size > BPFGEN_RECORD_MAX || layout->count > BPFGEN_FIELDS_MAX)
		return bpfgen_refuse(err, -E2BIG, BPFGEN_NOWHERE,
				     "a record has 1 to %d bytes and at most %d fields",
				     BPFGEN_RECORD_MAX, BPFGEN_FIELDS_MAX);
	e->record = layout->size;
	e->fields = calloc(layout->count + 1, sizeof(*e->fields));
	if (!e->fields)
		return bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	for (size_t i = 0; i < layout->count && !ret; i++) {
		ret = field_check(&layout->fields[i], layout->size, err);
		if (ret)
			break;
		e->fields[i] = layout->fields[i];
		e->fields[i].name = strdup(layout->fields[i].name);
		if (!e->fields[i].name)
			ret = bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
		e->field_count++;
	}
	return ret;
}

int expr_field_find(const struct bpfgen_expr *e, const char *name, size_t len)
{
	for (size_t i = 0; i < e->field_count; i++)
		if (strlen(e->fields[i].name) == len && !memcmp(e->fields[i].name, name, len) &&
		    e->fields[i].type != BPFGEN_PAD)
			return (int)i;
	return -1;
}

/* --- the tree --------------------------------------------------------------------------------- */

int bpfgen_expr_create(const struct bpfgen_layout *layout, struct bpfgen_expr **out,
		       struct bpfgen_error *err)
{
	struct bpfgen_expr *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	ret = fields_copy(e, layout, err);
	if (ret)
		bpfgen_expr_destroy(e);
	else
		*out = e;
	return ret;
}

void bpfgen_expr_destroy(struct bpfgen_expr *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->field_count; i++)
		free((char *)e->fields[i].name);
	for (size_t i = 0; i < e->match_count; i++) {
		bpfgen_regex_destroy(e->matches[i].regex);
		free(e->matches[i].bytes);
	}
	free(e->fields);
	free(e->nodes);
	free(e);
}

static bpfgen_node node_add(struct bpfgen_expr *e, struct expr_node node)
{
	if (e->count >= BPFGEN_NODES_MAX) {
		fail(e, -E2BIG, "an expression has at most %d parts", BPFGEN_NODES_MAX);
		return 0;
	}
	if (!bpfgen_grow((void **)&e->nodes, &e->room, e->count, sizeof(node))) {
		fail(e, -ENOMEM, "out of memory");
		return 0;
	}
	e->nodes[e->count] = node;
	return (bpfgen_node)e->count++;
}

/* A node was added before, and is the operand of no other: the code of one is there once */
static bool operand_take(struct bpfgen_expr *e, bpfgen_node node)
{
	if (node < e->count && !e->nodes[node].used) {
		e->nodes[node].used = true;
		return true;
	}
	fail(e, -EINVAL, "an operand that does not exist, or is used twice");
	return false;
}

bpfgen_node bpfgen_expr_number(struct bpfgen_expr *e, uint64_t value, bool is_signed)
{
	return node_add(e, (struct expr_node){
				   .kind = EXPR_NUMBER, .value = value, .is_signed = is_signed });
}

bpfgen_node expr_field_add(struct bpfgen_expr *e, int field)
{
	const struct bpfgen_field *f = &e->fields[field];

	if (f->type == BPFGEN_TEXT)
		fail(e, -EINVAL, "%.64s is a text, not a number", f->name);
	return node_add(e, (struct expr_node){ .kind = EXPR_FIELD,
					       .field = (uint32_t)field,
					       .is_signed = f->type != BPFGEN_U64 });
}

bpfgen_node bpfgen_expr_field(struct bpfgen_expr *e, const char *name)
{
	int field = expr_field_find(e, name, strlen(name));

	if (field >= 0)
		return expr_field_add(e, field);
	fail(e, -EINVAL, "there is no field %.64s", name);
	return 0;
}

/* Room for one more comparison of this field, or NULL */
static struct expr_match *match_begin(struct bpfgen_expr *e, int field)
{
	if (e->fields[field].type != BPFGEN_TEXT)
		fail(e, -EINVAL, "%.64s is a number, not a text", e->fields[field].name);
	if (e->match_count == BPFGEN_MATCHES_MAX)
		fail(e, -E2BIG, "an expression has at most %d comparisons of texts",
		     BPFGEN_MATCHES_MAX);
	return e->error ? NULL : &e->matches[e->match_count];
}

static bpfgen_node match_add(struct bpfgen_expr *e, enum expr_kind kind, int field)
{
	return node_add(e, (struct expr_node){ .kind = kind,
					       .field = (uint32_t)field,
					       .match = (uint32_t)e->match_count++,
					       .is_signed = true });
}

bpfgen_node expr_match_add(struct bpfgen_expr *e, int field, const char *pattern, size_t len,
			   unsigned int flags)
{
	struct expr_match *m = match_begin(e, field);
	int ret;

	if (!m)
		return 0;
	ret = bpfgen_regex_parse(pattern, len, flags, &m->regex, &e->why);
	if (ret) {
		e->error = ret;
		return 0;
	}
	return match_add(e, EXPR_MATCH, field);
}

bpfgen_node expr_equal_add(struct bpfgen_expr *e, int field, const char *bytes, size_t len)
{
	struct expr_match *m = match_begin(e, field);

	if (!m)
		return 0;
	if (memchr(bytes, 0, len)) {
		fail(e, -EINVAL, "a text has no byte 0");
		return 0;
	}
	m->bytes = calloc(1, len + 1);
	if (!m->bytes) {
		fail(e, -ENOMEM, "out of memory");
		return 0;
	}
	memcpy(m->bytes, bytes, len);
	m->len = len;
	return match_add(e, EXPR_EQUAL, field);
}

bpfgen_node bpfgen_expr_match(struct bpfgen_expr *e, const char *name, const char *pattern,
			      size_t len, unsigned int flags)
{
	int field = expr_field_find(e, name, strlen(name));

	if (field >= 0)
		return expr_match_add(e, field, pattern, len, flags);
	fail(e, -EINVAL, "there is no field %.64s", name);
	return 0;
}

bpfgen_node bpfgen_expr_equal(struct bpfgen_expr *e, const char *name, const char *bytes,
			      size_t len)
{
	int field = expr_field_find(e, name, strlen(name));

	if (field >= 0)
		return expr_equal_add(e, field, bytes, len);
	fail(e, -EINVAL, "there is no field %.64s", name);
	return 0;
}

bpfgen_node bpfgen_expr_unary(struct bpfgen_expr *e, enum bpfgen_op op, bpfgen_node a)
{
	struct expr_node node = { .kind = EXPR_UNARY, .op = op, .a = a };

	if (!operand_take(e, a))
		return 0;
	if (op < BPFGEN_BINARY || op >= BPFGEN_OPS)
		fail(e, -EINVAL, "no operation with one operand");
	node.is_signed = op == BPFGEN_NOT || e->nodes[a].is_signed;
	return node_add(e, node);
}

bpfgen_node bpfgen_expr_binary(struct bpfgen_expr *e, enum bpfgen_op op, bpfgen_node a,
			       bpfgen_node b)
{
	struct expr_node node = { .kind = EXPR_BINARY, .op = op, .a = a, .b = b };

	if (!operand_take(e, a) || !operand_take(e, b))
		return 0;
	if (op >= BPFGEN_BINARY)
		fail(e, -EINVAL, "no operation with two operands");
	if (op == BPFGEN_OR || op == BPFGEN_AND || expr_is_comparison(op))
		node.is_signed = true;
	else if (op == BPFGEN_SHL || op == BPFGEN_SHR)
		node.is_signed = e->nodes[a].is_signed;
	else
		node.is_signed = e->nodes[a].is_signed && e->nodes[b].is_signed;
	return node_add(e, node);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* How many operands wait for others at most while this one is computed; the left one is first */
static unsigned int nesting_of(const struct bpfgen_expr *e, const uint16_t *nesting,
			       const struct expr_node *n)
{
	unsigned int a, b;

	if (n->kind == EXPR_UNARY)
		return nesting[n->a];
	if (n->kind != EXPR_BINARY)
		return 0;
	a = nesting[n->a];
	b = nesting[n->b] + 1;
	return a > b ? a : b;
}

/* Operands come before what uses them, so one pass is enough */
static int nesting_check(const struct bpfgen_expr *e, struct bpfgen_error *err)
{
	uint16_t *nesting = calloc(e->count, sizeof(*nesting));
	int ret = 0;

	if (!nesting)
		return bpfgen_refuse(err, -ENOMEM, BPFGEN_NOWHERE, "out of memory");
	for (size_t i = 0; i < e->count && !ret; i++) {
		nesting[i] = (uint16_t)nesting_of(e, nesting, &e->nodes[i]);
		if (nesting[i] > BPFGEN_NESTING_MAX)
			ret = bpfgen_refuse(err, -E2BIG, BPFGEN_NOWHERE,
					    "more than %d operands wait for others",
					    BPFGEN_NESTING_MAX);
	}
	free(nesting);
	return ret;
}

int bpfgen_expr_finish(struct bpfgen_expr *e, bpfgen_node whole, struct bpfgen_error *err)
{
	if (!e->error && whole >= e->count)
		fail(e, -EINVAL, "an expression without parts");
	if (e->error) {
		if (err)
			*err = e->why;
		return e->error;
	}
	e->whole = whole;
	expr_ranges_find(e);
	return nesting_check(e, err);
}

bool bpfgen_expr_is_signed(const struct bpfgen_expr *e)
{
	return e->nodes[e->whole].is_signed;
}

uint32_t bpfgen_expr_record(const struct bpfgen_expr *e)
{
	return e->record;
}
