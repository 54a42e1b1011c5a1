/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of a command line, and the table of all that there are.
 */
#include <stdio.h>
#include <stdlib.h>

#include "apps/warpsock/launcher.h"

void rules_args_init(struct rules_args *args, int argc)
{
	*args = (struct rules_args){ .mode = CONFIG_USE_AUTO };
	args->use = calloc((size_t)argc, sizeof(*args->use));
	if (!args->use)
		launcher_die("no memory");
}

bool rules_args_take(struct rules_args *args, int c, const char *value)
{
	switch (c) {
	case 'u':
		args->use[args->uses++] = value;
		return true;
	case 'a':
		args->all = true;
		return true;
	case 'm':
		args->moded = true;
		if (config_mode_parse(value, &args->mode))
			launcher_die("--mode: expected on or auto, got \"%s\"", value);
		return true;
	default:
		return false;
	}
}

const struct config_rules *rules_load(const struct rules_args *args)
{
	static struct config_rules rules;
	struct config_sources sources;
	struct config_error err;

	if (args->moded && !args->all)
		fputs("warpsock: --mode says what --all means, and there is no --all\n", stderr);
	config_sources_init(&sources);
	sources.use = args->use;
	sources.uses = args->uses;
	sources.all = args->all;
	sources.all_transport = args->mode;
	if (config_rules_load(&rules, &sources, &err))
		launcher_die("%s", err.text);
	return &rules;
}
