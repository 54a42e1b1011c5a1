/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-stat: the endpoints of Active Messages that run now, once or again each SECONDS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/warp/amudp.h"

#define SECONDS_LEAST 0.001
#define SECONDS_MOST 86400.0

/* 0: it is none, or out of range */
static double seconds_parse(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	return *end || !(seconds >= SECONDS_LEAST && seconds <= SECONDS_MOST) ? 0 : seconds;
}

static void pause_for(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds };

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	double seconds = argc == 2 ? seconds_parse(argv[1]) : 0;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		printf("usage: am-stat [SECONDS]\n\n"
		       "The endpoints of Active Messages that run now, once, or again each "
		       "SECONDS.\n");
		return 0;
	}
	if (argc > 2 || (argc == 2 && seconds <= 0)) {
		fprintf(stderr, "usage: am-stat [SECONDS]\nSECONDS: %g to %.0f\n", SECONDS_LEAST,
			SECONDS_MOST);
		return 2;
	}
	for (;;) {
		int n = AMUDP_DumpLive(NULL);

		if (fflush(stdout) == EOF) {
			fprintf(stderr, "am-stat: cannot write: %s\n", strerror(errno));
			return 2;
		}
		if (seconds <= 0)
			return n > 0 ? 0 : 1;
		pause_for(seconds);
	}
}
