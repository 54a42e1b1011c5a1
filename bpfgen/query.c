/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that go through lines or records. Registers: r6 is where it is (the addr of the range
 * for lines), r7 the end, r8 and r9 as each says. The part of the frame that expressions do not use
 * holds what has no register.
 */
#include <errno.h>
#include <stddef.h>

#include "bpfgen/query.h"

enum { R_ADDR = 6, R_HERE = 6, R_END = 7, R_NEXT = 8, R_FROM = 8, R_LINE = 9, R_COUNT = 9 };
enum { R_START = 9, R_FRAME = 10 };
enum { LARGEST = -BPFGEN_EXPR_FRAME - (int)sizeof(struct bpfgen_aggregate) };

static_assert(sizeof(struct bpfgen_range) == 24 && sizeof(struct bpfgen_aggregate) == 32, "without "
											  "paddin"
											  "g");
static_assert(-LARGEST <= EBPF_FRAME_SIZE, "beside what expressions use");

/*
 * r6, r7, r8 = the range; to @bad if r2 is not its length and @more, or from lies behind its end.
 * r1 stays the range's address.
 */
static void range_read(struct bpfgen_code *c, size_t more, unsigned int bad)
{
	bpfgen_function(c, bpfgen_label(c), "main");
	bpfgen_if_imm(c, EBPF_JNE, 2, (int32_t)(sizeof(struct bpfgen_range) + more), bad);
	bpfgen_load(c, EBPF_DW, R_ADDR, 1, offsetof(struct bpfgen_range, addr));
	bpfgen_load(c, EBPF_DW, R_END, 1, offsetof(struct bpfgen_range, length));
	bpfgen_load(c, EBPF_DW, R_FROM, 1, offsetof(struct bpfgen_range, from));
	bpfgen_if(c, EBPF_JGT, R_FROM, R_END, bad);
}

static void bad_write(struct bpfgen_code *c, unsigned int bad)
{
	bpfgen_here(c, bad);
	bpfgen_alu_imm(c, EBPF_MOV, 0, -EINVAL);
	bpfgen_exit(c);
}

/* Finishes the code, or destroys it */
static int finish(struct bpfgen_code *c, int ret, struct bpfgen_code **out,
		  struct bpfgen_error *err)
{
	if (!ret)
		ret = bpfgen_code_finish(c, err);
	if (ret)
		bpfgen_code_destroy(c);
	else
		*out = c;
	return ret;
}

static int begin(struct bpfgen_code **c, struct bpfgen_error *err)
{
	int ret = bpfgen_code_create(c);

	return ret ? bpfgen_refuse(err, ret, BPFGEN_NOWHERE, "out of memory") : 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* r0 = what the function at @label finds from @from on */
static void search_call(struct bpfgen_code *c, unsigned int from, unsigned int label)
{
	bpfgen_alu(c, EBPF_MOV, 1, from);
	bpfgen_alu(c, EBPF_MOV, 2, R_END);
	bpfgen_alu(c, EBPF_SUB, 2, from);
	bpfgen_call(c, label);
}

/* Behind the search for a newline: r8 = the next line, r2 = the length of this one without it */
static void line_measure(struct bpfgen_code *c)
{
	unsigned int newline = bpfgen_label(c), end = bpfgen_label(c);

	bpfgen_if_imm(c, EBPF_JNE, 0, -1, newline);
	bpfgen_alu(c, EBPF_MOV, R_NEXT, R_END);
	bpfgen_alu(c, EBPF_MOV, 2, R_END);
	bpfgen_goto(c, end);
	bpfgen_here(c, newline);
	bpfgen_alu(c, EBPF_MOV, R_NEXT, 0);
	bpfgen_alu(c, EBPF_MOV, 2, 0);
	bpfgen_alu_imm(c, EBPF_SUB, 2, 1);
	bpfgen_here(c, end);
	bpfgen_alu(c, EBPF_SUB, 2, R_LINE);
}

/* r9 is the line, r8 the one behind it, r2 its length without the newline */
static void line_output(struct bpfgen_code *c, enum bpfgen_lines what, unsigned int full)
{
	bpfgen_alu(c, EBPF_MOV, 1, R_LINE);
	if (what == BPFGEN_PLACES) {
		bpfgen_alu(c, EBPF_SUB, 1, R_ADDR);
		bpfgen_store(c, EBPF_DW, R_FRAME, -16, 1);
		bpfgen_store(c, EBPF_DW, R_FRAME, -8, 2);
		bpfgen_alu(c, EBPF_MOV, 1, R_FRAME);
		bpfgen_alu_imm(c, EBPF_ADD, 1, -16);
		bpfgen_alu_imm(c, EBPF_MOV, 2, 16);
	} else {
		bpfgen_alu(c, EBPF_MOV, 2, R_NEXT);
		bpfgen_alu(c, EBPF_SUB, 2, R_LINE);
	}
	bpfgen_call_helper(c, BPFGEN_OUTPUT);
	bpfgen_if_imm(c, EBPF_JSLT, 0, 0, full);
}

static void lines_write(struct bpfgen_code *c, enum bpfgen_lines what, unsigned int line,
			unsigned int newline)
{
	unsigned int loop = bpfgen_label(c), done = bpfgen_label(c);
	unsigned int full = bpfgen_label(c), bad = bpfgen_label(c);

	range_read(c, 0, bad);
	bpfgen_alu(c, EBPF_ADD, R_NEXT, R_ADDR);
	bpfgen_alu(c, EBPF_ADD, R_END, R_ADDR);
	bpfgen_alu_imm(c, EBPF_MOV, R_COUNT, 0);
	bpfgen_here(c, loop);
	search_call(c, R_NEXT, line);
	bpfgen_if_imm(c, EBPF_JEQ, 0, -1, done);
	if (what == BPFGEN_COUNT) {
		bpfgen_alu(c, EBPF_MOV, R_NEXT, 0);
		search_call(c, R_NEXT, newline);
		bpfgen_alu_imm(c, EBPF_ADD, R_COUNT, 1);
		bpfgen_alu(c, EBPF_MOV, R_NEXT, 0);
		bpfgen_if_imm(c, EBPF_JNE, 0, -1, loop);
	} else {
		bpfgen_alu(c, EBPF_MOV, R_LINE, 0);
		search_call(c, R_LINE, newline);
		line_measure(c);
		line_output(c, what, full);
		bpfgen_goto(c, loop);
	}
	bpfgen_here(c, done);
	bpfgen_alu(c, EBPF_MOV, R_LINE, what == BPFGEN_COUNT ? R_COUNT : R_END);
	bpfgen_here(c, full);
	bpfgen_alu(c, EBPF_MOV, 0, R_LINE);
	if (what != BPFGEN_COUNT)
		bpfgen_alu(c, EBPF_SUB, 0, R_ADDR);
	bpfgen_exit(c);
	bad_write(c, bad);
}

/* The function that looks for a newline */
static int newline_write(struct bpfgen_code *c, unsigned int label, struct bpfgen_error *err)
{
	struct bpfgen_regex *re;
	int ret = bpfgen_regex_parse("\n", 1, 0, &re, err);

	if (ret)
		return ret;
	ret = bpfgen_regex_search(re, c, label, NULL, err);
	bpfgen_regex_destroy(re);
	return ret;
}

int bpfgen_query_lines(const struct bpfgen_regex *re, enum bpfgen_lines what,
		       struct bpfgen_code **out, struct bpfgen_error *err)
{
	struct bpfgen_code *c;
	unsigned int line, newline;
	int ret = begin(&c, err);

	if (ret)
		return ret;
	line = bpfgen_label(c);
	newline = bpfgen_label(c);
	lines_write(c, what, line, newline);
	ret = bpfgen_regex_line(re, c, line, NULL, err);
	if (!ret)
		ret = newline_write(c, newline, err);
	return finish(c, ret, out, err);
}

/* --- records ---------------------------------------------------------------------------------- */

/* r9 = the range's addr, r6 = the first record, r7 = the end; to @bad if a record is cut */
static void records_read(struct bpfgen_code *c, uint32_t size, size_t more, unsigned int bad)
{
	const unsigned int whole[] = { R_END, R_FROM };

	range_read(c, more, bad);
	for (int i = 0; i < 2; i++) {
		bpfgen_alu(c, EBPF_MOV, 0, whole[i]);
		bpfgen_alu_imm(c, EBPF_MOD, 0, (int32_t)size);
		bpfgen_if_imm(c, EBPF_JNE, 0, 0, bad);
	}
	bpfgen_alu(c, EBPF_MOV, R_START, R_ADDR);
	bpfgen_alu(c, EBPF_ADD, R_END, R_ADDR);
	bpfgen_alu(c, EBPF_ADD, R_HERE, R_FROM);
}

/* The labels of a loop over records */
struct loop {
	unsigned int again, next, done, bad;
	uint32_t size;
};

static void loop_begin(struct bpfgen_code *c, struct loop *l, struct bpfgen_expr *where)
{
	l->again = bpfgen_label(c);
	l->next = bpfgen_label(c);
	l->done = bpfgen_label(c);
	bpfgen_here(c, l->again);
	bpfgen_if(c, EBPF_JEQ, R_HERE, R_END, l->done);
	if (where)
		bpfgen_expr_branch(where, c, R_HERE, false, l->next);
}

static void loop_end(struct bpfgen_code *c, const struct loop *l)
{
	bpfgen_here(c, l->next);
	bpfgen_alu_imm(c, EBPF_ADD, R_HERE, (int32_t)l->size);
	bpfgen_goto(c, l->again);
	bpfgen_here(c, l->done);
}

/* A program over the records of @of, with @more bytes of arguments: what comes before its loop */
static int records_begin(struct bpfgen_code **c, struct loop *l, const struct bpfgen_expr *of,
			 size_t more, struct bpfgen_error *err)
{
	int ret = begin(c, err);

	if (ret)
		return ret;
	*l = (struct loop){ .size = bpfgen_expr_record(of), .bad = bpfgen_label(*c) };
	records_read(*c, l->size, more, l->bad);
	return 0;
}

/* And what comes behind it; r0 is the result. @more may be NULL */
static int records_end(struct bpfgen_code *c, const struct loop *l, struct bpfgen_expr *of,
		       struct bpfgen_expr *more, struct bpfgen_code **out, struct bpfgen_error *err)
{
	int ret;

	bpfgen_exit(c);
	bad_write(c, l->bad);
	ret = bpfgen_expr_functions(of, c, err);
	if (!ret && more)
		ret = bpfgen_expr_functions(more, c, err);
	return finish(c, ret, out, err);
}

/* @where may be NULL */
static int records_same(const struct bpfgen_expr *value, const struct bpfgen_expr *where,
			struct bpfgen_error *err)
{
	if (!where || bpfgen_expr_record(where) == bpfgen_expr_record(value))
		return 0;
	return bpfgen_refuse(err, -EINVAL, BPFGEN_NOWHERE, "records of two sizes");
}

int bpfgen_query_count(struct bpfgen_expr *where, struct bpfgen_code **out,
		       struct bpfgen_error *err)
{
	struct bpfgen_code *c;
	struct loop l;
	int ret = records_begin(&c, &l, where, 0, err);

	if (ret)
		return ret;
	bpfgen_alu_imm(c, EBPF_MOV, R_COUNT, 0);
	loop_begin(c, &l, NULL);
	bpfgen_expr_truth(where, c, R_HERE);
	bpfgen_alu(c, EBPF_ADD, R_COUNT, 0);
	loop_end(c, &l);
	bpfgen_alu(c, EBPF_MOV, 0, R_COUNT);
	return records_end(c, &l, where, NULL, out, err);
}

int bpfgen_query_select(struct bpfgen_expr *where, struct bpfgen_code **out,
			struct bpfgen_error *err)
{
	struct bpfgen_code *c;
	struct loop l;
	int ret = records_begin(&c, &l, where, 0, err);

	if (ret)
		return ret;
	loop_begin(c, &l, where);
	bpfgen_alu(c, EBPF_MOV, 1, R_HERE);
	bpfgen_alu_imm(c, EBPF_MOV, 2, (int32_t)l.size);
	bpfgen_call_helper(c, BPFGEN_OUTPUT);
	bpfgen_if_imm(c, EBPF_JSLT, 0, 0, l.done);
	loop_end(c, &l);
	bpfgen_alu(c, EBPF_MOV, 0, R_HERE);
	bpfgen_alu(c, EBPF_SUB, 0, R_START);
	return records_end(c, &l, where, NULL, out, err);
}

/* --- aggregates ------------------------------------------------------------------------------- */

static int16_t member(size_t offset)
{
	return (int16_t)(LARGEST + (int)offset);
}

#define MEMBER(name) member(offsetof(struct bpfgen_aggregate, name))

static void member_set(struct bpfgen_code *c, int16_t to, uint64_t value)
{
	bpfgen_constant(c, 0, value);
	bpfgen_store(c, EBPF_DW, R_FRAME, to, 0);
}

/* What r0 is less or greater than gets it */
static void member_replace(struct bpfgen_code *c, int16_t to, enum ebpf_jump unless)
{
	unsigned int stays = bpfgen_label(c);

	bpfgen_load(c, EBPF_DW, 1, R_FRAME, to);
	bpfgen_if(c, unless, 0, 1, stays);
	bpfgen_store(c, EBPF_DW, R_FRAME, to, 0);
	bpfgen_here(c, stays);
}

static void aggregate_begin(struct bpfgen_code *c, bool is_signed)
{
	member_set(c, MEMBER(count), 0);
	member_set(c, MEMBER(sum), 0);
	member_set(c, MEMBER(least), is_signed ? INT64_MAX : UINT64_MAX);
	member_set(c, MEMBER(greatest), is_signed ? (uint64_t)INT64_MIN : 0);
}

static void aggregate_add(struct bpfgen_code *c, bool is_signed)
{
	bpfgen_load(c, EBPF_DW, 1, R_FRAME, MEMBER(count));
	bpfgen_alu_imm(c, EBPF_ADD, 1, 1);
	bpfgen_store(c, EBPF_DW, R_FRAME, MEMBER(count), 1);
	bpfgen_load(c, EBPF_DW, 1, R_FRAME, MEMBER(sum));
	bpfgen_alu(c, EBPF_ADD, 1, 0);
	bpfgen_store(c, EBPF_DW, R_FRAME, MEMBER(sum), 1);
	member_replace(c, MEMBER(least), is_signed ? EBPF_JSGE : EBPF_JGE);
	member_replace(c, MEMBER(greatest), is_signed ? EBPF_JSLE : EBPF_JLE);
}

static void aggregate_write(struct bpfgen_code *c, struct loop *l, struct bpfgen_expr *value,
			    struct bpfgen_expr *where)
{
	bool is_signed = bpfgen_expr_is_signed(value);
	unsigned int given = bpfgen_label(c);

	aggregate_begin(c, is_signed);
	loop_begin(c, l, where);
	bpfgen_expr_value(value, c, R_HERE);
	aggregate_add(c, is_signed);
	loop_end(c, l);
	bpfgen_alu(c, EBPF_MOV, 1, R_FRAME);
	bpfgen_alu_imm(c, EBPF_ADD, 1, LARGEST);
	bpfgen_alu_imm(c, EBPF_MOV, 2, sizeof(struct bpfgen_aggregate));
	bpfgen_call_helper(c, BPFGEN_OUTPUT);
	bpfgen_if_imm(c, EBPF_JSLT, 0, 0, given);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	bpfgen_here(c, given);
}

int bpfgen_query_aggregate(struct bpfgen_expr *value, struct bpfgen_expr *where,
			   struct bpfgen_code **out, struct bpfgen_error *err)
{
	struct bpfgen_code *c;
	struct loop l;
	int ret;

	ret = records_same(value, where, err);
	if (!ret)
		ret = records_begin(&c, &l, value, 0, err);
	if (ret)
		return ret;
	aggregate_write(c, &l, value, where);
	return records_end(c, &l, value, where, out, err);
}

/* --- the greatest ----------------------------------------------------------------------------- */

/* r8 is how many bytes of the table are in use; the table's address is in the frame */
enum { R_USED = 8, TABLE = -BPFGEN_EXPR_FRAME - 8, ENTRY = sizeof(struct bpfgen_top) };

static_assert(sizeof(struct bpfgen_top) == 16, "without padding");

/* r2 = the place for one more entry, the last one's if all are in use; to @next if r0 is no more */
static void top_room(struct bpfgen_code *c, unsigned int count, bool is_signed, unsigned int next)
{
	unsigned int room = bpfgen_label(c), end = bpfgen_label(c);

	bpfgen_load(c, EBPF_DW, 1, R_FRAME, TABLE);
	bpfgen_alu(c, EBPF_MOV, 2, 1);
	bpfgen_alu(c, EBPF_ADD, 2, R_USED);
	bpfgen_if_imm(c, EBPF_JNE, R_USED, (int32_t)(count * ENTRY), room);
	bpfgen_alu_imm(c, EBPF_SUB, 2, ENTRY);
	bpfgen_load(c, EBPF_DW, 3, 2, 0);
	bpfgen_if(c, is_signed ? EBPF_JSLE : EBPF_JLE, 0, 3, next);
	bpfgen_goto(c, end);
	bpfgen_here(c, room);
	bpfgen_alu_imm(c, EBPF_ADD, R_USED, ENTRY);
	bpfgen_here(c, end);
}

/* Those that are less make way, from r2 on down to the table's beginning in r1 */
static void top_insert(struct bpfgen_code *c, bool is_signed)
{
	unsigned int again = bpfgen_label(c), place = bpfgen_label(c);

	bpfgen_here(c, again);
	bpfgen_if(c, EBPF_JEQ, 2, 1, place);
	bpfgen_load(c, EBPF_DW, 3, 2, -ENTRY);
	bpfgen_if(c, is_signed ? EBPF_JSLE : EBPF_JLE, 0, 3, place);
	bpfgen_load(c, EBPF_DW, 4, 2, -ENTRY + 8);
	bpfgen_store(c, EBPF_DW, 2, 0, 3);
	bpfgen_store(c, EBPF_DW, 2, 8, 4);
	bpfgen_alu_imm(c, EBPF_SUB, 2, ENTRY);
	bpfgen_goto(c, again);
	bpfgen_here(c, place);
	bpfgen_store(c, EBPF_DW, 2, 0, 0);
	bpfgen_alu(c, EBPF_MOV, 3, R_HERE);
	bpfgen_alu(c, EBPF_SUB, 3, R_START);
	bpfgen_store(c, EBPF_DW, 2, 8, 3);
}

static void top_write(struct bpfgen_code *c, struct loop *l, struct bpfgen_expr *value,
		      struct bpfgen_expr *where, unsigned int count)
{
	bool is_signed = bpfgen_expr_is_signed(value);
	unsigned int given = bpfgen_label(c);

	bpfgen_alu_imm(c, EBPF_ADD, 1, sizeof(struct bpfgen_range));
	bpfgen_store(c, EBPF_DW, R_FRAME, TABLE, 1);
	bpfgen_alu_imm(c, EBPF_MOV, R_USED, 0);
	loop_begin(c, l, where);
	bpfgen_expr_value(value, c, R_HERE);
	top_room(c, count, is_signed, l->next);
	top_insert(c, is_signed);
	loop_end(c, l);
	bpfgen_load(c, EBPF_DW, 1, R_FRAME, TABLE);
	bpfgen_alu(c, EBPF_MOV, 2, R_USED);
	bpfgen_call_helper(c, BPFGEN_OUTPUT);
	bpfgen_if_imm(c, EBPF_JSLT, 0, 0, given);
	bpfgen_alu(c, EBPF_MOV, 0, R_USED);
	bpfgen_alu_imm(c, EBPF_DIV, 0, ENTRY);
	bpfgen_here(c, given);
}

int bpfgen_query_top(struct bpfgen_expr *value, struct bpfgen_expr *where, unsigned int count,
		     struct bpfgen_code **out, struct bpfgen_error *err)
{
	struct bpfgen_code *c;
	struct loop l;
	int ret = records_same(value, where, err);

	if (!ret && (!count || count > BPFGEN_TOP_MAX))
		ret = bpfgen_refuse(err, -EINVAL, BPFGEN_NOWHERE, "no number from 1 to 1000");
	if (!ret)
		ret = records_begin(&c, &l, value, (size_t)count * ENTRY, err);
	if (ret)
		return ret;
	top_write(c, &l, value, where, count);
	return records_end(c, &l, value, where, out, err);
}
