/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock options`: every option, its value, and where that comes from.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/nearest.h"

#define PREFIX "WARPSOCK_"

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

static const char *const origins[] = {
	[CONFIG_DEFAULT] = "default",
	[CONFIG_PROFILE] = "profile",
	[CONFIG_ENVIRONMENT] = "environment",
};

static void options_put(const struct config_settings *settings)
{
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

/* --- one of them --- */

/* Behind the prefix, which a user need not write */
static const char *short_name(unsigned int i)
{
	const struct config_option *o = i < CONFIG_OPTIONS ? config_option_get(i) : NULL;

	if (!o)
		return NULL;
	return o->internal ? "" : o->name + strlen(PREFIX);
}

static enum config_option_id option_named(const char *name)
{
	const char *known, *meant;

	if (!strncasecmp(name, PREFIX, strlen(PREFIX)))
		name += strlen(PREFIX);
	for (unsigned int i = 0; (known = short_name(i)); i++)
		if (known[0] && !strcasecmp(known, name))
			return i;
	meant = config_nearest(name, strlen(name), short_name);
	if (meant)
		launcher_die("no option is called %s; did you mean " PREFIX "%s?", name, meant);
	launcher_die("no option is called %s; warpsock options lists them", name);
}

static void option_put(const struct config_settings *settings, enum config_option_id id)
{
	const struct config_option *o = config_option_get(id);
	char value[CONFIG_TEXT_MAX + 1], range[256];

	value_text(settings, id, value, sizeof(value));
	printf("%s\n    %s\n", o->name, o->text);
	printf("    value: %s (%s)\n", value[0] ? value : "-", origins[settings->origin[id]]);
	printf("    default: %s%s\n", o->fallback[0] ? o->fallback : "-",
	       o->unit && strcmp(o->fallback, "0") &&
			       strspn(o->fallback, "0123456789") == strlen(o->fallback)
		       ? o->unit
		       : "");
	printf("    may be: %s\n", config_option_range(id, range, sizeof(range)));
	if (o->planned)
		puts("    without effect yet");
}

int options_main(int argc, char **argv)
{
	static struct config_settings settings;
	const char *profile = NULL;

	while (command_next("options", argc, argv) != -1)
		profile = optarg;
	if (argc > optind + 1)
		return command_wrong("options", "one name, not %d", argc - optind);
	settings_load(&settings, profile);
	if (argc > optind)
		option_put(&settings, option_named(argv[optind]));
	else
		options_put(&settings);
	return 0;
}
