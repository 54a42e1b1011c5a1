/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_EXPR_H
#define BPFGEN_EXPR_H

/*
 * Expressions over the fields of a record, as code: from text, as `price > 10 && qty * price <
 * 5000`, or from a tree that is built by calls. docs/active-code.md has the language.
 *
 * All arithmetic is of 64 bits and wraps. A number is signed unless one of those that it was made
 * of is a u64; x / 0 is 0, x % 0 is x, and shifts count modulo 64.
 */

#include <stdbool.h>

#include "bpfgen/code.h"

/* --- records -----------------------------------------------------------------------------------*/

enum bpfgen_type {
	BPFGEN_U8,
	BPFGEN_U16,
	BPFGEN_U32,
	BPFGEN_U64,
	BPFGEN_S8,
	BPFGEN_S16,
	BPFGEN_S32,
	BPFGEN_S64,
	BPFGEN_TEXT, /* ends at its first byte that is 0, or with the field */
	BPFGEN_PAD,  /* cannot be used */
};

struct bpfgen_field {
	const char *name;
	enum bpfgen_type type;
	bool big_endian;
	uint32_t offset, length; /* in bytes; a number's length is that of its type */
};

struct bpfgen_layout {
	const struct bpfgen_field *fields;
	size_t count;
	uint32_t size; /* bytes from one record to the next */
};

enum { BPFGEN_RECORD_MAX = 32760, BPFGEN_FIELDS_MAX = 256 };

/*
 * A layout from text: "u32 id; s64 price; text[16] name; be16 port; pad[4]". Fields stand behind
 * one another without gaps; numbers are little-endian, or with be and sbe for u and s big-endian.
 * Names are copied. -EINVAL, -E2BIG, -ENOMEM
 */
int bpfgen_layout_parse(const char *text, struct bpfgen_layout **out, struct bpfgen_error *err);
/* Of one that bpfgen_layout_parse() made */
void bpfgen_layout_destroy(struct bpfgen_layout *layout);

/* --- expressions -------------------------------------------------------------------------------*/

struct bpfgen_expr;

/* Parts of a tree, by number */
typedef uint32_t bpfgen_node;

enum bpfgen_op {
	BPFGEN_OR, /* || */
	BPFGEN_AND,
	BPFGEN_BIT_OR,
	BPFGEN_BIT_XOR,
	BPFGEN_BIT_AND,
	BPFGEN_EQ,
	BPFGEN_NE,
	BPFGEN_LT,
	BPFGEN_LE,
	BPFGEN_GT,
	BPFGEN_GE,
	BPFGEN_SHL,
	BPFGEN_SHR,
	BPFGEN_ADD,
	BPFGEN_SUB,
	BPFGEN_MUL,
	BPFGEN_DIV,
	BPFGEN_MOD,
	BPFGEN_BINARY, /* how many there are with two operands */
	BPFGEN_NOT = BPFGEN_BINARY,
	BPFGEN_NEGATE,
	BPFGEN_INVERT, /* each bit */
	BPFGEN_OPS,
};

enum {
	BPFGEN_NODES_MAX = 4096,
	BPFGEN_NESTING_MAX = 40, /* operands that wait for others */
	BPFGEN_EXPR_FRAME = 384, /* bytes below r10 that code of an expression uses */
	BPFGEN_MATCHES_MAX = 16, /* regular expressions in one expression */
};

/* @layout is copied, the names of its fields are not needed afterwards */
int bpfgen_expr_parse(const char *text, const struct bpfgen_layout *layout,
		      struct bpfgen_expr **out, struct bpfgen_error *err);
void bpfgen_expr_destroy(struct bpfgen_expr *e);

/*
 * The same without a text. Nothing that adds a node returns an error: the first one is kept, and
 * bpfgen_expr_finish() tells it. The node that is given to bpfgen_expr_finish() is the whole.
 */
int bpfgen_expr_create(const struct bpfgen_layout *layout, struct bpfgen_expr **out,
		       struct bpfgen_error *err);
bpfgen_node bpfgen_expr_number(struct bpfgen_expr *e, uint64_t value, bool is_signed);
bpfgen_node bpfgen_expr_field(struct bpfgen_expr *e, const char *name);
bpfgen_node bpfgen_expr_unary(struct bpfgen_expr *e, enum bpfgen_op op, bpfgen_node a);
bpfgen_node bpfgen_expr_binary(struct bpfgen_expr *e, enum bpfgen_op op, bpfgen_node a,
			       bpfgen_node b);
/* Whether the regular expression has a match in the text @name; flags of bpfgen/regex.h */
bpfgen_node bpfgen_expr_match(struct bpfgen_expr *e, const char *name, const char *pattern,
			      size_t len, unsigned int flags);
/* Whether the text @name is these bytes, of which none is 0 */
bpfgen_node bpfgen_expr_equal(struct bpfgen_expr *e, const char *name, const char *bytes,
			      size_t len);
int bpfgen_expr_finish(struct bpfgen_expr *e, bpfgen_node whole, struct bpfgen_error *err);

bool bpfgen_expr_is_signed(const struct bpfgen_expr *e);
/* Bytes of a record of its layout */
uint32_t bpfgen_expr_record(const struct bpfgen_expr *e);

/* --- code --------------------------------------------------------------------------------------*/

/*
 * These append instructions for a record at the address in register @base, 6 to 9. All its bytes
 * must be there. They use r0 to r5 and the first BPFGEN_EXPR_FRAME bytes of the frame.
 *
 * r0 = the value
 */
void bpfgen_expr_value(struct bpfgen_expr *e, struct bpfgen_code *c, unsigned int base);
/* if the value is other than 0 (@wanted), or 0, goto label */
void bpfgen_expr_branch(struct bpfgen_expr *e, struct bpfgen_code *c, unsigned int base,
			bool wanted, unsigned int label);
/* r0 = 1 if the value is other than 0, else 0; without a jump where that can be */
void bpfgen_expr_truth(struct bpfgen_expr *e, struct bpfgen_code *c, unsigned int base);
/*
 * Appends the functions that these call, behind the end of the function that has them: once for
 * each code. -E2BIG, -ENOMEM
 */
int bpfgen_expr_functions(struct bpfgen_expr *e, struct bpfgen_code *c, struct bpfgen_error *err);

#endif
