/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ACTIVECC_H
#define APPS_ACTIVECC_H

/* What the parts of warp-activecc share. */

#include <stdbool.h>

#include "bpf/object.h"

enum activecc_status {
	ACTIVECC_OK,
	ACTIVECC_REFUSED, /* by the compiler, the loader or the verifier */
	ACTIVECC_USAGE,
	ACTIVECC_FAILED, /* no compiler, no such file */
};

enum activecc_kind { ACTIVECC_C, ACTIVECC_ASSEMBLER, ACTIVECC_OBJECT };

enum { ACTIVECC_HELPERS_MAX = 64, ACTIVECC_ARGS_MAX = 256 };

struct activecc_options {
	const char *input;
	enum activecc_kind kind;
	char *output; /* NULL: an object that is only checked */
	const char *clang;
	bool list, kernel;
	const char *level;		       /* of optimisation */
	const char *passed[ACTIVECC_ARGS_MAX]; /* to clang, as they are */
	unsigned int passed_count;
	struct ebpf_helper helpers[ACTIVECC_HELPERS_MAX];
	size_t helper_count;
};

/* One row of the table of options */
struct activecc_option {
	const char *name; /* the long one, or NULL */
	char letter;	  /* the short one, or 0 */
	const char *arg;  /* what it takes, or NULL */
	const char *text;
};

/* apps/activecc/options.c */
extern const struct activecc_option activecc_table[];
/* -1, or the status to exit with */
int activecc_options_read(struct activecc_options *opt, int argc, char **argv);
void activecc_options_free(struct activecc_options *opt);
void activecc_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* apps/activecc/compile.c: makes the object @to of @source, which is of the input's kind */
enum activecc_status activecc_compile(const struct activecc_options *opt, const char *source,
				      const char *to);

/* apps/activecc/kernel.c: tells of each function whether it can run in the kernel, or why not */
enum activecc_status activecc_kernel_print(const struct ebpf_object *obj);

/*
 * apps/activecc/assembler.c: writes to @to a source that includes the input and has its source
 * lines. @elf is what was assembled of it. @source is its text, with one byte behind it, and is
 * changed. False: there are no lines to be had.
 */
bool activecc_assembler_wrap(const struct activecc_options *opt, const void *elf, size_t len,
			     char *source, size_t source_len, const char *to);

/* apps/activecc/listing.c: the program with its source lines, on standard output */
void activecc_listing_print(const struct ebpf_object *obj);

/* apps/activecc/completion.c: a script for this shell; false: for none such */
bool activecc_completion_print(const char *shell);

#endif
