/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every rank parses its arguments, as each gets the same: rank 0 alone says what is wrong, and the
 * others wait for the job's end meanwhile.
 */
#include "am_arguments.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/warp/amudp_spmd.h"

#define SECONDS_MOST 1e6

void am_arguments_help(const char *usage, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			printf("%s", usage);
			exit(0);
		}
	}
}

void am_argument_wrong(const struct am_arguments *a, int n)
{
	if (AMUDP_SPMDMyProc() == 0) {
		fprintf(stderr, "wrong argument: %s\n%s", a->argv[n], a->usage);
		AMUDP_SPMDExit(2);
	}
	AMUDP_SPMDBarrier(); /* to which rank 0 does not come */
	exit(2);
}

long am_argument_whole(const struct am_arguments *a, int n, long fallback, long low, long high)
{
	char *end;
	long value;

	if (n >= a->argc)
		return fallback;
	errno = 0;
	value = strtol(a->argv[n], &end, 10);
	if (end == a->argv[n] || *end || errno || value < low || value > high)
		am_argument_wrong(a, n);
	return value;
}

/* A length of time, up to the text behind it; negative: it is none. */
static double seconds_of(const char *text, const char *behind)
{
	char *end;
	double value = strtod(text, &end);

	return end != text && !strcmp(end, behind) && value > 0 && value <= SECONDS_MOST ? value
											 : -1;
}

double am_argument_seconds(const struct am_arguments *a, int n, double fallback)
{
	double value = n < a->argc ? seconds_of(a->argv[n], "") : fallback;

	if (value < 0)
		am_argument_wrong(a, n);
	return value;
}

void am_argument_limit(const struct am_arguments *a, int n, long fallback, long *rounds,
		       double *seconds)
{
	*rounds = 0;
	*seconds = n < a->argc ? seconds_of(a->argv[n], "s") : 0;
	if (*seconds > 0)
		return;
	*seconds = 0;
	*rounds = am_argument_whole(a, n, fallback, 1, INT_MAX);
}

void am_arguments_end(const struct am_arguments *a, int n)
{
	if (a->argc > n + 1)
		am_argument_wrong(a, n + 1);
}
