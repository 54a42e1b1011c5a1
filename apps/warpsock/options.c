/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock options`: every option, its value, and where that comes from.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/warpsock/launcher.h"

static const char *value_text(const struct config_settings *settings, enum config_option_id id,
			      char *out, size_t size)
{
	const struct config_option *o = config_option_get(id);
	const char *rules = o->type == CONFIG_TYPE_RULES ? getenv(o->name) : NULL;

	if (!rules)
		return config_settings_format(settings, id, out, size);
	snprintf(out, size, "%s", rules);
	return out;
}

static void options_put(const struct config_settings *settings)
{
	static const char *const origins[] = {
		[CONFIG_DEFAULT] = "default",
		[CONFIG_PROFILE] = "profile",
		[CONFIG_ENVIRONMENT] = "environment",
	};
	char value[CONFIG_TEXT_MAX + 1];

	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++) {
		const struct config_option *o = config_option_get(id);

		if (o->internal)
			continue;
		value_text(settings, id, value, sizeof(value));
		printf("%-24s %-12s %s%s\n", o->name, origins[settings->origin[id]],
		       value[0] ? value : "-", o->planned ? "  (without effect yet)" : "");
	}
}

int options_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "profile", required_argument, NULL, 'p' },
		{ .name = NULL },
	};
	static struct config_settings settings;
	const char *profile = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) == 'p')
		profile = optarg;
	if (c != -1 || optind != argc) {
		fputs(launcher_usage, stderr);
		return LAUNCHER_FAILED;
	}
	settings_load(&settings, profile);
	options_put(&settings);
	return 0;
}
