/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program needs in its environment to be interposed: the shared object, the rules, options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/warpsock/launcher.h"

#define PRELOAD "libwarpsock-preload.so"

void environment_put(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		launcher_die("%s: %s", name, strerror(errno));
}

void environment_option(enum config_option_id id, const char *value)
{
	static struct config_settings scratch;
	struct config_error err;

	if (config_settings_set(&scratch, id, value, CONFIG_ENVIRONMENT, &err))
		launcher_die("%s", err.text);
	environment_put(config_option_get(id)->name, value);
}

void environment_rules(const struct config_rules *rules)
{
	static char text[CONFIG_RULES_TEXT_MAX];

	if (config_rules_encode(rules, text, sizeof(text)))
		launcher_die("the rules are too many");
	environment_put(config_option_get(CONFIG_RULES)->name, text);
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

void environment_preload(void)
{
	const char *before = getenv("LD_PRELOAD");
	char path[PATH_MAX], *all;

	preload_find(path, sizeof(path));
	if (asprintf(&all, "%s%s%s", path, before ? ":" : "", before ? before : "") < 0)
		launcher_die("%s", strerror(errno));
	environment_put("LD_PRELOAD", all);
	free(all);
}
