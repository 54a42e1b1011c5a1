/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What generated code says of patterns and expressions, for scripts that know it otherwise, too.
 *
 *	evaluate regex
 *		each line: flags, pattern, texts; all but the flags in hexadecimal, "-" for nothing.
 *		For each text: where the match ends that ends first, where the leftmost and longest
 *		begins and ends, where the first line with a match begins; -1 for none
 *	evaluate posix
 *		the same lines by regexec(3): where the match begins and ends
 *	evaluate expr LAYOUT
 *		each line: an expression, a tab, records in hexadecimal. For each record the value
 *	evaluate file PATTERN
 *		the ELF file of a program that counts lines, on standard output
 *
 * A line that is refused gives "! OFFSET REASON". Code is run by both engines; where they differ
 * this exits with 1.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/query.h"
#include "tests/bpfgen/both.h"

enum { LINE_MAX = 1 << 20, TEXT_MAX = 1 << 12 };
#define TEXT_ADDR 0x10000u
#define SPAN_ADDR 0x90000u

static uint8_t text[TEXT_MAX] __attribute__((aligned(64)));
static size_t text_len;
static uint64_t span[2];
static struct both both;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "evaluate: %s: %s\n", what, why);
	exit(1);
}

static void refused(const struct bpfgen_error *err)
{
	printf("! %ld %s\n", (long)err->at, err->text);
}

/* The text ends where the memory does; behind its end nothing can be read */
static uint8_t *text_place(void)
{
	size_t at = (TEXT_MAX - text_len) & ~(size_t)7;

	return text + at;
}

static void hex_read(const char *word)
{
	static uint8_t bytes[TEXT_MAX];

	text_len = 0;
	for (; word[0] && word[1]; word += 2) {
		const char pair[] = { word[0], word[1], 0 };

		bytes[text_len++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	memcpy(text_place(), bytes, text_len);
}

static uint64_t call(const char *entry)
{
	const struct ebpf_region regions[] = {
		{ text_place(), TEXT_ADDR, base_max(text_len, (size_t)1), 0, EBPF_MAY_READ },
		{ span, SPAN_ADDR, sizeof(span), 0, EBPF_MAY_WRITE },
	};
	const uint64_t arg[5] = { TEXT_ADDR, text_len, SPAN_ADDR };
	const char *why;
	uint64_t value;

	why = both_run(&both, entry, arg, regions, 2, &value);
	if (why)
		die(entry, why);
	return value;
}

/* --- patterns --------------------------------------------------------------------------------- */

static int regex_code(const struct bpfgen_regex *re, struct bpfgen_code *c,
		      struct bpfgen_error *err)
{
	int ret = bpfgen_regex_search(re, c, bpfgen_label(c), "search", err);

	if (!ret)
		ret = bpfgen_regex_find(re, c, bpfgen_label(c), "find", err);
	if (!ret)
		ret = bpfgen_regex_line(re, c, bpfgen_label(c), "line", err);
	return ret ? ret : bpfgen_code_finish(c, err);
}

static long offset(uint64_t addr)
{
	return addr == UINT64_MAX ? -1 : (long)(addr - TEXT_ADDR);
}

static void texts_try(char **rest)
{
	for (char *word; (word = strtok_r(NULL, " \n", rest));) {
		hex_read(word);
		printf("%ld ", offset(call("search")));
		if (call("find"))
			printf("%ld %ld ", (long)span[0], (long)span[1]);
		else
			printf("-1 -1 ");
		printf("%ld\n", offset(call("line")));
	}
}

static void regex_try(unsigned int flags, char **rest)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_code *c;
	struct bpfgen_error err;
	const char *why;
	int ret;

	if (bpfgen_code_create(&c))
		die("code", "out of memory");
	ret = bpfgen_regex_parse((char *)text_place(), text_len, flags, &re, &err);
	if (!ret)
		ret = regex_code(re, c, &err);
	if (ret) {
		refused(&err);
	} else {
		why = both_open(&both, c);
		if (why)
			die("the code", why);
		texts_try(rest);
		both_close(&both);
	}
	bpfgen_regex_destroy(re);
	bpfgen_code_destroy(c);
}

static void posix_try(unsigned int flags, char **rest)
{
	char pattern[TEXT_MAX + 1] = "", subject[TEXT_MAX + 1] = "";
	regex_t re;
	regmatch_t m;

	memcpy(pattern, text_place(), text_len);
	if (regcomp(&re, pattern, REG_EXTENDED | (flags & BPFGEN_ICASE ? REG_ICASE : 0))) {
		puts("! 0 regcomp");
		return;
	}
	for (char *word; (word = strtok_r(NULL, " \n", rest));) {
		hex_read(word);
		memcpy(subject, text_place(), text_len);
		subject[text_len] = 0;
		if (regexec(&re, subject, 1, &m, 0))
			puts("-1 -1");
		else
			printf("%d %d\n", m.rm_so, m.rm_eo);
	}
	regfree(&re);
}

/* --- expressions ------------------------------------------------------------------------------ */

static int expr_code(struct bpfgen_expr *e, struct bpfgen_code *c, struct bpfgen_error *err)
{
	int ret;

	bpfgen_function(c, bpfgen_label(c), "value");
	bpfgen_alu(c, EBPF_MOV, 8, 1);
	bpfgen_expr_value(e, c, 8);
	bpfgen_exit(c);
	ret = bpfgen_expr_functions(e, c, err);
	return ret ? ret : bpfgen_code_finish(c, err);
}

static void expr_try(const struct bpfgen_layout *layout, const char *expression, char **rest)
{
	struct bpfgen_expr *e = NULL;
	struct bpfgen_code *c;
	struct bpfgen_error err;
	const char *why;
	int ret;

	if (bpfgen_code_create(&c))
		die("code", "out of memory");
	ret = bpfgen_expr_parse(expression, layout, &e, &err);
	if (!ret)
		ret = expr_code(e, c, &err);
	if (ret) {
		refused(&err);
	} else {
		why = both_open(&both, c);
		if (why)
			die(expression, why);
		for (char *word; (word = strtok_r(NULL, " \n", rest));) {
			hex_read(word);
			printf("%lld\n", (long long)call("value"));
		}
		both_close(&both);
	}
	bpfgen_expr_destroy(e);
	bpfgen_code_destroy(c);
}

/* --- files ------------------------------------------------------------------------------------ */

static int file_write(const char *pattern)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_code *c = NULL;
	struct bpfgen_error err;
	size_t len;
	void *elf;

	if (bpfgen_regex_parse(pattern, strlen(pattern), 0, &re, &err) ||
	    bpfgen_query_lines(re, BPFGEN_COUNT, &c, &err))
		die(pattern, err.text);
	if (bpfgen_code_elf(c, &elf, &len) || fwrite(elf, 1, len, stdout) != len)
		die("the file", "cannot be written");
	free(elf);
	bpfgen_code_destroy(c);
	bpfgen_regex_destroy(re);
	return 0;
}

int main(int argc, char **argv)
{
	struct bpfgen_layout *layout = NULL;
	struct bpfgen_error err;
	static char line[LINE_MAX];
	char *rest, *word;
	bool expr = argc == 3 && !strcmp(argv[1], "expr");

	if (argc < 2)
		die("usage", "regex | posix | expr LAYOUT | file PATTERN");
	if (argc == 3 && !strcmp(argv[1], "file"))
		return file_write(argv[2]);
	if (expr && bpfgen_layout_parse(argv[2], &layout, &err))
		die("layout", err.text);
	while (fgets(line, LINE_MAX, stdin)) {
		unsigned int flags;

		word = strtok_r(line, expr ? "\t" : " ", &rest);
		if (expr) {
			expr_try(layout, word, &rest);
			continue;
		}
		flags = (unsigned int)atoi(word);
		hex_read(strtok_r(NULL, " \n", &rest));
		if (strcmp(argv[1], "posix") != 0)
			regex_try(flags, &rest);
		else
			posix_try(flags, &rest);
	}
	bpfgen_layout_destroy(layout);
	return 0;
}
