/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock rules`: the table in force, and which of its rules can never decide.
 *
 * Below `warpsock run` that is the table of the command: the launcher has left it in the
 * environment, and there it goes before every other source.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"

static const struct config_rules *table_find(struct rules_args *args)
{
	static struct config_rules inherited;
	struct config_error err;

	if (args->uses || args->all || !getenv("WARPSOCK_RULES"))
		return rules_load(args);
	if (config_rules_inherit(&inherited, NULL, &err))
		launcher_die("%s", err.text);
	args->inherited = true;
	return &inherited;
}

/* Of `/etc/warpsock.conf, line 3` what stands before the comma is the heading */
static void heading_put(const char *source, char last[PATH_MAX])
{
	int n = (int)strcspn(source, ",");

	if (!strncmp(last, source, (size_t)n) && !last[n])
		return;
	snprintf(last, PATH_MAX, "%.*s", n, source);
	puts(last);
}

static void rule_put(const struct config_rules *rules, const struct config_rule *r,
		     const struct rules_args *args, char last[PATH_MAX])
{
	const struct config_rule *shadow = config_rule_shadow(rules, r);
	char source[PATH_MAX + 32], text[CONFIG_RULE_TEXT_MAX];

	heading_put(rules_source(r, args, source, sizeof(source)), last);
	printf("  %3u  %s\n", r->line, config_rule_format(r, text, sizeof(text)));
	if (shadow)
		printf("       never decides: %s comes before it\n",
		       rules_source(shadow, args, source, sizeof(source)));
}

int rules_main(int argc, char **argv)
{
	const struct config_rule *r = NULL;
	const struct config_rules *rules;
	struct rules_args args;
	char last[PATH_MAX] = "";
	int c;

	rules_args_init(&args, argc);
	while ((c = command_next("rules", argc, argv)) != -1)
		rules_args_take(&args, c, optarg);
	if (optind != argc)
		return command_wrong("rules", "there is no argument \"%s\"", argv[optind]);
	rules = table_find(&args);
	while ((r = config_rule_next(rules, r)))
		rule_put(rules, r, &args, last);
	if (!rules->count)
		puts("there is no rule: every socket stays on TCP");
	return 0;
}
