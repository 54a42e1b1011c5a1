/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions and layouts: each part of the language once, each error, each limit, and trees that
 * are built without a text. tests/bpfgen compares generated ones with a C compiler's.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/expr.h"
#include "bpfgen/regex.h"
#include "tests/bpfgen/both.h"

#define ADDR 0x20000u

/* The layout of the tests, and a record of it */
static const char layout_text[] = "u32 price; s32 change; u64 total; be16 port; text[6] name; u8 x";
static struct record {
	uint32_t price;
	int32_t change;
	uint64_t total;
	uint8_t port[2];
	char name[6];
	uint8_t x, pad[7];
} record __attribute__((aligned(64))) = { 100, -7, 1ull << 63, { 1, 2 }, "apple", 200, { 0 } };
enum { RECORD = 25 };

static struct bpfgen_layout *layout(void)
{
	struct bpfgen_layout *l = NULL;
	struct bpfgen_error err = { 0 };

	cr_assert_not(bpfgen_layout_parse(layout_text, &l, &err), "%s", err.text);
	cr_assert_eq(l->size, RECORD);
	return l;
}

static int64_t evaluate(struct bpfgen_expr *e)
{
	static struct both both;
	const struct ebpf_region region = { &record, ADDR, RECORD, 0, EBPF_MAY_READ };
	const uint64_t arg[5] = { ADDR };
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c;
	const char *wrong;
	uint64_t value = 0;

	cr_assert_not(bpfgen_code_create(&c));
	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_expr_value(e, c, 6);
	bpfgen_exit(c);
	cr_assert_not(bpfgen_expr_functions(e, c, &err), "%s", err.text);
	cr_assert_not(bpfgen_code_finish(c, &err), "%s", err.text);
	wrong = both_open(&both, c);
	if (!wrong)
		wrong = both_run(&both, "main", arg, &region, 1, &value);
	cr_assert_null(wrong, "%s", wrong);
	both_close(&both);
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(e);
	return (int64_t)value;
}

static struct bpfgen_expr *parse(const char *text)
{
	struct bpfgen_layout *l = layout();
	struct bpfgen_expr *e = NULL;
	struct bpfgen_error err = { 0 };

	cr_assert_not(bpfgen_expr_parse(text, l, &e, &err), "%s: %s", text, err.text);
	bpfgen_layout_destroy(l);
	return e;
}

Test(bpfgen_expr, language)
{
	static const struct {
		const char *text;
		int64_t value;
	} list[] = {
		{ "1 + 2 * 3", 7 },
		{ "(1 + 2) * 3", 9 },
		{ "price > 10 && change * 2 < -13", 1 },
		{ "price > 10 && change > 0", 0 },
		{ "price < 10 || x", 1 },
		{ "10 - 3 - 2", 5 },
		{ "-change", 7 },
		{ "!price + !0", 1 },
		{ "~0", -1 },
		{ "port", 0x102 },
		{ "0x10 | 0XF", 31 },
		{ "'A' + '\\n' + '\\x01' + '\\0' + '\\''", 65 + 10 + 1 + 39 },
		{ "change / 2", -3 },
		{ "change % 4", -3 },
		{ "change >> 1", -4 },
		{ "total >> 63", 1 },
		{ "total > 0", 1 },
		{ "change < 0", 1 },
		{ "change < 0u", 0 },
		{ "total / 0", 0 },
		{ "price % 0", 100 },
		{ "1 << 64", 1 },
		{ "9223372036854775807 + 1 < 0", 1 },
		{ "18446744073709551615 > 0", 1 },
		{ "1 == 1 == 1", 1 },
		{ "(0 - 9223372036854775807 - 1 < 1) * 2 + (9223372036854775807 > 0 - 2)", 3 },
		{ "price * 2305843009213693952 < 1", 1 },
		{ "x * 36028797018963968 > (0 - x) * 36028797018963968", 1 },
		{ "total > 5 && total < 3", 0 },
		{ "total > 5 || total < 3", 1 },
		{ "total < 5 || total < 3", 0 },
		{ "!(total < 5 && total > 3)", 1 },
		{ "!(total > 5 || price)", 0 },
		{ "!(total < 5) && !(total < 3)", 1 },
		{ "((price & 6) && x) + ((price & 4) || 0) * 2", 3 },
		{ "(change < price) * 1 + (change >= price) * 2 + (change <= -7) * 4 + (change > "
		  "-8) * 8",
		  1 + 4 + 8 },
		{ "(change == -7) + (change != -7) * 2 + !(change > 0) * 4 + !change * 8", 5 },
		{ "6 & 2 == 2", 0 },
		{ "x == 200 && port == 258 && total == 0x8000000000000000", 1 },
		{ "name == \"apple\"", 1 },
		{ "name != \"apple\"", 0 },
		{ "name == \"appl\"", 0 },
		{ "name == \"APPLE\"i", 1 },
		{ "name == \"apples\"", 0 },
		{ "name == \"appletree\"", 0 },
		{ "!(name != \"\")", 0 },
		{ "name == \"\\x61p\\x70le\"", 1 },
		{ "(name == \"apple\") + (name == \"apply\") * 2 + (name != \"bpple\") * 4", 5 },
		{ "name ~ \"^a.*e$\"", 1 },
		{ "name ~ \"P\"i && price", 1 },
		{ "name !~ \"p{3}\"", 1 },
		{ "1000 + (name ~ \"p\")", 1001 },
		{ "5 * (4 + (3 * (2 + (1 + (price - (x - (change + (name ~ \"l\"))))))))",
		  5 * (4 + (3 * (2 + (1 + (100 - (200 - (-7 + 1))))))) },
	};

	for (size_t i = 0; i < base_array_size(list); i++)
		cr_assert_eq(evaluate(parse(list[i].text)), list[i].value, "%s", list[i].text);
}

Test(bpfgen_expr, signs)
{
	struct bpfgen_expr *e = parse("price + change");

	cr_assert(bpfgen_expr_is_signed(e));
	cr_assert_eq(bpfgen_expr_record(e), RECORD);
	bpfgen_expr_destroy(e);
	e = parse("price + total");
	cr_assert_not(bpfgen_expr_is_signed(e));
	bpfgen_expr_destroy(e);
}

Test(bpfgen_expr, a_tree_without_a_text)
{
	struct bpfgen_layout *l = layout();
	struct bpfgen_expr *e = NULL;
	bpfgen_node sum, least, match;

	cr_assert_not(bpfgen_expr_create(l, &e, NULL));
	bpfgen_layout_destroy(l);
	sum = bpfgen_expr_binary(e, BPFGEN_ADD, bpfgen_expr_field(e, "price"),
				 bpfgen_expr_unary(e, BPFGEN_NEGATE,
						   bpfgen_expr_field(e, "change")));
	least = bpfgen_expr_binary(e, BPFGEN_GE, sum, bpfgen_expr_number(e, 107, true));
	match = bpfgen_expr_match(e, "name", "PP", 2, BPFGEN_ICASE);
	match = bpfgen_expr_binary(e, BPFGEN_AND, match, bpfgen_expr_equal(e, "name", "apple", 5));
	cr_assert_not(bpfgen_expr_finish(e, bpfgen_expr_binary(e, BPFGEN_AND, least, match), NULL));
	cr_assert_eq(evaluate(e), 1);
}

/* What is wrong with a tree: the first thing that was */
static const char *tree_error(void (*build)(struct bpfgen_expr *e, bpfgen_node *whole))
{
	static struct bpfgen_error err;
	struct bpfgen_layout *l = layout();
	struct bpfgen_expr *e = NULL;
	bpfgen_node whole = 0;

	cr_assert_not(bpfgen_expr_create(l, &e, &err));
	bpfgen_layout_destroy(l);
	build(e, &whole);
	cr_assert_lt(bpfgen_expr_finish(e, whole, &err), 0);
	bpfgen_expr_destroy(e);
	return err.text;
}

static void twice(struct bpfgen_expr *e, bpfgen_node *whole)
{
	bpfgen_node a = bpfgen_expr_number(e, 1, true);

	*whole = bpfgen_expr_binary(e, BPFGEN_ADD, a, a);
}

static void nothing(struct bpfgen_expr *e, bpfgen_node *whole)
{
}

static void unknown(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_field(e, "nobody");
}

static void text_as_number(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_field(e, "name");
}

static void number_as_text(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_match(e, "price", "a", 1, 0);
}

static void operation(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_unary(e, BPFGEN_ADD, bpfgen_expr_number(e, 1, true));
}

static void many(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_number(e, 1, true);
	for (int i = 0; i < BPFGEN_NODES_MAX; i++)
		*whole = bpfgen_expr_unary(e, BPFGEN_INVERT, *whole);
}

static void matches(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_number(e, 1, true);
	for (int i = 0; i <= BPFGEN_MATCHES_MAX; i++)
		*whole = bpfgen_expr_binary(e, BPFGEN_AND, *whole,
					    bpfgen_expr_match(e, "name", "a", 1, 0));
}

static void deep(struct bpfgen_expr *e, bpfgen_node *whole)
{
	*whole = bpfgen_expr_number(e, 1, true);
	for (int i = 0; i <= BPFGEN_NESTING_MAX; i++)
		*whole = bpfgen_expr_binary(e, BPFGEN_ADD, bpfgen_expr_number(e, 1, true), *whole);
}

Test(bpfgen_expr, errors_of_trees)
{
	cr_assert_str_eq(tree_error(twice), "an operand that does not exist, or is used twice");
	cr_assert_str_eq(tree_error(nothing), "an expression without parts");
	cr_assert_str_eq(tree_error(unknown), "there is no field nobody");
	cr_assert_str_eq(tree_error(text_as_number), "name is a text, not a number");
	cr_assert_str_eq(tree_error(number_as_text), "price is a number, not a text");
	cr_assert_str_eq(tree_error(operation), "no operation with one operand");
	cr_assert_str_eq(tree_error(many), "an expression has at most 4096 parts");
	cr_assert_str_eq(tree_error(matches), "an expression has at most 16 comparisons of texts");
	cr_assert_str_eq(tree_error(deep), "more than 40 operands wait for others");
}

/* As deep as may be: registers, then slots of the frame */
Test(bpfgen_expr, operands_that_wait)
{
	char text[2000] = "";

	for (int depth = 1; depth <= BPFGEN_NESTING_MAX; depth++) {
		int64_t wanted = 3;
		size_t n = 0;

		for (int i = 0; i < depth; i++)
			n += (size_t)sprintf(text + n, "(price + %d) - (", i);
		n += (size_t)sprintf(text + n, "3 + 0 * (name ~ \"p\")");
		for (int i = depth; i--;) {
			n += (size_t)sprintf(text + n, ")");
			wanted = 100 + i - wanted;
		}
		if (depth > BPFGEN_NESTING_MAX - 2)
			break;
		cr_assert_eq(evaluate(parse(text)), wanted, "depth %d", depth);
	}
}

/* --- errors of texts -------------------------------------------------------------------------- */

static void refused(const char *text, int error, size_t at, const char *why)
{
	struct bpfgen_layout *l = layout();
	struct bpfgen_error err = { 0 };
	struct bpfgen_expr *e = NULL;

	cr_assert_eq(bpfgen_expr_parse(text, l, &e, &err), error, "%s", text);
	cr_assert_null(e);
	cr_assert_str_eq(err.text, why);
	cr_assert_eq(err.at, at, "%s: at %zu", text, err.at);
	bpfgen_layout_destroy(l);
}

Test(bpfgen_expr, errors)
{
	refused("", -EINVAL, 0, "the expression ends where a number, a field or ( is needed");
	refused("1 +", -EINVAL, 3, "the expression ends where a number, a field or ( is needed");
	refused("1 + )", -EINVAL, 4, "a number, a field or ( is needed");
	refused("(1", -EINVAL, 2, "a ( without its )");
	refused("1)", -EINVAL, 1, "an operator or the end is needed");
	refused("1 2", -EINVAL, 2, "an operator or the end is needed");
	refused("price = 3", -EINVAL, 6, "an operator or the end is needed");
	refused("nobody + 1", -EINVAL, 0, "there is no field nobody");
	refused("017", -EINVAL, 0, "a number that begins with 0; octal ones do not exist here");
	refused("0x", -EINVAL, 0, "0x needs a hexadecimal digit");
	refused("12ab", -EINVAL, 0, "no number");
	refused("1.5", -EINVAL, 0, "no number");
	refused("18446744073709551616", -E2BIG, 0, "a number of more than 64 bits");
	refused("0x10000000000000000", -E2BIG, 0, "a number of more than 64 bits");
	refused("''", -EINVAL, 0, "a byte is needed between quotes");
	refused("'ab'", -EINVAL, 0, "one byte is needed between quotes");
	refused("'\\q'", -EINVAL, 0, "an unknown escape");
	refused("1 + name", -EINVAL, 8, "name is a text: ==, !=, ~ or !~ is needed");
	refused("name == 3", -EINVAL, 8, "a string in quotes is needed");
	refused("name ~ \"abc", -EINVAL, 6, "a string without its end");
	refused("name == \"\\q\"", -EINVAL, 12, "an unknown escape");
	refused("name == \"a\\0\"", -EINVAL, 4, "a text has no byte 0");
	refused("name ~ \"(\"", -EINVAL, 4, "a group without its )");
	refused("price ~ \"a\"", -EINVAL, 6, "an operator or the end is needed");
}

Test(bpfgen_expr, limits_of_the_text)
{
	char text[4000];
	size_t n = 0;

	memset(text, '(', sizeof(text));
	text[sizeof(text) - 1] = 0;
	refused(text, -E2BIG, 200, "more than 200 operators and brackets in one another");
	memset(text, '!', sizeof(text) - 1);
	refused(text, -E2BIG, 200, "more than 200 operators and brackets in one another");
	n = (size_t)sprintf(text, "name == \"");
	memset(text + n, 'a', 2000);
	strcpy(text + n + 2000, "\"");
	refused(text, -E2BIG, n + 1023, "a string of more than 1022 bytes");
}

/* --- layouts ---------------------------------------------------------------------------------- */

static void layout_refused(const char *text, int error, size_t at, const char *why)
{
	struct bpfgen_layout *l = NULL;
	struct bpfgen_error err = { 0 };

	cr_assert_eq(bpfgen_layout_parse(text, &l, &err), error, "%s", text);
	cr_assert_str_eq(err.text, why);
	cr_assert_eq(err.at, at, "%s: at %zu", text, err.at);
}

Test(bpfgen_expr, errors_of_layouts)
{
	layout_refused("", -EINVAL, 0, "a layout without fields");
	layout_refused("float x", -EINVAL, 0, "an unknown type");
	layout_refused("u32 x, u32 y", -EINVAL, 5, "a semicolon is needed between fields");
	layout_refused("u32 x; ;", -EINVAL, 7, "a type is needed");
	layout_refused("u32", -EINVAL, 3, "a name of 1 to 63 bytes is needed");
	layout_refused("u32 7", -EINVAL, 4, "a name of 1 to 63 bytes is needed");
	layout_refused("u32 x; u8 x", -EINVAL, 10, "two fields are called x");
	layout_refused("text x", -EINVAL, 5, "a number of bytes in [ ] is needed");
	layout_refused("text[] x", -EINVAL, 5, "a number is needed in [ ]");
	layout_refused("text[0] x", -EINVAL, 7, "a field without bytes");
	layout_refused("text[4 x", -EINVAL, 6, "a [ without its ]");
	layout_refused("pad[32761]", -E2BIG, 8, "a record has at most 32760 bytes");
	layout_refused("pad[32760]; u8 x", -E2BIG, 14, "a record has at most 32760 bytes");
	bpfgen_layout_destroy(NULL);
}

Test(bpfgen_expr, fields_outside_of_the_record)
{
	static const struct bpfgen_field fields[] = { { "a", BPFGEN_U64, false, 1, 0 } };
	struct bpfgen_layout l = { fields, 1, 8 };
	struct bpfgen_error err = { 0 };
	struct bpfgen_expr *e = NULL;

	cr_assert_eq(bpfgen_expr_create(&l, &e, &err), -EINVAL);
	cr_assert_str_eq(err.text, "field a lies outside of the record");
	l.size = BPFGEN_RECORD_MAX + 1;
	cr_assert_eq(bpfgen_expr_create(&l, &e, &err), -E2BIG);
	l.size = 9;
	cr_assert_not(bpfgen_expr_create(&l, &e, &err));
	bpfgen_expr_destroy(e);
	bpfgen_expr_destroy(NULL);
}
