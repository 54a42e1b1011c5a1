/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment: each variable may be spelled AMUDP_X or bare X, and a worker also sees what
 * the console process had when the job began.
 */
#include "am/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *am_env_console;

const char *am_env_console_get(const char *name)
{
	const char *at = am_env_console;
	size_t len = strlen(name);

	for (; at && *at; at += strlen(at) + 1) {
		if (!strncmp(at, name, len) && at[len] == '=')
			return at + len + 1;
	}
	return NULL;
}

/* VERBOSEENV: what the environment decided, on the console's stderr. */
static void tell(const char *name, const char *value)
{
	static int on = -1;

	if (on < 0)
		on = getenv("AMUDP_VERBOSEENV") || getenv("VERBOSEENV");
	if (on)
		fprintf(stderr, "ENV parameter: %s = %s\n", name, value ? value : "(default)");
}

const char *am_env_get(const char *name)
{
	char prefixed[64];
	const char *value;

	snprintf(prefixed, sizeof(prefixed), "AMUDP_%s", name);
	value = getenv(prefixed);
	if (!value)
		value = getenv(name);
	if (!value)
		value = am_env_console_get(prefixed);
	if (!value)
		value = am_env_console_get(name);
	tell(name, value);
	return value;
}

int64_t am_env_int(const char *name, int64_t fallback)
{
	const char *value = am_env_get(name);
	char *end;
	int64_t n;

	if (!value || !*value)
		return fallback;
	n = strtoll(value, &end, 0);
	return *end ? fallback : n;
}

double am_env_double(const char *name, double fallback)
{
	const char *value = am_env_get(name);
	char *end;
	double d;

	if (!value || !*value)
		return fallback;
	d = strtod(value, &end);
	return *end ? fallback : d;
}

static bool is_yes(const char *value)
{
	return !strcmp(value, "1") || !strcasecmp(value, "yes") || !strcasecmp(value, "y") ||
	       !strcasecmp(value, "true") || !strcasecmp(value, "on");
}

bool am_env_bool(const char *name, bool fallback)
{
	const char *value = am_env_get(name);

	return value && *value ? is_yes(value) : fallback;
}

enum am_choice am_env_choice(const char *name)
{
	const char *value = am_env_get(name);

	if (!value || !*value || !strcasecmp(value, "auto"))
		return AM_CHOICE_AUTO;
	return is_yes(value) ? AM_CHOICE_YES : AM_CHOICE_NO;
}
