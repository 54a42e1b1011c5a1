/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options from the environment. A variable with our prefix that the table does not have is
 * nearly always a slip of the pen that would silently do nothing, so it is reported with the name
 * that was probably meant.
 */
#include <errno.h>
#include <string.h>

#include "config/nearest.h"
#include "config/option.h"

#define PREFIX "WARPSOCK_"

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

static const char *name_at(unsigned int i)
{
	const struct config_option *o = i < CONFIG_OPTIONS ? config_option_get(i) : NULL;

	if (!o)
		return NULL;
	return o->internal ? "" : o->name;
}

static void unknown_report(const char *name, config_report_fn report, void *ctx)
{
	size_t len = strcspn(name, "=");
	const char *meant = config_nearest(name, len, name_at);
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
