/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * amudprun: runs a program of Active Messages as a job of many processes and is its console.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/warp/amudp_spmd.h"

static void usage(FILE *to)
{
	const amudp_spawnfn_desc_t *d;

	fprintf(to, "usage: amudprun [-np N|-N N|-n N] [-spawn LETTER] [-depth N] [-env LIST] "
		    "[-v] [-h] program [arguments]\n");
	for (d = AMUDP_Spawnfn_Desc; d->abbrev; d++)
		fprintf(to, "   -spawn %c   %s\n", d->abbrev, d->desc);
}

static amudp_spawnfn_t spawn_find(const char *name)
{
	const amudp_spawnfn_desc_t *d;

	for (d = AMUDP_Spawnfn_Desc; d->abbrev; d++) {
		if (d->abbrev == (name[0] & ~0x20))
			return d->fnptr;
	}
	fprintf(stderr, "amudprun: there is no way %s to start workers\n", name);
	exit(2);
}

static int number(const char *option, const char *value, long most)
{
	char *end;
	long n = value ? strtol(value, &end, 10) : 0;

	if (!value || *end || n < 1 || n > most) {
		fprintf(stderr, "amudprun: %s wants a number, at most %ld\n", option, most);
		exit(2);
	}
	return (int)n;
}

int main(int argc, char **argv)
{
	amudp_spawnfn_t spawn = NULL;
	int i, np = 1, depth = 0;

	AMUDP_SilentMode = 1;
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			usage(stdout);
			return 0;
		}
		if (!strcmp(argv[i], "-v")) {
			AMUDP_SilentMode = 0;
			setenv("AMUDP_VERBOSEENV", "1", 1);
			continue;
		}
		if (!strcmp(argv[i], "-np") || !strcmp(argv[i], "-N") || !strcmp(argv[i], "-n"))
			np = number(argv[i], argv[i + 1], AMUDP_MAX_SPMDPROCS);
		else if (!strcmp(argv[i], "-depth"))
			depth = number(argv[i], argv[i + 1], AMUDP_MAX_NETWORKDEPTH);
		else if (!strcmp(argv[i], "-spawn") && i + 1 < argc)
			spawn = spawn_find(argv[i + 1]);
		else if (!strcmp(argv[i], "-env") && i + 1 < argc)
			setenv("AMUDP_PASS_ENV", argv[i + 1], 1);
		else
			break;
		i++;
	}
	if (i >= argc || argv[i][0] == '-') {
		usage(stderr);
		return 2;
	}
	return AMUDP_SPMDLaunch(np, depth, spawn, argc - i, argv + i) == AM_OK ? 0 : 2;
}
