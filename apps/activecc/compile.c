/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs clang for BPF with the options that the engine wants:
 *
 * -mcpu=v3: atomics that give the old value, and jumps of 32 bits; -g: source lines in messages;
 * -ffreestanding: no call of memset() and the like is made of loops, and <stdint.h> is clang's own;
 * -fno-jump-tables: there are no jumps through registers.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/activecc/activecc.h"

enum { WORDS_MAX = ACTIVECC_ARGS_MAX + 32 };

extern char **environ;

/* Where warp/program.h is: beside the program, in the build tree or installed */
static bool headers_find(char *path, size_t room)
{
	static const char *const places[] = { "%s/../include", "%s/" SOURCE_HEADERS };
	char exe[PATH_MAX], header[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return false;
	exe[n] = 0;
	*strrchr(exe, '/') = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(path, room, places[i], exe) >= (int)room)
			continue;
		snprintf(header, sizeof(header), "%s/warp/program.h", path);
		if (!access(header, R_OK))
			return true;
	}
	return false;
}

/* As system(3): whoever presses ^C ends the compiler, and this goes on to clean up */
static int program_run(char *const words[])
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before[2];
	posix_spawnattr_t attr;
	sigset_t defaults;
	int ret, status = 0;
	pid_t pid;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGINT);
	sigaddset(&defaults, SIGQUIT);
	sigaction(SIGINT, &ignore, &before[0]);
	sigaction(SIGQUIT, &ignore, &before[1]);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	ret = -posix_spawnp(&pid, words[0], NULL, &attr, words, environ);
	while (!ret && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			ret = -errno;
	posix_spawnattr_destroy(&attr);
	sigaction(SIGINT, &before[0], NULL);
	sigaction(SIGQUIT, &before[1], NULL);
	return ret ? ret : status;
}

enum activecc_status activecc_compile(const struct activecc_options *opt, const char *source,
				      const char *to)
{
	char headers[PATH_MAX], level[64];
	const char *words[WORDS_MAX] = { opt->clang,	   "-target", "bpf",
					 "-mcpu=v3",	   "-g",      level,
					 "-ffreestanding", "-Wall",   "-fno-jump-tables" };
	unsigned int n = 9;
	int status;

	if (snprintf(level, sizeof(level), "-O%s", opt->level) >= (int)sizeof(level)) {
		activecc_complain("no such level of optimisation: %s", opt->level);
		return ACTIVECC_USAGE;
	}
	if (headers_find(headers, sizeof(headers))) {
		words[n++] = "-idirafter";
		words[n++] = headers;
	}
	for (unsigned int i = 0; i < opt->passed_count; i++)
		words[n++] = opt->passed[i];
	words[n++] = "-c";
	words[n++] = "-o";
	words[n++] = to;
	words[n++] = "--";
	words[n++] = source;
	if (opt->kind == ACTIVECC_ASSEMBLER) /* which makes nothing of the rest, and would say so */
		words[7] = "-Wno-unused-command-line-argument";
	status = program_run((char *const *)words);
	if (status < 0)
		activecc_complain("%s: %s", opt->clang, strerror(-status));
	else if (WIFSIGNALED(status))
		activecc_complain("%s: %s", opt->clang, strsignal(WTERMSIG(status)));
	else
		return WEXITSTATUS(status) ? ACTIVECC_REFUSED : ACTIVECC_OK;
	return ACTIVECC_FAILED;
}
