/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The environment: each variable may be spelled AMUDP_X or bare X, or with another word before it
 * that the program or its user has chosen; a worker also sees what the console process had when
 * the job began.
 *
 * Readers take a wrong value for an unset one. They never see one: an endpoint is not made, and a
 * job is not started, before env_check.c has found every value good.
 */
#include "am/env.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "am/error.h"
#include "base/bits.h"
#include "include/warp/amudp.h"

#define PREFIX_MAX 31

const char *am_env_console;

static char chosen[PREFIX_MAX + 1];

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

static bool prefix_good(const char *word)
{
	size_t i, n = strlen(word);

	for (i = 0; i < n; i++) {
		if (!isalnum((unsigned char)word[i]) && word[i] != '_')
			return false;
	}
	return n && n <= PREFIX_MAX;
}

int AMUDP_SetEnvPrefix(const char *word)
{
	if (!word || !prefix_good(word))
		am_return_error(AM_ERR_BAD_ARG, "1 to 31 letters, digits and underscores");
	memcpy(chosen, word, strlen(word) + 1);
	return AM_OK;
}

/* An empty one is as if it were unset. */
static const char *prefix_asked(void)
{
	const char *word = chosen[0] ? chosen : getenv("AMUDP_ENV_PREFIX");

	if (!word)
		word = am_env_console_get("AMUDP_ENV_PREFIX");
	return word && *word ? word : NULL;
}

const char *am_env_prefix_wrong(void)
{
	const char *word = prefix_asked();

	return word && !prefix_good(word) ? word : NULL;
}

const char *am_env_prefix(int i)
{
	const char *word = prefix_asked();

	if (!word || !prefix_good(word))
		i++;
	return i == 0 ? word : i == 1 ? "AMUDP" : i == 2 ? "" : NULL;
}

static void spell(char *out, const char *word, const char *name)
{
	snprintf(out, AM_ENV_NAME_MAX, "%s%s%s", word, *word ? "_" : "", name);
}

static const char *find_in(const char *(*get)(const char *), const char *name, char *spelled)
{
	const char *value = NULL;
	int i;

	for (i = 0; !value && am_env_prefix(i); i++) {
		spell(spelled, am_env_prefix(i), name);
		value = get(spelled);
	}
	return value;
}

static const char *process_get(const char *name)
{
	return getenv(name);
}

const char *am_env_find(const char *name, char *spelled)
{
	const char *value = find_in(process_get, name, spelled);

	return value ? value : find_in(am_env_console_get, name, spelled);
}

const char *am_env_name(const char *name)
{
	static __thread char spelled[AM_ENV_NAME_MAX];

	spell(spelled, am_env_prefix(0), name);
	return spelled;
}

static bool is_verbose(void)
{
	static int on = -1;
	char spelled[AM_ENV_NAME_MAX];
	const char *value;

	if (on < 0) {
		value = am_env_find("VERBOSEENV", spelled);
		on = value && *value && am_env_truth(value) != 0;
	}
	return on;
}

void am_env_tell(const char *name, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (!is_verbose())
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "ENV parameter: %s = %s\n", name, text);
}

/* The value that is good, NULL for the default; an empty one is as if it were unset. */
static const char *value_of(const char *name)
{
	char spelled[AM_ENV_NAME_MAX];
	const char *value = am_env_find(name, spelled);

	return value && *value ? value : NULL;
}

static const char *origin(const char *value)
{
	return value ? "" : " (default)";
}

const char *am_env_get(const char *name)
{
	const char *value = value_of(name);

	am_env_tell(name, "%s", value ? value : "(not set)");
	return value;
}

int64_t am_env_int(const char *name, int64_t fallback)
{
	const char *value = value_of(name);
	int64_t n = fallback;
	char *end;

	if (value) {
		n = strtoll(value, &end, 0);
		n = *end ? fallback : n;
	}
	am_env_tell(name, "%lld%s", (long long)n, origin(value));
	return n;
}

double am_env_double(const char *name, double fallback)
{
	const char *value = value_of(name);
	double d = fallback;
	char *end;

	if (value) {
		d = strtod(value, &end);
		d = *end ? fallback : d;
	}
	am_env_tell(name, "%g%s", d, origin(value));
	return d;
}

int am_env_truth(const char *value)
{
	static const char *const words[][2] = {
		{ "no", "yes" }, { "n", "y" }, { "false", "true" }, { "off", "on" }, { "0", "1" },
	};
	size_t i, j;

	for (i = 0; i < base_array_size(words); i++) {
		for (j = 0; j < 2; j++) {
			if (!strcasecmp(value, words[i][j]))
				return (int)j;
		}
	}
	return -EINVAL;
}

bool am_env_bool(const char *name, bool fallback)
{
	const char *value = value_of(name);
	int truth = value ? am_env_truth(value) : -EINVAL;
	bool yes = truth < 0 ? fallback : truth;

	am_env_tell(name, "%s%s", yes ? "yes" : "no", origin(value));
	return yes;
}

enum am_choice am_env_choice(const char *name)
{
	static const char *const words[] = { "no", "yes", "auto" };
	const char *value = value_of(name);
	int truth = value ? am_env_truth(value) : -EINVAL;
	enum am_choice choice = truth < 0 ? AM_CHOICE_AUTO : (enum am_choice)truth;

	am_env_tell(name, "%s%s", words[choice], origin(value));
	return choice;
}
