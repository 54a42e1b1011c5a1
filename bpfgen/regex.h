/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFGEN_REGEX_H
#define BPFGEN_REGEX_H

/*
 * Regular expressions as code: parsed, made a DFA with as few states as there can be, and written
 * as eBPF that reads each byte once. docs/active-code.md has the syntax, which is that of POSIX
 * extended expressions with escapes as in Perl.
 */

#include "bpfgen/code.h"

struct bpfgen_regex;

enum bpfgen_regex_flags { BPFGEN_ICASE = 1 /* small and capital letters of ASCII are the same */ };

/* Limits of one expression; what is over them is refused with -E2BIG */
enum {
	BPFGEN_PATTERN_MAX = 4096,	 /* bytes of its text */
	BPFGEN_REPEAT_MAX = 1000,	 /* {m,n} */
	BPFGEN_GROUPS_MAX = 200,	 /* inside of one another */
	BPFGEN_NFA_STATES_MAX = 1 << 14, /* x{1000} has a thousand */
	BPFGEN_DFA_STATES_MAX = 4096,	 /* before they are made as few as can be */
};

/* -EINVAL, -E2BIG: @err says what is wrong, and where; -ENOMEM */
int bpfgen_regex_parse(const char *pattern, size_t len, unsigned int flags,
		       struct bpfgen_regex **out, struct bpfgen_error *err);
void bpfgen_regex_destroy(struct bpfgen_regex *re);

/*
 * Each appends a function of r1, an address, and r2, a number of bytes from there on. @name as
 * bpfgen_function() takes it. They use no helper. -E2BIG: the DFA has too many states; -ENOMEM.
 *
 * search: r0 is the address behind the match that ends first, or -1 if there is no match.
 */
int bpfgen_regex_search(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
			const char *name, struct bpfgen_error *err);
/* text: as search, but the text ends at its first byte that is 0, if there is one */
int bpfgen_regex_text(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		      const char *name, struct bpfgen_error *err);
/*
 * find: r0 is 1, and the 16 bytes at the address in r3 are the offsets where the match begins and
 * where it ends: the one that begins first, and of those the longest. Or r0 is 0.
 */
int bpfgen_regex_find(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		      const char *name, struct bpfgen_error *err);
/*
 * line: r0 is the address of the first line that has a match, or -1. A line ends before a newline,
 * or at the end if bytes are left there; ^ and $ are its ends.
 */
int bpfgen_regex_line(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		      const char *name, struct bpfgen_error *err);

#endif
