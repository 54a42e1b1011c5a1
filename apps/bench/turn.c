/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One run: a server and a client as processes of their own, started anew each time and the same
 * way over DDP and over TCP, but that over DDP the launcher puts the interposer before the
 * socket calls. Their standard output is ours:
 *
 *	port N        the server, when a client may come
 *	value X       the client
 *	said {...}    either: settings that it found in force
 */
#include "apps/bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF "/proc/self/exe"
#define ARGS 64
/* Beyond a run's own time, for start and end; then it has hung and is killed */
#define PATIENCE 30

struct child {
	pid_t pid;
	FILE *out;
};

static void exec_end(const struct bench_plan *plan, enum bench_via via, enum bench_role role,
		     const char *port, char **argv)
{
	static const char *const launch[] = { SELF, "run", "--all", "--mode", "on", "--" };
	const char *args[ARGS] = { NULL };
	size_t n = 0;

	if (via == BENCH_DDP && !plan->kind->native)
		for (; n < sizeof(launch) / sizeof(launch[0]); n++)
			args[n] = launch[n];
	args[n++] = SELF;
	args[n++] = "bench";
	args[n++] = "end";
	args[n++] = role == BENCH_SERVER ? "server" : "client";
	args[n++] = via == BENCH_DDP ? "ddp" : "tcp";
	args[n++] = port;
	while (*++argv && n < ARGS - 1)
		args[n++] = *argv;
	setenv("WARPSOCK_CRC", plan->crc ? "on" : "off", 1);
	alarm((unsigned int)plan->seconds + PATIENCE);
	execv(SELF, (char **)(void *)args);
	fprintf(stderr, "warpsock: bench: " SELF ": %s\n", strerror(errno));
	_exit(126);
}

static int child_start(struct child *c, const struct bench_plan *plan, enum bench_via via,
		       enum bench_role role, const char *port, char **argv)
{
	int out[2];

	if (pipe(out))
		return -errno;
	c->pid = fork();
	if (c->pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		exec_end(plan, via, role, port, argv);
	}
	close(out[1]);
	c->out = fdopen(out[0], "r");
	if (c->pid > 0 && c->out)
		return 0;
	close(out[0]);
	return -ENOMEM;
}

/* Reads up to the line that begins with @key: its rest in @value */
static bool child_ask(struct child *c, const char *key, char *value, size_t room)
{
	size_t len = strlen(key);
	char line[512];

	while (c->out && fgets(line, sizeof(line), c->out)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, key, len) && line[len] == ' ') {
			snprintf(value, room, "%.*s", (int)room - 1, line + len + 1);
			return true;
		}
	}
	return false;
}

static int child_end(struct child *c)
{
	int status = 0;

	if (c->out)
		fclose(c->out);
	if (c->pid > 0 && waitpid(c->pid, &status, 0) < 0)
		return -errno;
	return status ? -ECHILD : 0;
}

int bench_turn_run(const struct bench_plan *plan, enum bench_via via, char **argv,
		   struct bench_turn *turn)
{
	struct child child[BENCH_ROLES] = { { .pid = 0 } };
	char text[64] = "";
	int err, end;

	err = child_start(&child[BENCH_SERVER], plan, via, BENCH_SERVER, "0", argv);
	if (!err && !child_ask(&child[BENCH_SERVER], "port", text, sizeof(text)))
		err = -ECHILD;
	if (!err)
		err = child_start(&child[BENCH_CLIENT], plan, via, BENCH_CLIENT, text, argv);
	if (!err && !child_ask(&child[BENCH_CLIENT], "value", text, sizeof(text)))
		err = -ECHILD;
	turn->value = atof(text);
	for (int i = BENCH_ROLES - 1; i >= 0; i--) {
		if (!err && !child_ask(&child[i], "said", turn->said[i], BENCH_SAID))
			err = -ECHILD;
		end = child_end(&child[i]);
		err = err ? err : end;
	}
	if (err)
		fprintf(stderr, "warpsock: bench: a run over %s failed\n",
			via == BENCH_DDP ? "DDP" : "TCP");
	return err ? 125 : 0;
}
