/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warpsock: the launcher and what tells a user about it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"

void launcher_die(const char *fmt, ...)
{
	va_list args;

	fputs("warpsock: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(COMMAND_FAILED);
}

int help_main(int argc, char **argv)
{
	if (command_next("help", argc, argv) != 'J')
		return command_help_of(argc, argv);
	command_json();
	return 0;
}

int main(int argc, char **argv)
{
	return command_start(argc, argv);
}
