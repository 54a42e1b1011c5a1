/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of the interposer in a program that is executed.
 *
 * config/loadable.c judges the file. Here the user is told of a program that goes on without the
 * interposer where rules are for it: its sockets are plain TCP, and nothing else would say so.
 *
 * Children of vfork() call it too, so no memory is taken.
 */
#include "preload/process/loadable.h"

#include <string.h>

#include "preload/rules/choose.h"
#include "preload/rules/report.h"

static enum loadable judged(const char *file, enum config_loads l)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (l == CONFIG_LOADS_YES || l == CONFIG_LOADS_NOTHING)
		return l == CONFIG_LOADS_YES ? LOADABLE_YES : LOADABLE_NOTHING;
	/* The kernel may know a file that is no ELF, or refuse it */
	if (l != CONFIG_LOADS_TEXT && choose_wants(slash ? slash + 1 : file))
		report_unloadable(file, l);
	return l == CONFIG_LOADS_MUSL ? LOADABLE_BREAKS : LOADABLE_NO;
}

enum loadable loadable_at(int dir, const char *path, int flags)
{
	return judged(path, config_loads_at(dir, path, flags));
}

enum loadable loadable_find(const char *file)
{
	return judged(file, config_loads_find(file));
}
