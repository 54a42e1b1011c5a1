/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock run`: puts the interposer, the rules and the options into the environment and becomes
 * COMMAND. Whatever is wrong with any of them is told before, and then nothing is started.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/warpsock/launcher.h"

#define PRELOAD "libwarpsock-preload.so"

struct plan {
	struct rules_args rules;
	const char *profile, *provider, *report;
};

static void environment_put(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		launcher_die("%s: %s", name, strerror(errno));
}

static void option_put(enum config_option_id id, const char *value)
{
	static struct config_settings scratch;
	struct config_error err;

	if (config_settings_set(&scratch, id, value, CONFIG_ENVIRONMENT, &err))
		launcher_die("%s", err.text);
	environment_put(config_option_get(id)->name, value);
}

/* What the user has set goes before it */
static void profile_put(const char *name)
{
	const struct config_profile *p = name ? config_profile_find(name) : NULL;

	for (const struct config_profile_value *v = p ? p->values : NULL; v && v->value; v++)
		if (!getenv(config_option_get(v->id)->name))
			option_put(v->id, v->value);
}

static void rules_put(const struct config_rules *rules)
{
	static char text[CONFIG_RULES_TEXT_MAX];

	if (config_rules_encode(rules, text, sizeof(text)))
		launcher_die("the rules are too many");
	environment_put(config_option_get(CONFIG_RULES)->name, text);
}

/* Nothing stands there, and something can */
static void report_try(const char *path)
{
	int fd;

	if (unlink(path) && errno != ENOENT)
		launcher_die("%s: %s", path, strerror(errno));
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		launcher_die("%s: %s", path, strerror(errno));
	close(fd);
	unlink(path);
}

/* The program may change its directory before it ends */
static void report_put(const char *file)
{
	char path[PATH_MAX], here[PATH_MAX];

	if (file[0] == '/') {
		snprintf(path, sizeof(path), "%s", file);
	} else {
		if (!getcwd(here, sizeof(here)))
			launcher_die("the working directory: %s", strerror(errno));
		if (snprintf(path, sizeof(path), "%s/%s", here, file) >= (int)sizeof(path))
			launcher_die("%s: %s", file, strerror(ENAMETOOLONG));
	}
	report_try(path);
	option_put(CONFIG_REPORT, path);
}

/* Beside the launcher, in the build tree or installed */
static void preload_find(char *path, size_t room)
{
	static const char *const places[] = { "%s/" PRELOAD, "%s/../preload/" PRELOAD,
					      "%s/../lib/warpsock/" PRELOAD,
					      "%s/../" WARPSOCK_LIBDIR "/warpsock/" PRELOAD };
	char exe[PATH_MAX], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		launcher_die("/proc/self/exe: %s", strerror(errno));
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, room, places[i], exe);
		if (realpath(path, real) && !access(real, R_OK)) {
			snprintf(path, room, "%s", real);
			return;
		}
	}
	launcher_die(PRELOAD " is not where it should be, beside %s", exe);
}

static void preload_put(void)
{
	const char *before = getenv("LD_PRELOAD");
	char path[PATH_MAX], *all;

	preload_find(path, sizeof(path));
	if (asprintf(&all, "%s%s%s", path, before ? ":" : "", before ? before : "") < 0)
		launcher_die("%s", strerror(errno));
	environment_put("LD_PRELOAD", all);
	free(all);
}

static void plan_parse(struct plan *plan, int argc, char **argv)
{
	static const struct option options[] = {
		{ "use", required_argument, NULL, 'u' },
		{ "all", no_argument, NULL, 'a' },
		{ "mode", required_argument, NULL, 'm' },
		{ "profile", required_argument, NULL, 'p' },
		{ "provider", required_argument, NULL, 'o' },
		{ "report", required_argument, NULL, 'r' },
		{ .name = NULL },
	};
	int c;

	rules_args_init(&plan->rules, argc);
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (optarg && !strcmp(optarg, "--"))
			launcher_die("run: what stands before -- needs a value");
		if (c == 'p') {
			plan->profile = optarg;
		} else if (c == 'o') {
			plan->provider = optarg;
		} else if (c == 'r') {
			plan->report = optarg;
		} else if (!rules_args_take(&plan->rules, c, optarg)) {
			fputs(launcher_usage, stderr);
			exit(LAUNCHER_FAILED);
		}
	}
	if (optind == argc)
		launcher_die("run: which command?");
}

int run_main(int argc, char **argv)
{
	static struct config_settings settings;
	struct plan plan = { .profile = NULL };

	plan_parse(&plan, argc, argv);
	if (plan.provider)
		option_put(CONFIG_PROVIDER, plan.provider);
	settings_load(&settings, plan.profile);
	rules_put(rules_load(&plan.rules));
	profile_put(plan.profile);
	target_check(argv[optind]);
	if (plan.report)
		report_put(plan.report);
	preload_put();
	execvp(argv[optind], argv + optind);
	fprintf(stderr, "warpsock: %s: %s\n", argv[optind], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
