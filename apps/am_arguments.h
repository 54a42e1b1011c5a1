/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arguments of the programs that measure and show Active Messages. What is wrong is told once for a
 * job, by rank 0, with the usage, and the job ends with code 2.
 */
#ifndef AM_ARGUMENTS_H
#define AM_ARGUMENTS_H

struct am_arguments {
	const char *usage; /* lines; the first one is "usage: ..." */
	int argc;	   /* once AMX_SPMDStartup has taken its own */
	char **argv;
};

/* Before AMX_SPMDStartup: --help and -h print the usage and end the program. */
void am_arguments_help(const char *usage, int argc, char **argv);

/* The n-th one, a number from low to high, or the fallback where there is none. */
long am_argument_whole(const struct am_arguments *a, int n, long fallback, long low, long high);
double am_argument_seconds(const struct am_arguments *a, int n, double fallback);
/* So many rounds, or, with an s behind the number, as long as seconds: the other one is 0. */
void am_argument_limit(const struct am_arguments *a, int n, long fallback, long *rounds,
		       double *seconds);
/* There is none behind the n-th one. */
void am_arguments_end(const struct am_arguments *a, int n);
/* One of them is none of these. */
void am_argument_wrong(const struct am_arguments *a, int n) __attribute__((noreturn));

#endif
