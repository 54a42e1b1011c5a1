/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options as the environment and a profile have them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warp/rdma.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/nearest.h"

static void complain(void *ctx, bool bad, const struct config_error *what)
{
	fprintf(stderr, "warpsock: %s\n", what->text);
}

static const char *profile_name(unsigned int i)
{
	const struct config_profile *p = config_profile_at(i);

	return p ? p->name : NULL;
}

__attribute__((noreturn)) static void no_profile(const char *name)
{
	const char *meant = config_nearest(name, strlen(name), profile_name);
	const struct config_profile *p;
	char names[256] = "";

	for (unsigned int i = 0; (p = config_profile_at(i)); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i ? ", " : "", p->name);
	launcher_die("--profile: expected one of %s, got \"%s\"%s%s%s", names, name,
		     meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

/* With or without a device's name behind a colon */
static bool provider_is_there(const char *name)
{
	const char *have;
	size_t len = strcspn(name, ":");

	if (!strcmp(name, "auto"))
		return true;
	for (unsigned int i = 0; (have = warp_provider_name(i)); i++)
		if (strlen(have) == len && !strncmp(have, name, len))
			return true;
	return false;
}

static void provider_check(const char *name)
{
	const char *have;
	char names[256] = "auto";

	if (provider_is_there(name))
		return;
	for (unsigned int i = 0; (have = warp_provider_name(i)); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), ", %s", have);
	launcher_die("provider: expected one of %s, got \"%s\"", names, name);
}

void settings_load(struct config_settings *settings, const char *profile)
{
	const struct config_profile *p = profile ? config_profile_find(profile) : NULL;

	if (profile && !p)
		no_profile(profile);
	config_settings_init(settings);
	if (p)
		config_profile_apply(settings, p);
	if (config_settings_read(settings, environ, complain, NULL))
		exit(COMMAND_FAILED);
	provider_check(config_text(settings, CONFIG_PROVIDER));
}
