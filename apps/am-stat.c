/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-stat: the endpoints of Active Messages that run now, once or again each SECONDS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/warp/amudp.h"

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		printf("usage: am-stat [SECONDS]\n\n"
		       "The endpoints of Active Messages that run now, once, or again each "
		       "SECONDS.\n");
		return 0;
	}
	if (argc > 2 || (argc == 2 && seconds <= 0)) {
		fprintf(stderr, "usage: am-stat [SECONDS]\n");
		return 2;
	}
	for (;;) {
		int n = AMUDP_DumpLive(NULL);

		fflush(stdout);
		if (seconds <= 0)
			return n > 0 ? 0 : 1;
		usleep((useconds_t)(seconds * 1e6));
	}
}
