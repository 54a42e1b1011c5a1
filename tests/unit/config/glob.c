/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns, judged by glibc's fnmatch() in the C locale: each pattern that config_glob_check()
 * lets pass must mean what it means there. Patterns and texts are made of few different octets, so
 * that they often match and often nearly do.
 */
#include "config/glob.h"

#include <criterion/criterion.h>
#include <fnmatch.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"

static const struct {
	const char *pattern;
	const char *text;
	bool want;
} rows[] = {
	{ "", "", true },
	{ "", "a", false },
	{ "*", "", true },
	{ "*", "redis-server", true },
	{ "**", "", true },
	{ "redis*", "redis", true },
	{ "redis*", "redi", false },
	{ "redis", "redis-server", false },
	{ "redis-server", "redis", false },
	{ "*-server", "redis-server", true },
	{ "*-server", "redis-servers", false },
	{ "r*s*r", "redis-server", true },
	{ "a*b*c", "aXbXbXc", true },
	{ "a*b*c", "aXbXbX", false },
	{ "*ab", "aab", true },
	{ "*aab", "aaaab", true },
	{ "?", "", false },
	{ "?", "a", true },
	{ "?", "ab", false },
	{ "*?", "a", true },
	{ "?*", "", false },
	{ "[abc]", "b", true },
	{ "[abc]", "d", false },
	{ "[abc]", "", false },
	{ "[a-c]", "b", true },
	{ "[!a-c]", "b", false },
	{ "[^a-c]", "x", true },
	{ "[]]", "]", true },
	{ "[!]]", "]", false },
	{ "[a-]", "-", true },
	{ "[a-]", "b", false },
	{ "[-a]", "-", true },
	{ "[\\]]", "]", true },
	{ "[a\\-c]", "b", false },
	{ "[a\\-c]", "-", true },
	{ "[*]", "x", false },
	{ "\\*", "*", true },
	{ "\\*", "x", false },
	{ "\\?", "x", false },
	{ "\\?", "?", true },
	{ "\\\\", "\\", true },
	{ "\\[a]", "[a]", true },
	{ "a\\ b", "a b", true },
	{ "x[\200-\377]", "x\300", true },
	{ "caf?", "caf\303\251", false },
	{ "caf??", "caf\303\251", true },
	{ "*[0-9]", "php8", true },
	{ "Redis", "redis", false },
	/* malformed: no match, and nothing behind the end is read */
	{ "[", "[", false },
	{ "[a", "a", false },
	{ "[a-", "a", false },
	{ "[]", "]", false },
	{ "[!", "a", false },
	{ "\\", "\\", false },
	{ "[\\", "\\", false },
	{ "*[", "[", false },
};

/* A copy that ends where its memory ends, for AddressSanitizer */
static bool match_exactly(const char *pattern, const char *text)
{
	char *p = strdup(pattern), *t = strdup(text);
	bool got = config_glob_match(p, t);

	free(p);
	free(t);
	return got;
}

Test(glob, rows)
{
	for (size_t i = 0; i < base_array_size(rows); i++)
		cr_expect_eq(match_exactly(rows[i].pattern, rows[i].text), rows[i].want, "%s on %s",
			     rows[i].pattern, rows[i].text);
}

static uint32_t seed = 1;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void random_string(char *out, size_t max, const char *octets)
{
	size_t n = random_below((uint32_t)max + 1);

	for (size_t i = 0; i < n; i++)
		out[i] = octets[random_below((uint32_t)strlen(octets))];
	out[n] = 0;
}

Test(glob, means_what_fnmatch_means)
{
	unsigned int sound = 0, matched = 0;
	char pattern[10], text[10];
	size_t where;

	setlocale(LC_ALL, "C");
	for (int i = 0; i < 400000; i++) {
		random_string(pattern, sizeof(pattern) - 1, "aab**?[[]]!^-\\bc");
		random_string(text, sizeof(text) - 1, "aaabbc]-[\\!^*");
		if (config_glob_check(pattern, &where)) {
			match_exactly(pattern, text);
			continue;
		}
		sound++;
		matched += match_exactly(pattern, text);
		cr_assert_eq(config_glob_match(pattern, text), !fnmatch(pattern, text, 0),
			     "pattern %s, text %s", pattern, text);
	}
	/* The comparison is worth something only when both outcomes are common. */
	cr_assert_gt(sound, 50000);
	cr_assert_gt(matched, 5000);
	cr_assert_gt(sound - matched, 5000);
}

/* The locale changes what fnmatch() does, and must not change this. */
Test(glob, no_locale)
{
	if (!setlocale(LC_ALL, "C.UTF-8"))
		cr_skip_test("no C.UTF-8 locale here");
	cr_assert_not(config_glob_match("caf?", "caf\303\251"));
	cr_assert(config_glob_match("caf??", "caf\303\251"));
}

/* A pattern made to make a matcher try again and again */
Test(glob, time_is_bounded, .timeout = 20)
{
	char pattern[256], text[4096];

	for (size_t i = 0; i < sizeof(pattern) - 2; i += 2)
		memcpy(pattern + i, "*a", 2);
	memcpy(pattern + sizeof(pattern) - 2, "b", 2);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < 100; i++)
		cr_assert_not(config_glob_match(pattern, text));
}
