/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole programs: lines and records that are counted, given out, and gone on with in another run.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/query.h"
#include "tests/bpfgen/both.h"

#define ADDR 0x20000u
#define ARGS 0x90000u

static struct both both;
static uint8_t memory[1 << 18] __attribute__((aligned(64)));

/* The result of a program over the first @len bytes of memory; output is in both */
static int64_t run(struct bpfgen_code *c, size_t len, uint64_t from, size_t args)
{
	struct bpfgen_range range[2] = { { ADDR, len, from }, { 0, 0, 0 } };
	const struct ebpf_region regions[] = {
		{ memory, ADDR, base_max(len, (size_t)1), 0, EBPF_MAY_READ },
		{ range, ARGS, sizeof(range), 0, EBPF_MAY_READ },
	};
	const uint64_t arg[5] = { ARGS, args };
	const char *wrong = both_open(&both, c);
	uint64_t value = 0;

	if (!wrong)
		wrong = both_run(&both, "main", arg, regions, 2, &value);
	cr_assert_null(wrong, "%s", wrong);
	both_close(&both);
	return (int64_t)value;
}

static struct bpfgen_code *lines(const char *pattern, enum bpfgen_lines what)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c = NULL;

	cr_assert_not(bpfgen_regex_parse(pattern, strlen(pattern), 0, &re, &err), "%s", err.text);
	cr_assert_not(bpfgen_query_lines(re, what, &c, &err), "%s", err.text);
	bpfgen_regex_destroy(re);
	return c;
}

static const char text[] = "one\ntwo\n\nthree\nfour and two";

static int64_t over_text(const char *pattern, enum bpfgen_lines what, uint64_t from)
{
	struct bpfgen_code *c = lines(pattern, what);
	int64_t value;

	memcpy(memory, text, sizeof(text));
	value = run(c, sizeof(text) - 1, from, sizeof(struct bpfgen_range));
	bpfgen_code_destroy(c);
	return value;
}

Test(bpfgen_query, lines_are_counted)
{
	cr_assert_eq(over_text("o", BPFGEN_COUNT, 0), 3);
	cr_assert_eq(over_text("two$", BPFGEN_COUNT, 0), 2);
	cr_assert_eq(over_text("^$", BPFGEN_COUNT, 0), 1);
	cr_assert_eq(over_text("", BPFGEN_COUNT, 0), 5);
	cr_assert_eq(over_text("zz", BPFGEN_COUNT, 0), 0);
	cr_assert_eq(over_text("o", BPFGEN_COUNT, 4), 2);
	cr_assert_eq(over_text("o", BPFGEN_COUNT, sizeof(text) - 1), 0);
	cr_assert_eq(both.output_len, 0);
}

Test(bpfgen_query, places_of_lines)
{
	const uint64_t wanted[] = { 4, 3, 15, 12 };

	cr_assert_eq(over_text("two", BPFGEN_PLACES, 0), sizeof(text) - 1);
	cr_assert_eq(both.output_len, sizeof(wanted));
	cr_assert_arr_eq(both.output, wanted, sizeof(wanted));
}

Test(bpfgen_query, lines_themselves)
{
	static const char wanted[] = "two\nfour and two";

	cr_assert_eq(over_text("two", BPFGEN_LINES, 0), sizeof(text) - 1);
	cr_assert_eq(both.output_len, strlen(wanted));
	cr_assert_arr_eq(both.output, wanted, strlen(wanted));
}

/* Lines that the output has no room for are found by the next run */
Test(bpfgen_query, lines_in_several_runs, .timeout = 30)
{
	struct bpfgen_code *c = lines("x", BPFGEN_LINES);
	size_t given = 0;
	int runs = 0;

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = i % 16 == 15 ? '\n' : i % 32 < 16 ? 'x' : '.';
	for (uint64_t from = 0; from < sizeof(memory); runs++) {
		int64_t next = run(c, sizeof(memory), from, sizeof(struct bpfgen_range));

		cr_assert_gt(next, (int64_t)from);
		from = (uint64_t)next;
		given += both.output_len;
	}
	cr_assert_eq(given, sizeof(memory) / 2);
	cr_assert_eq(runs, 2);
	bpfgen_code_destroy(c);
}

Test(bpfgen_query, arguments_that_are_wrong)
{
	struct bpfgen_code *c = lines("x", BPFGEN_COUNT);

	cr_assert_eq(run(c, 16, 17, sizeof(struct bpfgen_range)), -EINVAL);
	cr_assert_eq(run(c, 16, 0, sizeof(struct bpfgen_range) - 1), -EINVAL);
	cr_assert_eq(run(c, 16, 16, sizeof(struct bpfgen_range)), 0);
	bpfgen_code_destroy(c);
}

/* --- records ---------------------------------------------------------------------------------- */

struct item {
	uint32_t id;
	int32_t price;
	char name[8];
};

enum { ITEMS = 100 };

static struct bpfgen_expr *expr(const char *words)
{
	struct bpfgen_layout *l = NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_expr *e = NULL;

	cr_assert_not(bpfgen_layout_parse("u32 id; s32 price; text[8] name", &l, &err));
	cr_assert_not(bpfgen_expr_parse(words, l, &e, &err), "%s", err.text);
	bpfgen_layout_destroy(l);
	return e;
}

static void items_fill(void)
{
	struct item *items = (void *)memory;

	for (uint32_t i = 0; i < ITEMS; i++) {
		items[i] = (struct item){ i, (int32_t)i - 50, "" };
		strcpy(items[i].name, i % 3 ? "pear" : "apple");
	}
}

static int64_t over_items(int (*make)(struct bpfgen_expr *, struct bpfgen_code **,
				      struct bpfgen_error *),
			  const char *where, size_t bytes, uint64_t from)
{
	struct bpfgen_expr *e = expr(where);
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c = NULL;
	int64_t value;

	cr_assert_not(make(e, &c, &err), "%s", err.text);
	items_fill();
	value = run(c, bytes, from, sizeof(struct bpfgen_range));
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(e);
	return value;
}

Test(bpfgen_query, records_are_counted)
{
	const size_t all = ITEMS * sizeof(struct item);

	cr_assert_eq(over_items(bpfgen_query_count, "price < 0", all, 0), 50);
	cr_assert_eq(over_items(bpfgen_query_count, "name ~ \"^ap\" && price >= 0", all, 0), 17);
	cr_assert_eq(over_items(bpfgen_query_count, "1", all, 16), 99);
	cr_assert_eq(over_items(bpfgen_query_count, "1", 0, 0), 0);
	cr_assert_eq(over_items(bpfgen_query_count, "1", all - 1, 0), -EINVAL);
	cr_assert_eq(over_items(bpfgen_query_count, "1", all, 8), -EINVAL);
}

Test(bpfgen_query, records_are_given)
{
	const size_t all = ITEMS * sizeof(struct item);
	const struct item *given = (const void *)both.output;

	cr_assert_eq(over_items(bpfgen_query_select, "id % 10 == 3", all, 0), all);
	cr_assert_eq(both.output_len, 10 * sizeof(struct item));
	for (uint32_t i = 0; i < 10; i++)
		cr_assert_eq(given[i].id, 10 * i + 3);
}

Test(bpfgen_query, records_in_several_runs, .timeout = 30)
{
	struct bpfgen_expr *e = expr("id == id");
	struct bpfgen_code *c = NULL;
	int64_t value;

	cr_assert_not(bpfgen_query_select(e, &c, NULL));
	value = run(c, 1 << 17, 0, sizeof(struct bpfgen_range));
	cr_assert_eq(value, 1 << 16);
	cr_assert_eq(both.output_len, 1 << 16);
	cr_assert_eq(run(c, 1 << 17, (uint64_t)value, sizeof(struct bpfgen_range)), 1 << 17);
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(e);
}

static struct bpfgen_aggregate aggregate(const char *value, const char *where)
{
	struct bpfgen_expr *v = expr(value), *w = where ? expr(where) : NULL;
	struct bpfgen_aggregate a = { 0 };
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c = NULL;

	cr_assert_not(bpfgen_query_aggregate(v, w, &c, &err), "%s", err.text);
	items_fill();
	cr_assert_eq(run(c, ITEMS * sizeof(struct item), 0, sizeof(struct bpfgen_range)), 0);
	cr_assert_eq(both.output_len, sizeof(a));
	memcpy(&a, both.output, sizeof(a));
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(v);
	bpfgen_expr_destroy(w);
	return a;
}

Test(bpfgen_query, aggregates)
{
	struct bpfgen_aggregate a = aggregate("price * 2", "name == \"pear\"");
	int64_t sum = 0;

	for (int i = 0; i < ITEMS; i++)
		sum += i % 3 ? 2 * (i - 50) : 0;
	cr_assert_eq(a.count, 66);
	cr_assert_eq((int64_t)a.sum, sum);
	cr_assert_eq((int64_t)a.least, -98);
	cr_assert_eq((int64_t)a.greatest, 96);
	a = aggregate("price + 0u", NULL);
	cr_assert_eq(a.count, ITEMS);
	cr_assert_eq(a.least, 0);
	cr_assert_eq(a.greatest, UINT64_MAX);
	a = aggregate("price", "0");
	cr_assert(a.count == 0 && a.sum == 0);
	cr_assert_eq((int64_t)a.least, INT64_MAX);
	cr_assert_eq((int64_t)a.greatest, INT64_MIN);
}

/* The table stands behind the range */
static int64_t top(const char *value, const char *where, unsigned int count, size_t items)
{
	static struct bpfgen_top table[ITEMS];
	struct bpfgen_range range = { ADDR, items * sizeof(struct item), 0 };
	const size_t room = count * sizeof(table[0]);
	const struct ebpf_region regions[] = {
		{ memory, ADDR, ITEMS * sizeof(struct item), 0, EBPF_MAY_READ },
		{ &range, ARGS, sizeof(range), 0, EBPF_MAY_READ },
		{ table, ARGS + sizeof(range), room, 0, EBPF_MAY_READ | EBPF_MAY_WRITE },
	};
	const uint64_t arg[5] = { ARGS, sizeof(range) + room };
	struct bpfgen_expr *v = expr(value), *w = where ? expr(where) : NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c = NULL;
	const char *wrong;
	uint64_t found = 0;

	items_fill();
	cr_assert_not(bpfgen_query_top(v, w, count, &c, &err), "%s", err.text);
	wrong = both_open(&both, c);
	if (!wrong)
		wrong = both_run(&both, "main", arg, regions, 3, &found);
	cr_assert_null(wrong, "%s", wrong);
	both_close(&both);
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(v);
	bpfgen_expr_destroy(w);
	cr_assert_eq(both.output_len, found * sizeof(struct bpfgen_top));
	return (int64_t)found;
}

static struct bpfgen_top top_get(size_t i)
{
	struct bpfgen_top t;

	memcpy(&t, both.output + i * sizeof(t), sizeof(t));
	return t;
}

static uint64_t item_at(size_t i)
{
	return i * sizeof(struct item);
}

Test(bpfgen_query, the_greatest)
{
	/* price is i - 50, the name "pear" but for each third */
	cr_assert_eq(top("price", NULL, 3, ITEMS), 3);
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq((int64_t)top_get(i).value, 49 - (int64_t)i);
		cr_assert_eq(top_get(i).offset, item_at(ITEMS - 1 - i));
	}
	cr_assert_eq(top("-price", "name == \"pear\"", 2, ITEMS), 2);
	cr_assert_eq((int64_t)top_get(0).value, 49);
	cr_assert_eq(top_get(0).offset, item_at(1));
	cr_assert_eq((int64_t)top_get(1).value, 48);
	/* unsigned, -1 is the greatest */
	cr_assert_eq(top("price + 0u", NULL, 1, ITEMS), 1);
	cr_assert_eq(top_get(0).value, UINT64_MAX);
	cr_assert_eq(top_get(0).offset, item_at(49));
	/* of equal ones the first */
	cr_assert_eq(top("price / 10", "price >= 0", 4, ITEMS), 4);
	for (size_t i = 0; i < 4; i++) {
		cr_assert_eq(top_get(i).value, 4);
		cr_assert_eq(top_get(i).offset, item_at(90 + i));
	}
}

Test(bpfgen_query, the_greatest_of_few)
{
	cr_assert_eq(top("price", NULL, 5, 3), 3);
	cr_assert_eq((int64_t)top_get(0).value, -48);
	cr_assert_eq((int64_t)top_get(2).value, -50);
	cr_assert_eq(top("price", "0", 5, ITEMS), 0);
	cr_assert_eq(top("price", NULL, 5, 0), 0);
	cr_assert_eq(top("price", NULL, ITEMS, ITEMS), ITEMS);
	for (size_t i = 0; i < ITEMS; i++)
		cr_assert_eq(top_get(i).offset, item_at(ITEMS - 1 - i));
}

Test(bpfgen_query, no_number_of_the_greatest)
{
	struct bpfgen_expr *v = expr("id");
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c = NULL;

	cr_assert_eq(bpfgen_query_top(v, NULL, 0, &c, &err), -EINVAL);
	cr_assert_eq(bpfgen_query_top(v, NULL, BPFGEN_TOP_MAX + 1, &c, &err), -EINVAL);
	cr_assert_str_eq(err.text, "no number from 1 to 1000");
	bpfgen_expr_destroy(v);
}

Test(bpfgen_query, records_of_two_sizes)
{
	struct bpfgen_layout *l = NULL;
	struct bpfgen_expr *v = expr("id"), *w = NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c = NULL;

	cr_assert_not(bpfgen_layout_parse("u32 id", &l, &err));
	cr_assert_not(bpfgen_expr_parse("id", l, &w, &err));
	cr_assert_eq(bpfgen_query_aggregate(v, w, &c, &err), -EINVAL);
	cr_assert_str_eq(err.text, "records of two sizes");
	bpfgen_layout_destroy(l);
	bpfgen_expr_destroy(v);
	bpfgen_expr_destroy(w);
}
