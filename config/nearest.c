/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * "Did you mean": the name with the fewest edits between it and a word (Levenshtein). Upper and
 * lower case are the same here.
 */
#include "config/nearest.h"

#include <string.h>

#include "base/bits.h"

#define WORD_MAX 32
#define EDITS_MAX 3

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* How many bytes to insert, remove or replace; @b has at most WORD_MAX */
static unsigned int edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned int row[WORD_MAX + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 0; i < a_len; i++) {
		unsigned int corner = row[0];

		row[0]++;
		for (size_t j = 0; j < b_len; j++) {
			unsigned int replace = corner + (lower(a[i]) != lower(b[j]));

			corner = row[j + 1];
			row[j + 1] = base_min(replace, base_min(row[j], corner) + 1);
		}
	}
	return row[b_len];
}

const char *config_nearest(const char *word, size_t len, config_names_fn at)
{
	unsigned int least = base_min((unsigned int)(len + 2) / 3, (unsigned int)EDITS_MAX) + 1;
	const char *best = NULL, *name;

	for (unsigned int i = 0; (name = at(i)); i++) {
		size_t name_len = strlen(name);
		unsigned int n;

		if (!name_len || name_len > WORD_MAX || len > 2 * WORD_MAX)
			continue;
		n = edits(word, len, name, name_len);
		if (n < least) {
			least = n;
			best = name;
		}
	}
	return best;
}
