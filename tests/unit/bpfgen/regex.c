/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regular expressions: each part of the syntax once, each error, each limit, and how large the code
 * gets. tests/bpfgen compares generated ones with other programs.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpfgen/regex_inside.h"
#include "tests/bpfgen/both.h"

#define ADDR 0x20000u
#define SPAN 0x90000u

static struct both both;
static uint64_t span[2];

typedef int (*form)(const struct bpfgen_regex *re, struct bpfgen_code *c, unsigned int label,
		    const char *name, struct bpfgen_error *err);

static struct bpfgen_code *code_of(const char *pattern, size_t len, unsigned int flags, form form)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c;

	cr_assert_not(bpfgen_regex_parse(pattern, len, flags, &re, &err), "%s: %s", pattern,
		      err.text);
	cr_assert_not(bpfgen_code_create(&c));
	cr_assert_not(form(re, c, bpfgen_label(c), "main", &err), "%s: %s", pattern, err.text);
	cr_assert_not(bpfgen_code_finish(c, &err), "%s: %s", pattern, err.text);
	bpfgen_regex_destroy(re);
	return c;
}

/* The text lies in memory that ends with it */
static uint64_t run(const char *pattern, size_t pattern_len, unsigned int flags, form form,
		    const char *text, size_t len)
{
	struct bpfgen_code *c = code_of(pattern, pattern_len, flags, form);
	size_t room = base_align_up(len + 1, 8), at = base_align_down(room - len, 8);
	uint8_t *memory = aligned_alloc(64, base_align_up(room, 64));
	const struct ebpf_region regions[] = {
		{ memory + at, ADDR, base_max(len, (size_t)1), 0, EBPF_MAY_READ },
		{ span, SPAN, sizeof(span), 0, EBPF_MAY_WRITE },
	};
	const uint64_t arg[5] = { ADDR, len, SPAN };
	const char *wrong = both_open(&both, c);
	uint64_t value = 0;

	memcpy(memory + at, text, len);
	if (!wrong)
		wrong = both_run(&both, "main", arg, regions, 2, &value);
	cr_assert_null(wrong, "%s in %s: %s", pattern, text, wrong);
	both_close(&both);
	bpfgen_code_destroy(c);
	free(memory);
	return value;
}

/* Where the leftmost and longest match is, as "begin end", or "-" */
static const char *found(const char *pattern, const char *text)
{
	static char words[64];

	snprintf(words, sizeof(words), "-");
	if (run(pattern, strlen(pattern), 0, bpfgen_regex_find, text, strlen(text)))
		snprintf(words, sizeof(words), "%lu %lu", span[0], span[1]);
	return words;
}

static long searched(const char *pattern, const char *text, unsigned int flags, form form)
{
	uint64_t value = run(pattern, strlen(pattern), flags, form, text, strlen(text));

	return value == UINT64_MAX ? -1 : (long)(value - ADDR);
}

Test(bpfgen_regex, syntax)
{
	static const struct {
		const char *pattern, *text, *found;
	} list[] = {
		{ "abc", "xabcabc", "1 4" },
		{ "", "abc", "0 0" },
		{ "a|bc|", "xbc", "0 0" },
		{ "b*", "abb", "0 0" },
		{ "ab*", "xabbbc", "1 5" },
		{ "ab+", "aabb", "1 4" },
		{ "ab?c", "abbc ac", "5 7" },
		{ "a{2}", "aaa", "0 2" },
		{ "a{2,}", "baaaa", "1 5" },
		{ "a{1,3}", "aaaaa", "0 3" },
		{ "(ab|a)(c|bcd)", "xabcd", "1 5" },
		{ "(a(b(c)))+", "abcabc", "0 6" },
		{ "(?:ab)+", "ababa", "0 4" },
		{ "[a-c]+", "xxbcay", "2 5" },
		{ "[^a-c]", "abcd", "3 4" },
		{ "[]a]+", "x]a]", "1 4" },
		{ "[^]a]", "]ab", "2 3" },
		{ "[a-]+", "b-a-", "1 4" },
		{ "[\\]\\-x]+", "ab-]x", "2 5" },
		{ "[[:digit:]_]+", "ab12_3c", "2 6" },
		{ "[[:alpha:][:space:]]+", "1a b2", "1 4" },
		{ "\\d+\\s\\w", "x12 _", "1 5" },
		{ "\\D\\S\\W", "1a2 ", "1 4" },
		{ "\\.\\*\\\\", "a.*\\", "1 4" },
		{ "\\x41\\t", "xA\t", "1 3" },
		{ "a.c", "a\nc abc", "4 7" },
		{ "^a", "ba", "-" },
		{ "^a|b", "cab", "2 3" },
		{ "a$", "aa", "1 2" },
		{ "^$", "", "0 0" },
		{ "^$", "a", "-" },
		{ "$^", "", "0 0" },
		{ "$^", "a", "-" },
		{ "(^a|b)c", "acbc", "0 2" },
		{ "(^a|b)c", "xacbc", "3 5" },
		{ "}", "a}", "1 2" },
		{ "]", "a]", "1 2" },
	};

	for (size_t i = 0; i < base_array_size(list); i++)
		cr_assert_str_eq(found(list[i].pattern, list[i].text), list[i].found,
				 "%s in %s: %s", list[i].pattern, list[i].text,
				 found(list[i].pattern, list[i].text));
}

Test(bpfgen_regex, small_and_capital_letters)
{
	cr_assert_eq(searched("aBc", "xAbC", BPFGEN_ICASE, bpfgen_regex_search), 4);
	cr_assert_eq(searched("[a-c]{3}", "xAbC", BPFGEN_ICASE, bpfgen_regex_search), 4);
	cr_assert_eq(searched("[^a]", "Aab", BPFGEN_ICASE, bpfgen_regex_search), 3);
	cr_assert_eq(searched("aBc", "xAbC", 0, bpfgen_regex_search), -1);
}

Test(bpfgen_regex, bytes_that_are_no_text)
{
	static const char pattern[] = { 'a', 0, '[', '\x80', '-', '\xff', ']' };
	static const char text[] = { 'a', 'a', 0, '\x90', 'b' };

	cr_assert_eq(run(pattern, sizeof(pattern), 0, bpfgen_regex_search, text, sizeof(text)),
		     ADDR + 4);
}

Test(bpfgen_regex, the_end_that_comes_first)
{
	cr_assert_eq(searched("abcd|bc", "xabcd", 0, bpfgen_regex_search), 4);
	cr_assert_eq(searched("a*", "xaa", 0, bpfgen_regex_search), 0);
	cr_assert_eq(searched("a$", "aXa", 0, bpfgen_regex_search), 3);
}

Test(bpfgen_regex, a_text_ends_at_zero)
{
	cr_assert_eq(run("bc$", 3, 0, bpfgen_regex_text, "abc\0xx", 6), ADDR + 4);
	cr_assert_eq(run("x", 1, 0, bpfgen_regex_text, "abc\0xx", 6), UINT64_MAX);
	cr_assert_eq(run("^$", 2, 0, bpfgen_regex_text, "\0x", 2), ADDR + 1);
	cr_assert_eq(run("c$", 2, 0, bpfgen_regex_text, "abc", 3), ADDR + 3);
}

Test(bpfgen_regex, lines)
{
	static const char text[] = "first\n\nsecond line\nlast";

	cr_assert_eq(searched("line$", text, 0, bpfgen_regex_line), 7);
	cr_assert_eq(searched("^l", text, 0, bpfgen_regex_line), 19);
	cr_assert_eq(searched("^$", text, 0, bpfgen_regex_line), 6);
	cr_assert_eq(searched("^$", "ab\n", 0, bpfgen_regex_line), -1);
	cr_assert_eq(searched("x*", "", 0, bpfgen_regex_line), -1);
	cr_assert_eq(searched("t.s", "at\nst\n", 0, bpfgen_regex_line), -1);
	cr_assert_eq(searched("[^x]+t$", "a\nbt\n", 0, bpfgen_regex_line), 2);
}

/* A text of many lengths, so that a search by eights ends everywhere */
Test(bpfgen_regex, searches_by_eights)
{
	char text[64];

	for (size_t len = 0; len < 40; len++)
		for (size_t at = 0; at <= len; at++) {
			memset(text, '.', sizeof(text));
			text[at] = 'x';
			text[len] = 0;
			cr_assert_eq(searched("x", text, 0, bpfgen_regex_search),
				     at < len ? (long)at + 1 : -1, "%zu of %zu", at, len);
		}
}

/* --- errors ----------------------------------------------------------------------------------- */

static void refused(const char *pattern, int error, size_t at, const char *text)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_error err = { 0 };

	cr_assert_eq(bpfgen_regex_parse(pattern, strlen(pattern), 0, &re, &err), error, "%s",
		     pattern);
	cr_assert_null(re);
	cr_assert_str_eq(err.text, text);
	cr_assert_eq(err.at, at, "%s: at %zu", pattern, err.at);
}

Test(bpfgen_regex, errors)
{
	refused("*a", -EINVAL, 0, "nothing to repeat before *");
	refused("a|+", -EINVAL, 2, "nothing to repeat before +");
	refused("(?", -EINVAL, 2, "an unknown kind of group");
	refused("({2})", -EINVAL, 1, "nothing to repeat before {");
	refused("a**", -EINVAL, 3, "a repetition of a repetition needs a group");
	refused("a*?", -EINVAL, 3, "a repetition of a repetition needs a group");
	refused("^*", -EINVAL, 2, "^ and $ cannot be repeated");
	refused("a{", -EINVAL, 2, "a number is needed behind {");
	refused("a{1", -EINVAL, 3, "a { without its }");
	refused("a{1,x}", -EINVAL, 4, "a number is needed behind {");
	refused("a{3,2}", -EINVAL, 6, "at most 2, but at least 3");
	refused("a{1001}", -E2BIG, 5, "more than 1000 repetitions");
	refused("(a", -EINVAL, 2, "a group without its )");
	refused("a)", -EINVAL, 1, "a ) without its (");
	refused("[a", -EINVAL, 2, "a set without its ]");
	refused("[b-a]", -EINVAL, 4, "a range of bytes ends before it begins");
	refused("[a-\\d]", -EINVAL, 5, "a range of bytes ends before it begins");
	refused("[[:nothing:]]", -EINVAL, 1, "an unknown class of bytes");
	refused("[[:digit]", -EINVAL, 1, "an unknown class of bytes");
	refused("[[.a.]]", -EINVAL, 1, "collating elements do not exist here");
	refused("a\\", -EINVAL, 2, "a backslash at the end");
	refused("(a)\\1", -EINVAL, 4, "back references are not regular");
	refused("\\b", -EINVAL, 1, "an unknown escape");
	refused("\\x4", -EINVAL, 2, "\\x needs two hexadecimal digits");
}

Test(bpfgen_regex, limits_of_the_text)
{
	char pattern[BPFGEN_PATTERN_MAX + 2];
	struct bpfgen_regex *re;
	struct bpfgen_error err;

	memset(pattern, 'a', sizeof(pattern));
	cr_assert_not(bpfgen_regex_parse(pattern, BPFGEN_PATTERN_MAX, 0, &re, &err));
	bpfgen_regex_destroy(re);
	cr_assert_eq(bpfgen_regex_parse(pattern, BPFGEN_PATTERN_MAX + 1, 0, &re, &err), -E2BIG);
	cr_assert_str_eq(err.text, "longer than 4096 bytes");
	memset(pattern, '(', sizeof(pattern));
	cr_assert_eq(bpfgen_regex_parse(pattern, BPFGEN_PATTERN_MAX, 0, &re, &err), -E2BIG);
	cr_assert_str_eq(err.text, "more than 200 groups in one another");
	cr_assert_eq(err.at, BPFGEN_GROUPS_MAX + 1);
	bpfgen_regex_destroy(NULL);
}

static void too_large(const char *pattern, const char *text)
{
	struct bpfgen_regex *re = NULL;
	struct bpfgen_error err = { 0 };
	struct bpfgen_code *c;

	cr_assert_not(bpfgen_regex_parse(pattern, strlen(pattern), 0, &re, &err));
	cr_assert_not(bpfgen_code_create(&c));
	cr_assert_eq(bpfgen_regex_search(re, c, bpfgen_label(c), "main", &err), -E2BIG, "%s",
		     pattern);
	cr_assert_str_eq(err.text, text);
	bpfgen_regex_destroy(re);
	bpfgen_code_destroy(c);
}

Test(bpfgen_regex, limits_of_the_automata, .timeout = 30)
{
	too_large("((a{100}){100}){100}", "the NFA would have more than 16384 states");
	too_large("((((((){1000}){1000}){1000}){1000}){1000}){1000}", "too many repetitions");
	too_large("(a|b)*a(a|b){11}x", "the DFA would have more than 4096 states");
	too_large("(a|b)*a(a|b){14}x", "the DFA would have more than 4096 states");
	too_large("(.{900}){8}(a|b)*a(a|b){9}", "the DFA would take too much memory");
}

/* --- how large it gets ------------------------------------------------------------------------ */

/* The states of a search, as few as can be */
static uint32_t states(const char *pattern)
{
	struct bpfgen_regex *re = NULL;
	struct nfa nfa;
	struct dfa dfa;
	uint32_t count;

	cr_assert_not(bpfgen_regex_parse(pattern, strlen(pattern), 0, &re, NULL));
	cr_assert_not(regex_nfa_init(&nfa, re, false, NULL));
	cr_assert_not(regex_dfa_init(&dfa, &nfa, DFA_FIRST, NULL));
	cr_assert_not(regex_dfa_minimise(&dfa));
	count = dfa.count;
	regex_dfa_uninit(&dfa);
	regex_nfa_uninit(&nfa);
	bpfgen_regex_destroy(re);
	return count;
}

/* One of them is the dead state, which a search has no use for */
Test(bpfgen_regex, as_few_states_as_can_be)
{
	cr_assert_eq(states("abc"), 1 + 4);
	cr_assert_eq(states("aa|ab|ac|ba|bb|bc|ca|cb|cc"), 1 + 3);
	cr_assert_eq(states("(a|a|a|a)"), states("a"));
	cr_assert_eq(states("x*"), 1 + 1);
	cr_assert_eq(states("(foo|bar|baz)+q"), states("(foo|ba[rz])q"));
}

Test(bpfgen_regex, code_of_a_large_automaton)
{
	struct bpfgen_code *c = code_of("(a|b)*a(a|b){10}x", 17, 0, bpfgen_regex_search);

	cr_assert_gt(bpfgen_code_size(c), 1 << 11);
	cr_assert_null(both_open(&both, c));
	both_close(&both);
	bpfgen_code_destroy(c);
	cr_assert_eq(searched("(a|b)*a(a|b){10}x", "aaabbbbbbbbbbx", 0, bpfgen_regex_search), 14);
	cr_assert_eq(searched("(a|b)*a(a|b){10}x", "abbbbbbbbbbbx", 0, bpfgen_regex_search), -1);
}
