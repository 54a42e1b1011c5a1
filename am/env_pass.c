/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of the console's variables go to workers on other machines.
 */
#include <string.h>

#include "am/env.h"

/* One of the list PASS_ENV: a name, or what names begin with and a star. */
static bool is_named(const char *word, size_t n, const char *name, size_t len)
{
	bool star = n && word[n - 1] == '*';

	return star ? len >= n - 1 && !memcmp(word, name, n - 1)
		    : n == len && !memcmp(word, name, n);
}

static bool is_asked_for(const char *name, size_t len)
{
	char spelled[AM_ENV_NAME_MAX];
	const char *list = am_env_find("PASS_ENV", spelled);
	size_t n;

	for (; list && *list; list += n + (list[n] != '\0')) {
		n = strcspn(list, " ,\t\n");
		if (n && is_named(list, n, name, len))
			return true;
	}
	return false;
}

bool am_env_passes(const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (int i = 0; am_env_prefix(i); i++) {
		size_t n = strlen(am_env_prefix(i));

		if (n && len > n && !memcmp(entry, am_env_prefix(i), n) && entry[n] == '_')
			return true;
	}
	return am_env_is_ours(entry, len) || is_asked_for(entry, len);
}
