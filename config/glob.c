/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns, matched without recursion: on a mismatch the last * takes one byte more and the
 * rest is tried again. An earlier * never needs to be taken up again, for what stood between
 * the two was found at its first possible place. fnmatch() itself is no choice: it depends on
 * the locale, takes memory, and may not be called in a signal handler.
 */
#include "config/glob.h"

#include <string.h>

/* One byte of a set, escaped or not; false at the end of the pattern. */
static bool set_octet(const char **p, unsigned char *out)
{
	*p += **p == '\\';
	if (!**p)
		return false;
	*out = (unsigned char)*(*p)++;
	return true;
}

/* The next member or range of a set. */
static bool set_range(const char **p, unsigned char *low, unsigned char *high)
{
	if (!set_octet(p, low))
		return false;
	*high = *low;
	if ((*p)[0] != '-' || !(*p)[1] || (*p)[1] == ']')
		return true;
	++*p;
	return set_octet(p, high);
}

/* Where the members of the set at @p begin */
static const char *set_begin(const char *p, bool *negated)
{
	*negated = p[1] == '!' || p[1] == '^';
	return p + 1 + *negated;
}

/* A ] that stands first is a member. */
static bool set_match(const char **pattern, unsigned char c)
{
	unsigned char low, high;
	bool negated, found = false;
	const char *p = set_begin(*pattern, &negated);

	do {
		if (!set_range(&p, &low, &high))
			return false;
		found |= low <= c && c <= high;
	} while (*p != ']');
	*pattern = p + 1;
	return found != negated;
}

/* Matches one byte with what stands at *pattern, which moves on if it does. */
static bool octet_match(const char **pattern, char c)
{
	const char *p = *pattern;

	if (*p == '[')
		return set_match(pattern, (unsigned char)c);
	if (*p == '\\')
		p++;
	else if (*p == '?')
		c = '?';
	if (!*p || *p != c)
		return false;
	*pattern = p + 1;
	return true;
}

bool config_glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*pattern || *text) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (*text && octet_match(&pattern, *text)) {
			text++;
		} else if (star && *resume) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	return true;
}

static const char *set_check(const char **pattern)
{
	unsigned char low, high;
	bool negated;
	const char *p = set_begin(*pattern, &negated), *member;

	do {
		member = p;
		if (p[0] == '[' && p[1] && strchr(":.=", p[1])) {
			*pattern = p;
			return "single bytes and ranges between [ and ]";
		}
		if (!set_range(&p, &low, &high))
			return "a ] to end the [";
		if (low > high) {
			*pattern = member;
			return "a range that goes up";
		}
	} while (*p != ']');
	*pattern = p + 1;
	return NULL;
}

const char *config_glob_check(const char *pattern, size_t *where)
{
	const char *p = pattern, *wrong = NULL;

	while (*p && !wrong) {
		if (*p == '[')
			wrong = set_check(&p);
		else if (*p == '/')
			wrong = "a base name without /";
		else if (*p == '\\' && !p[1])
			wrong = "a byte after the \\";
		else
			p += 1 + (*p == '\\');
	}
	*where = (size_t)(p - pattern);
	return wrong;
}
