/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command: rounds of one run over DDP and one over TCP. The two take turns, so that a
 * machine whose speed changes in between changes both.
 *
 * Before anything is told it is proved that the runs over DDP were that: the interposer's
 * report must know of both ends of each run, and of no connection that stayed TCP.
 */
#include "apps/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/warpsock/command.h"
#include "config/nearest.h"

#define SOCKETS(server, client)                                                    \
	{                                                                          \
		[BENCH_DDP] = { server, client }, [BENCH_TCP] = { server, client } \
	}

static const struct bench_kind kinds[] = {
	{ "pingpong", "us", 64, false, SOCKETS(bench_pingpong_server, bench_pingpong_client) },
	{ "stream", "MB/s", 1 << 20, false, SOCKETS(bench_put_server, bench_put_client) },
	{ "rdma-write",
	  "MB/s",
	  1 << 20,
	  true,
	  { [BENCH_DDP] = { bench_rdma_server, bench_write_client },
	    [BENCH_TCP] = { bench_put_server, bench_put_client } } },
	{ "rdma-read",
	  "MB/s",
	  1 << 20,
	  true,
	  { [BENCH_DDP] = { bench_rdma_server, bench_read_client },
	    [BENCH_TCP] = { bench_get_server, bench_get_client } } },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int bad(const char *what, const char *text)
{
	fprintf(stderr, "warpsock: bench: %s: %s\n", what, text);
	return 125;
}

static int number(const char *what, const char *text, double min, double max, double *out)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min && value <= max)) {
		fprintf(stderr, "warpsock: bench: %s is from %g to %g, not '%s'\n", what, min, max,
			text);
		return 125;
	}
	*out = value;
	return 0;
}

static int cpus_parse(struct bench_plan *plan, const char *text)
{
	int n = -1;

	if (sscanf(text, "%d,%d%n", &plan->cpu[0], &plan->cpu[1], &n) == 2 && !text[n] &&
	    plan->cpu[0] >= 0 && plan->cpu[1] >= 0 && plan->cpu[0] < CPU_SETSIZE &&
	    plan->cpu[1] < CPU_SETSIZE)
		return 0;
	return bad("--cpus is two numbers of processors, as 0,1, not", text);
}

/* Two different ones if there are */
static void cpus_choose(struct bench_plan *plan)
{
	cpu_set_t all;
	int n = 0;

	plan->cpu[BENCH_SERVER] = plan->cpu[BENCH_CLIENT] = -1;
	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (int i = 0; i < CPU_SETSIZE && n < BENCH_ROLES; i++)
		if (CPU_ISSET(i, &all))
			plan->cpu[n++] = i;
	if (n == 1)
		plan->cpu[BENCH_CLIENT] = plan->cpu[BENCH_SERVER];
}

static int option_take(struct bench_plan *plan, int c)
{
	double n = 0;
	int err = 0;

	switch (c) {
	case 'J':
		plan->json = true;
		return 0;
	case 's':
		err = number("--size", optarg, 1, 1 << 30, &n);
		plan->size = (size_t)n;
		return err;
	case 'n':
		err = number("--count", optarg, 1, 1e12, &n);
		plan->count = (uint64_t)n;
		return err;
	case 't':
		return number("--seconds", optarg, 0.001, 60, &plan->seconds);
	case 'r':
		err = number("--rounds", optarg, 1, BENCH_ROUNDS, &n);
		plan->rounds = (unsigned int)n;
		return err;
	case 'S':
	case 'B':
		plan->spin = c == 'S';
		return 0;
	case 'C':
		return cpus_parse(plan, optarg);
	case 'X':
		plan->crc = false;
		return 0;
	case 'F':
		plan->report = optarg;
		return 0;
	default:
		return 125;
	}
}

static const char *kind_name(unsigned int i)
{
	return i < KINDS ? kinds[i].name : NULL;
}

static int kind_find(struct bench_plan *plan, const char *name)
{
	const char *meant;

	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			plan->kind = &kinds[i];
	if (plan->kind)
		return 0;
	meant = config_nearest(name, strlen(name), kind_name);
	return command_wrong("bench", "there is no measurement \"%s\"%s%s%s", name,
			     meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

int bench_plan_parse(struct bench_plan *plan, int argc, char **argv)
{
	int c, err = 0;

	*plan = (struct bench_plan){ .seconds = 1, .rounds = 5, .crc = true };
	cpus_choose(plan);
	while (!err && (c = command_next("bench", argc, argv)) != -1)
		err = option_take(plan, c);
	if (err)
		return err;
	if (optind != argc - 1)
		return command_wrong("bench", "which measurement: pingpong, stream, rdma-write or "
					      "rdma-read?");
	err = kind_find(plan, argv[optind]);
	if (!err && !plan->size)
		plan->size = plan->kind->size;
	return err;
}

/* --- the interposer's report --- */

/* An empty file, and its name for whoever will write there */
static int report_begin(const struct bench_plan *plan, char *path)
{
	int fd;

	snprintf(path, PATH_MAX, "/tmp/warpsock-bench-XXXXXX");
	if (plan->report) {
		FILE *f = fopen(plan->report, "we");

		if (!f || !realpath(plan->report, path))
			return bad(plan->report, strerror(errno));
		fclose(f);
	} else {
		fd = mkostemp(path, O_CLOEXEC);
		if (fd < 0)
			return bad(path, strerror(errno));
		close(fd);
	}
	if (setenv("WARPSOCK_REPORT", path, 1))
		return bad("the environment", strerror(errno));
	return 0;
}

static int report_judge(const struct bench_plan *plan, const char *path, struct bench_sums *sums)
{
	char text[1024] = "";
	FILE *f = fopen(path, "re");
	const char *tcp;

	if (!f || !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	tcp = strstr(text, "\"tcp\": ");
	if (sscanf(text, "{\"connections\": {\"software\": %lu", &sums->software) != 1 || !tcp ||
	    sscanf(tcp, "\"tcp\": %lu", &sums->tcp) != 1)
		return bad("the interposer made no report", text);
	if (sums->software != 2 * plan->rounds || sums->tcp)
		return bad("a run over DDP was not on DDP", text);
	return 0;
}

static int rounds_run(const struct bench_plan *plan, char **argv, struct bench_sums *sums)
{
	unsigned int number = 0;
	int err = 0;

	for (unsigned int i = 0; i < plan->rounds; i++)
		for (int via = 0; via < BENCH_VIAS && !err; via++) {
			sums->turn[via][i].number = number++;
			err = bench_turn_run(plan, (enum bench_via)via, argv, &sums->turn[via][i]);
		}
	return err;
}

static int measure(const struct bench_plan *plan, char **argv)
{
	static struct bench_sums sums;
	char path[PATH_MAX];
	int err = report_begin(plan, path);

	if (err)
		return err;
	err = rounds_run(plan, argv, &sums);
	if (!err && !plan->kind->native)
		err = report_judge(plan, path, &sums);
	if (!plan->report)
		unlink(path);
	if (!err)
		bench_report(plan, &sums);
	return err;
}

int bench_main(int argc, char **argv)
{
	struct bench_plan plan;
	int err;

	if (argc > 1 && !strcmp(argv[1], "end"))
		return bench_end_main(argc - 1, argv + 1);
	err = bench_plan_parse(&plan, argc, argv);
	return err ? err : measure(&plan, argv);
}
