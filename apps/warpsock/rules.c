/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of a command line, and the table of all that there are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/warpsock/command.h"
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
		args->spins = !strcmp(value, "spin");
		args->mode = CONFIG_USE_TCP;
		if (!args->spins && config_mode_parse(value, &args->mode))
			launcher_die("--mode: expected on, auto or spin, got \"%s\"", value);
		return true;
	default:
		return false;
	}
}

static void mistake_tell(const struct config_error *mistake)
{
	fprintf(stderr, "warpsock: %s\n", mistake->text);
}

const struct config_rules *rules_load(const struct rules_args *args)
{
	static struct config_rules rules;
	struct config_sources sources;
	struct config_error err;

	if (args->moded && !args->all)
		launcher_die("--mode sets what --all does, and there is no --all");
	config_sources_init(&sources);
	sources.use = args->use;
	sources.uses = args->uses;
	sources.all = args->all;
	sources.all_transport = args->mode;
	sources.mistake = mistake_tell;
	if (config_rules_load(&rules, &sources, &err))
		exit(COMMAND_FAILED);
	return &rules;
}

const char *rules_source(const struct config_rule *r, const struct rules_args *args, char *out,
			 size_t size)
{
	struct config_sources sources;

	config_sources_init(&sources);
	if (r->source == CONFIG_FROM_FILE)
		snprintf(out, size, "%s, line %u",
			 sources.file ? sources.file : CONFIG_FILE_DEFAULT, r->line);
	else if (r->source == CONFIG_FROM_ENVIRONMENT)
		snprintf(out, size, "WARPSOCK_USE, line %u", r->line);
	else if (args->inherited)
		snprintf(out, size, "the command line, number %u", r->line);
	else if (r->line > args->uses)
		snprintf(out, size, "--all");
	else
		snprintf(out, size, "--use, number %u", r->line);
	return out;
}
