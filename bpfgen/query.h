/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_QUERY_H
#define BPFGEN_QUERY_H

/*
 * Whole programs that search lines or records. Each of these appends the function "main", which
 * takes in r1 the address of a struct bpfgen_range, and in r2 its size, and finishes the code. It
 * gives what it finds through the helper `output`, number 1 (ebpf_helper_output()).
 *
 * The result r0 is -EINVAL if r2 is another size, or if records are not whole ones.
 */

#include "bpfgen/expr.h"
#include "bpfgen/regex.h"

/* The memory that is searched, and the offset to begin at */
struct bpfgen_range {
	uint64_t addr, length, from;
};

enum { BPFGEN_OUTPUT = 1 /* the number of the helper */ };

enum bpfgen_lines {
	BPFGEN_COUNT,  /* r0: how many lines have a match; no output */
	BPFGEN_PLACES, /* output: of each line, its offset and its length, 8 bytes each */
	BPFGEN_LINES,  /* output: each line, with its newline if it has one */
};

/*
 * r0 of BPFGEN_PLACES and BPFGEN_LINES is the offset from which to go on in another run: the length
 * if all is done, else that of the line which the output had no room for.
 */
int bpfgen_query_lines(const struct bpfgen_regex *re, enum bpfgen_lines what,
		       struct bpfgen_code **out, struct bpfgen_error *err);

/* r0: how many records there are for which @where is not 0 */
int bpfgen_query_count(struct bpfgen_expr *where, struct bpfgen_code **out,
		       struct bpfgen_error *err);
/*
 * Output: the records for which @where is not 0. r0 is the offset from which to go on: the length
 * if all is done, else that of the record which the output had no room for.
 */
int bpfgen_query_select(struct bpfgen_expr *where, struct bpfgen_code **out,
			struct bpfgen_error *err);

/* What bpfgen_query_aggregate() outputs: of no records, least is the largest number there is */
struct bpfgen_aggregate {
	uint64_t count, sum, least, greatest;
};

/*
 * Of @value over the records for which @where, which may be NULL, is not 0: r0 is 0, the output a
 * struct bpfgen_aggregate. Numbers are signed as @value is. Both are of the same layout.
 */
int bpfgen_query_aggregate(struct bpfgen_expr *value, struct bpfgen_expr *where,
			   struct bpfgen_code **out, struct bpfgen_error *err);

/* What bpfgen_query_top() finds: the value, and the offset of the record that has it */
struct bpfgen_top {
	uint64_t value, offset;
};

enum { BPFGEN_TOP_MAX = 1000 };

/*
 * The @count records with the greatest @value of those for which @where, which may be NULL, is not
 * 0: the greatest first, and of equal ones that which comes first. Behind the struct bpfgen_range
 * "main" needs room for @count of struct bpfgen_top, which r2 includes and which it may write to.
 * r0 is how many there are; the output is these. -EINVAL: no @count from 1 to BPFGEN_TOP_MAX
 */
int bpfgen_query_top(struct bpfgen_expr *value, struct bpfgen_expr *where, unsigned int count,
		     struct bpfgen_code **out, struct bpfgen_error *err);

#endif
