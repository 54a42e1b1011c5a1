/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ways a job can end, and what its console must make of them: endings N L WAY [CODE].
 */
#include <amudp_spmd.h>

#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the place of libc's, which FS_SYNC calls. */
void sync(void)
{
	puts("the file system is synced");
	fflush(stdout);
}

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

static void on_alarm(int number)
{
}

/* As profilers and schedulers of threads have it: all that can be interrupted is. */
static void timer_start(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } };
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

/* A child that has the rank's connections, and outlives it. */
static void orphan(int me)
{
	if (fork() == 0) {
		sleep(10);
		_exit(0);
	}
	if (me == 1)
		kill(getpid(), SIGKILL);
}

/* A child of rank 1 ends the job of all, itself among them. */
static void child(int code, eb_t eb)
{
	if (AMUDP_SPMDMyProc() == 1 && fork() == 0)
		AMUDP_SPMDExit(code);
	poll_for(eb, 30);
}

/* A child of rank 1 that stays behind after a good end; "exec": another program, with its output */
static void behind(const char *how)
{
	if (AMUDP_SPMDMyProc() == 1 && fork() == 0) {
		if (!strcmp(how, "exec"))
			execlp("sleep", "sleep", "20", (char *)NULL);
		sleep(20);
		_exit(0);
	}
}

/* Another job, that rank 0 starts as any program may: its code. */
static int nested(const char *command, char **argv)
{
	if (!AMUDP_SPMDIsWorker(argv))
		return 99;
	return AMUDP_SPMDMyProc() == 0 ? WEXITSTATUS(system(command)) : 0;
}

static void on_alarm_held(int number)
{
	usleep(600000);
}

/* A barrier that all have come to, and rank 0 ends the job while a signal holds the others in it */
static void held(ep_t ep)
{
	struct sigaction action = { .sa_handler = on_alarm_held };

	AM_FreeEndpoint(ep);
	sigaction(SIGALRM, &action, NULL);
	if (AMUDP_SPMDMyProc() == 0)
		usleep(400000);
	else
		ualarm(200000, 0);
	AMUDP_SPMDBarrier();
	printf("rank %d is behind the barrier\n", AMUDP_SPMDMyProc());
	AMUDP_SPMDExit(0);
}

static void input_tell(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin))
		printf("rank %d reads: %s", AMUDP_SPMDMyProc(), line);
}

static void on_nothing(void *token, void *buf, int n)
{
}

static void await_stop(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'T') {
		f = fopen(path, "r");
		if (!f || fscanf(f, "%*d %*s %c", &state) != 1)
			abort();
		fclose(f);
	}
}

/* How many requests are under way to a rank that does not answer, before the next must wait. */
static void depth(ep_t ep)
{
	static char segment[64];
	pid_t all[2], me = getpid();
	int n = 0;

	AM_SetSeg(ep, segment, sizeof(segment));
	AM_SetHandler(ep, 1, on_nothing);
	AMUDP_SPMDAllGather(&me, all, sizeof(me));
	if (AMUDP_SPMDMyProc() > 0)
		return;
	kill(all[1], SIGSTOP);
	await_stop(all[1]);
	while (AM_RequestXferAsync0(ep, 1, 0, 1, segment, 8) == AM_OK)
		n++;
	kill(all[1], SIGCONT);
	printf("%d under way\n", n);
}

static void print(int lines)
{
	int i, j;

	for (i = 0; i < lines; i++) {
		putchar('<');
		for (j = 0; j < 200; j++)
			putchar("0123456789abcdef"[(i + j) % 16]);
		puts(">");
	}
}

/* Nobody listens to what comes back. */
static void unheard(eb_t eb, ep_t ep)
{
	AMUDP_SPMDBarrier();
	if (AMUDP_SPMDMyProc() == 0)
		AM_Request0(ep, 1, 99);
	poll_for(eb, 5);
}

static int came_back, done;

static void on_returned(int status, op_t opcode, void *token)
{
	came_back++;
}

static void on_done(void *token, void *buf, int n)
{
	done++;
}

static void on_echo(void *token, void *buf, int n)
{
	AM_ReplyI0(token, 2, buf, n);
}

static unsigned long long sum(const uint64_t *v)
{
	return v[amudp_Short] + v[amudp_Medium] + v[amudp_Long];
}

/* In the order of am-stat's columns, from the name's port on; after that nothing happens. */
static void tell(eb_t eb, ep_t ep)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs(), i;
	static char data[700];
	amudp_xstats_t x;
	amudp_stats_t s;

	AM_SetHandler(ep, 0, on_returned);
	AM_SetHandler(ep, 1, on_echo);
	AM_SetHandler(ep, 2, on_done);
	AMUDP_SPMDBarrier();
	for (i = 0; i < 1000 + 100 * me; i++)
		AM_RequestI0(ep, (me + 1) % n, 1, data, i % 700);
	for (i = 0; i <= me; i++)
		AM_Request0(ep, (me + 1) % n, 77);
	while (done < 1000 + 100 * me || came_back <= me)
		AM_Poll(eb);
	AMUDP_SPMDBarrier();
	poll_for(eb, 0.5);
	AMUDP_GetEndpointStatistics(ep, &s);
	AMUDP_GetEndpointExtendedStatistics(ep, &x);
	printf("counted %d %d 0 %llu %llu %llu %llu %llu %llu\n", me, n, sum(s.RequestsSent),
	       sum(s.RepliesSent), sum(s.RequestsRetransmitted),
	       (unsigned long long)x.NeedlessRetransmissions,
	       (unsigned long long)s.ReturnedMessages, (unsigned long long)s.TotalBytesSent);
	fflush(stdout);
	poll_for(eb, 3);
}

/* Rank 0 ends the job; the others poll for ever, or wait for it in a barrier. */
static void first(int code, eb_t eb)
{
	AMUDP_SPMDSetExitCallback(callback);
	AMUDP_SPMDBarrier();
	if (AMUDP_SPMDMyProc() == 0)
		AMUDP_SPMDExit(code);
	if (AMUDP_SPMDMyProc() == 2) {
		AMUDP_SPMDBarrier();
		puts("a barrier without rank 0");
	}
	for (;;)
		AM_Poll(eb);
}

/*
 * Rank 0 ends the job while the others are still at work and do not poll: how each comes to its own
 * end then, by SPMDExit, by returning from main, by leaving at a poll, or not at all.
 */
static int late(const char *how, int code, eb_t eb)
{
	int me = AMUDP_SPMDMyProc(), served = 7;

	AMUDP_SPMDSetExitCallback(callback);
	AMUDP_SPMDBarrier();
	if (me > 0)
		usleep(400000);
	printf("rank %d is done\n", me);
	if (me > 0 && !strcmp(how, "print"))
		print(200);
	if (me > 0 && !strcmp(how, "return"))
		return 0;
	if (me > 0 && !strcmp(how, "poll")) {
		AM_Poll(eb);
		puts("a poll after the end");
	}
	if (me > 0 && !strcmp(how, "control")) {
		AMUDP_SPMDHandleControlTraffic(&served);
		puts("a call after the end");
	}
	if (me > 0 && !strcmp(how, "sleep")) {
		AM_SetEventMask(eb, AM_NOTEMPTY);
		AM_WaitSema(eb);
	}
	if (me > 0 && !strcmp(how, "never"))
		pause();
	AMUDP_SPMDExit(me ? code : 0);
	return 1;
}

/* What a worker is told of the console's environment */
static void variables(char **names)
{
	for (; *names; names++) {
		const char *value = AMUDP_SPMDgetenvMaster(*names);

		printf("%s %s; ", *names, value ? value : "unknown");
	}
	printf("told\n");
}

int main(int argc, char **argv)
{
	const char *way;
	uint64_t pid;
	eb_t eb;
	ep_t ep;
	int me, code, all[16];

	if (argc > 1 && !strcmp(argv[1], "timer"))
		timer_start();
	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	way = argc > 1 ? argv[1] : "exit";
	code = argc > 2 ? atoi(argv[2]) : 0;
	me = AMUDP_SPMDMyProc();
	if (strcmp(way, "print"))
		printf("rank %d\n", me);
	if (!strcmp(way, "stderr"))
		fprintf(stderr, "rank %d on stderr\n", me);
	if (me == 1 && !strcmp(way, "mixed"))
		AMUDP_SPMDAllGather(&me, all, sizeof(me));
	if (!strcmp(way, "callback"))
		AMUDP_SPMDSetExitCallback(callback);
	if (!strncmp(way, "print", 5))
		print(1000);
	AMUDP_SPMDBarrier();
	if (me == 1 && !strcmp(way, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(way, "orphan"))
		orphan(me);
	if (!strcmp(way, "child"))
		child(code, eb);
	if (!strcmp(way, "held"))
		held(ep);
	if (!strcmp(way, "behind"))
		behind(argv[2]);
	if (!strcmp(way, "nested"))
		code = nested(argv[2], argv);
	if (me == 1 && !strcmp(way, "closes"))
		closefrom(STDERR_FILENO + 1);
	if (me == 1 && !strcmp(way, "return"))
		return 3;
	if (me == 1 && !strcmp(way, "abort"))
		abort();
	if (!strcmp(way, "first"))
		first(code, eb);
	if (!strncmp(way, "late-", 5))
		return late(way + 5, code, eb);
	if (me == 1 && !strcmp(way, "deaf"))
		pause();
	if (!strcmp(way, "depth"))
		depth(ep);
	if (!strcmp(way, "buffer"))
		printf("room for %zu\n", __fbufsize(stdout));
	if (!strcmp(way, "partial")) {
		printf("begun");
		poll_for(eb, 3);
	}
	if (!strcmp(way, "variables"))
		variables(argv + 2);
	if (!strcmp(way, "input"))
		input_tell();
	if (!strcmp(way, "linger"))
		poll_for(eb, 3);
	if (!strcmp(way, "unheard"))
		unheard(eb, ep);
	if (!strcmp(way, "tell"))
		tell(eb, ep);
	if (!strcmp(way, "long") || !strcmp(way, "print-long"))
		poll_for(eb, 50);
	if (strcmp(way, "deaf"))
		AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(code);
}
