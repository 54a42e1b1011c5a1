/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways a job can end, and what its console must make of them: endings N L WAY [CODE].
 */
#include <amudp_spmd.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void callback(int code)
{
	printf("callback of rank %d: %d\n", AMUDP_SPMDMyProc(), code);
}

static void poll_for(eb_t eb, double seconds)
{
	int i;

	for (i = 0; i < seconds * 1000; i++) {
		AM_Poll(eb);
		usleep(1000);
	}
}

static void print(void)
{
	int i, j;

	for (i = 0; i < 1000; i++) {
		putchar('<');
		for (j = 0; j < 60; j++)
			putchar("0123456789abcdef"[(i + j) % 16]);
		puts(">");
	}
}

int main(int argc, char **argv)
{
	const char *way;
	uint64_t pid;
	eb_t eb;
	ep_t ep;
	int me, code;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	way = argc > 1 ? argv[1] : "exit";
	code = argc > 2 ? atoi(argv[2]) : 0;
	me = AMUDP_SPMDMyProc();
	if (strcmp(way, "print"))
		printf("rank %d\n", me);
	if (!strcmp(way, "callback"))
		AMUDP_SPMDSetExitCallback(callback);
	if (!strcmp(way, "print"))
		print();
	AMUDP_SPMDBarrier();
	if (me == 1 && !strcmp(way, "kill"))
		kill(getpid(), SIGKILL);
	if (me == 1 && !strcmp(way, "return"))
		return 3;
	if (me == 1 && !strcmp(way, "abort"))
		abort();
	if (me == 1 && !strcmp(way, "deaf"))
		pause();
	if (!strcmp(way, "linger"))
		poll_for(eb, 1.5);
	if (strcmp(way, "deaf"))
		AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(code);
}
