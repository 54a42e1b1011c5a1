/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * "Did you mean": which words are near enough to a name.
 */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "config/nearest.h"

static const char *names(unsigned int i)
{
	static const char *const all[] = { "run", "", "rules", "explain", "PEER_NOT_MPA" };

	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

static const char *nearest(const char *word)
{
	const char *name = config_nearest(word, strlen(word), names);

	return name ? name : "none";
}

Test(nearest, words)
{
	static const char *const rows[][2] = {
		{ "rn", "run" },	  { "urn", "none" }, /* two edits of three letters */
		{ "rnu", "none" },	  { "ruls", "rules" },
		{ "rule", "rules" },	  { "exlpain", "explain" },
		{ "EXPLAIN", "explain" }, { "peer_not_mp", "PEER_NOT_MPA" },
		{ "", "none" },		  { "f", "none" },
		{ "something", "none" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_str_eq(nearest(rows[i][0]), rows[i][1], "%s: %s", rows[i][0],
				 nearest(rows[i][0]));
}

Test(nearest, a_word_of_a_line)
{
	char lengthy[1000];

	cr_expect_str_eq(config_nearest("rules=1", 5, names), "rules", "only so many letters");
	memset(lengthy, 'r', sizeof(lengthy));
	cr_expect_null(config_nearest(lengthy, sizeof(lengthy), names));
}
