/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Can the command be interposed? config/loadable.c judges it, as it judges the programs that the
 * command's processes execute. A command that cannot be would run on plain TCP without a word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/warpsock/launcher.h"
#include "config/loadable.h"

#define CANNOT_RUN 126

/* What rules want most of a program of this name */
static enum config_transport wanted(const struct config_rules *rules, const char *name)
{
	enum config_transport most = CONFIG_USE_TCP;
	const struct config_rule *r = NULL;

	while ((r = config_rule_next(rules, r)))
		if (r->transport > most && config_rule_is_for(r, name))
			most = (enum config_transport)r->transport;
	return most;
}

enum target target_check(const char *command, const struct config_rules *rules)
{
	const char *slash = strrchr(command, '/');
	enum config_loads l = config_loads_find(command);
	enum config_transport most;

	/* What may be run but not read is not judged, and what is nothing execvp() refuses */
	if (l == CONFIG_LOADS_YES || l == CONFIG_LOADS_NOTHING || l == CONFIG_LOADS_TEXT ||
	    l == CONFIG_LOADS_UNREADABLE)
		return TARGET_INTERPOSED;
	most = wanted(rules, slash ? slash + 1 : command);
	if (most != CONFIG_USE_TCP)
		fprintf(stderr, "warpsock: %s %s: it cannot be interposed, %s\n", command,
			config_loads_text(l),
			most == CONFIG_USE_DDP ? "and is not run in mode on"
					       : "and its sockets stay on TCP");
	if (most == CONFIG_USE_DDP)
		exit(CANNOT_RUN);
	if (l == CONFIG_LOADS_MUSL)
		return TARGET_PLAIN_UNLOADED;
	return most == CONFIG_USE_TCP ? TARGET_INTERPOSED : TARGET_PLAIN;
}
