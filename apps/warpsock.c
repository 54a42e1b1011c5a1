/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warpsock: the launcher. It has no subcommand yet and only states its version.
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("warpsock " WARPSOCK_VERSION);
		return 0;
	}
	fputs("usage: warpsock --version\n", stderr);
	return 2;
}
