/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Generated queries beside what a program would do without them: lines with a match counted by
 * regexec(3), records counted by native C.
 *
 *	queries [TURNS]
 *
 * The two take turns, and the best of all turns counts, for others use the machine, too. Making
 * the code and loading it is measured by itself.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/run.h"
#include "bpfgen/query.h"

enum { TEXT = 1 << 24, RECORDS = 1 << 19 };
#define ADDR 0x100000000u
#define ARGS 0x10000u

struct item {
	uint32_t id;
	int32_t price, qty;
	char name[12];
};

static char *memory;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "queries: %s: %s\n", what, why);
	exit(1);
}

/* --- the query as code ------------------------------------------------------------------------ */

static struct ebpf_object *query_load(const char *text, bool lines)
{
	struct bpfgen_layout *layout = NULL;
	struct bpfgen_regex *re = NULL;
	struct bpfgen_expr *e = NULL;
	struct bpfgen_code *c = NULL;
	struct bpfgen_error err;
	struct ebpf_object *obj;
	struct ebpf_error why;
	int ret;

	if (lines) {
		ret = bpfgen_regex_parse(text, strlen(text), 0, &re, &err);
		ret = ret ? ret : bpfgen_query_lines(re, BPFGEN_COUNT, &c, &err);
	} else {
		ret = bpfgen_layout_parse("u32 id; s32 price; s32 qty; text[12] name", &layout,
					  &err);
		ret = ret ? ret : bpfgen_expr_parse(text, layout, &e, &err);
		ret = ret ? ret : bpfgen_query_count(e, &c, &err);
	}
	if (ret)
		die(text, err.text);
	if (bpfgen_code_object(c, NULL, 0, &obj, &why))
		die(text, why.text);
	bpfgen_code_destroy(c);
	bpfgen_expr_destroy(e);
	bpfgen_regex_destroy(re);
	bpfgen_layout_destroy(layout);
	return obj;
}

static uint64_t query_run(struct ebpf_run *run, const struct ebpf_object *obj, size_t len)
{
	static struct bpfgen_range range __attribute__((aligned(8)));
	const struct ebpf_region regions[] = {
		{ memory, ADDR, TEXT, 0, EBPF_MAY_READ },
		{ &range, ARGS, sizeof(range), 0, EBPF_MAY_READ },
	};
	struct ebpf_params params = { .arg = { ARGS, sizeof(range) },
				      .regions = regions,
				      .count = 2 };
	struct ebpf_result result;

	range = (struct bpfgen_range){ ADDR, len, 0 };
	if (ebpf_run_start(run, obj, &params) ||
	    ebpf_run_continue(run, UINT64_MAX >> 1, &result) != EBPF_DONE)
		die("a query", "did not come to its end");
	return result.value;
}

/* --- the same without it ---------------------------------------------------------------------- */

static uint64_t lines_count(const char *pattern)
{
	char *at = memory, *end;
	uint64_t count = 0;
	regmatch_t m;
	regex_t re;

	if (regcomp(&re, pattern, REG_EXTENDED))
		die(pattern, "regcomp");
	for (; at < memory + TEXT; at = end + 1) {
		end = memchr(at, '\n', (size_t)(memory + TEXT - at));
		end = end ? end : memory + TEXT;
		m = (regmatch_t){ 0, (regoff_t)(end - at) };
		count += !regexec(&re, at, 1, &m, REG_STARTEND);
	}
	regfree(&re);
	return count;
}

__attribute__((noinline)) static uint64_t cheap_count(const char *unused)
{
	const struct item *items = (const void *)memory;
	uint64_t count = 0;

	for (size_t i = 0; i < RECORDS; i++)
		count += items[i].price > 10 && (int64_t)items[i].qty * items[i].price < 5000;
	return count;
}

__attribute__((noinline)) static uint64_t pear_count(const char *unused)
{
	const struct item *items = (const void *)memory;
	uint64_t count = 0;

	for (size_t i = 0; i < RECORDS; i++)
		count += items[i].id % 3 == 1 && !strcmp(items[i].name, "pear");
	return count;
}

/* --- what is searched ------------------------------------------------------------------------- */

static uint64_t random_next(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void text_fill(void)
{
	static const char letters[] = "eeeettaaooiinnsshhrrddlluucmfw      .\n";

	for (size_t i = 0; i < TEXT; i++)
		memory[i] = letters[random_next() % (sizeof(letters) - 1)];
}

static void records_fill(void)
{
	static const char *const names[] = { "apple", "pear", "plum", "peach" };
	struct item *items = (void *)memory;

	for (size_t i = 0; i < RECORDS; i++) {
		items[i] = (struct item){ (uint32_t)random_next(), (int32_t)(random_next() % 200),
					  (int32_t)(random_next() % 100), "" };
		strcpy(items[i].name, names[random_next() % 4]);
	}
}

static const struct test {
	const char *text;
	uint64_t (*native)(const char *text);
} tests[] = {
	{ "error", lines_count },
	{ "^the|ing$", lines_count },
	{ "h[a-z]*d .*w", lines_count },
	{ "(the|her|an)+d", lines_count },
	{ "[^aeiou .]{6}", lines_count },
	{ "price > 10 && qty * price < 5000", cheap_count },
	{ "id % 3 == 1 && name == \"pear\"", pear_count },
};

static void test_run(const struct test *t, struct ebpf_run *run, int turns)
{
	bool lines = t->native == lines_count;
	size_t len = lines ? TEXT : RECORDS * sizeof(struct item);
	double best[3] = { 1e18, 1e18, 1e18 };
	uint64_t ours = 0, theirs = 0;

	for (int i = 0; i < turns; i++) {
		double at[4];
		struct ebpf_object *obj;

		at[0] = now_ns();
		obj = query_load(t->text, lines);
		at[1] = now_ns();
		ours = query_run(run, obj, len);
		at[2] = now_ns();
		theirs = t->native(t->text);
		at[3] = now_ns();
		for (int j = 0; j < 3; j++)
			best[j] = at[j + 1] - at[j] < best[j] ? at[j + 1] - at[j] : best[j];
		ebpf_object_destroy(obj);
	}
	if (ours != theirs)
		die(t->text, "different results");
	len = lines ? len : RECORDS;
	printf("%-34s %9.2f %9.2f %9.2f %9.0f\n", t->text, best[2] / (double)len,
	       best[1] / (double)len, best[1] / best[2], best[0] / 1e3);
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : 5;
	struct ebpf_run *run;

	memory = aligned_alloc(4096, TEXT);
	if (!memory || ebpf_run_create(&run))
		die("memory", "there is too little");
	printf("%-34s %9s %9s %9s %9s\n", "ns for a byte, or a record", "regexec/C", "generated",
	       "ratio", "us to make");
	text_fill();
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (tests[i].native != lines_count)
			records_fill();
		test_run(&tests[i], run, turns);
	}
	ebpf_run_destroy(run);
	free(memory);
	return 0;
}
