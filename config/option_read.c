/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options from the environment. A variable with our prefix that the table does not have is
 * nearly always a slip of the pen that would silently do nothing, so it is reported with the name
 * that was probably meant.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "config/option.h"

#define PREFIX "WARPSOCK_"
#define NAME_MAX_LEN 32
/* More edits than these, and the two have nothing to do with each other. */
#define EDITS_MAX 3

enum config_option_id config_option_find(const char *name)
{
	size_t len = strcspn(name, "=");

	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
		const char *known = config_option_get(id)->name;

		if (strlen(known) == len && !memcmp(known, name, len))
			return id;
	}
	return CONFIG_OPTIONS;
}

/* How many octets to insert, remove or replace (Levenshtein); @b has at most NAME_MAX_LEN */
static unsigned int edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned int row[NAME_MAX_LEN + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 0; i < a_len; i++) {
		unsigned int corner = row[0];

		row[0]++;
		for (size_t j = 0; j < b_len; j++) {
			unsigned int replace = corner + (a[i] != b[j]);

			corner = row[j + 1];
			row[j + 1] = base_min(replace, base_min(row[j], corner) + 1);
		}
	}
	return row[b_len];
}

/* The name that @name was probably meant to be, or NULL */
static const char *nearest(const char *name, size_t len)
{
	const char *best = NULL;
	unsigned int least = EDITS_MAX + 1;

	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
		const struct config_option *o = config_option_get(id);
		unsigned int n = edits(name, len, o->name, strlen(o->name));

		if (!o->internal && n < least) {
			least = n;
			best = o->name;
		}
	}
	return best;
}

static void unknown_report(const char *name, config_report_fn report, void *ctx)
{
	size_t len = strcspn(name, "=");
	const char *meant = nearest(name, base_min(len, (size_t)NAME_MAX_LEN));
	char quoted[CONFIG_QUOTE_MAX];
	struct config_error err;

	config_quote(name, len, quoted);
	if (meant)
		config_error_set(&err, "no option is called %s; did you mean %s?", quoted, meant);
	else
		config_error_set(&err, "no option is called %s", quoted);
	report(ctx, false, &err);
}

int config_settings_read(struct config_settings *s, char *const *env, config_report_fn report,
			 void *ctx)
{
	int result = 0;

	/* clearenv() leaves no list at all */
	for (; env && *env; env++) {
		const char *value = strchr(*env, '=');
		enum config_option_id id = config_option_find(*env);
		struct config_error err;

		if (!value || strncmp(*env, PREFIX, strlen(PREFIX)))
			continue;
		if (id == CONFIG_OPTIONS) {
			unknown_report(*env, report, ctx);
		} else if (config_settings_set(s, id, value + 1, CONFIG_ENVIRONMENT, &err)) {
			report(ctx, true, &err);
			result = -EINVAL;
		}
	}
	return result;
}
