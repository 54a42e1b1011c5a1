/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock run`: puts the interposer, the rules and the options into the environment and becomes
 * COMMAND, or its parent where something is to be printed behind it. Whatever is wrong with any of
 * them is told before, and then nothing is started.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"

struct plan {
	struct rules_args rules;
	const char *profile, *provider, *report;
	bool verbose;
	char counts[PATH_MAX]; /* the file of the command's report; empty: none */
	char shared[PATH_MAX]; /* what its processes share; empty: none */
	bool kept;	       /* the user asked for it, and by that name */
};

/* What the user has set goes before it */
static void profile_put(const char *name)
{
	const struct config_profile *p = name ? config_profile_find(name) : NULL;

	for (const struct config_profile_value *v = p ? p->values : NULL; v && v->value; v++)
		if (!getenv(config_option_get(v->id)->name))
			environment_option(v->id, v->value);
}

/* More than that the user may have asked for by the variable */
static void verbose_put(struct config_settings *settings)
{
	char level[8];

	config_settings_format(settings, CONFIG_LOG, level, sizeof(level));
	if (strcmp(level, "debug"))
		environment_option(CONFIG_LOG, "info");
}

static void plan_parse(struct plan *plan, int argc, char **argv)
{
	int c;

	rules_args_init(&plan->rules, argc);
	while ((c = command_next("run", argc, argv)) != -1) {
		if (c == 'P')
			plan->profile = optarg;
		else if (c == 'O')
			plan->provider = optarg;
		else if (c == 'r')
			plan->report = optarg;
		else if (c == 'v')
			plan->verbose = true;
		else
			rules_args_take(&plan->rules, c, optarg);
	}
	if (optind == argc)
		exit(command_wrong("run", "which command?"));
}

static bool prints(const struct plan *plan)
{
	return plan->verbose || (plan->report && !strcmp(plan->report, "-"));
}

/*
 * The variable may name a file already, which is like --report, but begins with what it has. The
 * file that we read at the end ourselves is as if it were asked for, too: the command's process
 * leaves it to us
 */
static void counts_put(struct plan *plan, const char *named)
{
	char command[PATH_MAX + 16];

	plan->kept = named[0] || (plan->report && strcmp(plan->report, "-"));
	counts_private(plan->shared);
	if (plan->report && strcmp(plan->report, "-"))
		counts_report(plan->report, plan->counts);
	else if (named[0])
		counts_named(named, plan->counts);
	else
		snprintf(plan->counts, sizeof(plan->counts), "%s", plan->shared);
	if (plan->kept || prints(plan))
		environment_option(CONFIG_REPORT, plan->counts);
	snprintf(command, sizeof(command), "%d:%s", getpid(), plan->shared);
	environment_option(CONFIG_COMMAND, command);
}

/*
 * The command itself is a program that could not be interposed. If we do not wait for it, nobody
 * would remove what its processes share
 */
static void plain_count(const struct plan *plan)
{
	static const struct config_report one = { .n[CONFIG_REPORT_NOT_INTERPOSED] = 1 };
	struct config_report all;

	counts_add(plan->counts, &one, &all);
	if (prints(plan))
		return;
	unlink(plan->shared);
	environment_option(CONFIG_COMMAND, "");
}

static int start(const struct plan *plan, char **argv)
{
	bool json = plan->report && !strcmp(plan->report, "-");
	int err;

	if (prints(plan))
		return watch_command(argv, &(struct watch){ plan->counts, plan->shared,
							    plan->verbose, json });
	execvp(argv[0], argv);
	err = errno;
	fprintf(stderr, "warpsock: %s: %s\n", argv[0], strerror(err));
	unlink(plan->shared);
	return err == ENOENT ? 127 : 126;
}

int run_main(int argc, char **argv)
{
	static struct config_settings settings;
	static struct plan plan;
	const struct config_rules *rules;
	enum target target;

	plan_parse(&plan, argc, argv);
	if (plan.provider)
		environment_option(CONFIG_PROVIDER, plan.provider);
	settings_load(&settings, plan.profile);
	rules = rules_load(&plan.rules);
	if (!rules->count)
		fputs("warpsock: there is no rule, so every socket stays on TCP: give --all or "
		      "--use, or write /etc/warpsock.conf\n",
		      stderr);
	environment_rules(rules);
	if (plan.rules.spins)
		environment_option(CONFIG_TCP_SPIN, "on");
	profile_put(plan.profile);
	if (plan.verbose)
		verbose_put(&settings);
	target = target_check(argv[optind], rules);
	if (target != TARGET_PLAIN_UNLOADED)
		environment_preload();
	counts_put(&plan, config_text(&settings, CONFIG_REPORT));
	if (target != TARGET_INTERPOSED)
		plain_count(&plan);
	return start(&plan, argv + optind);
}
