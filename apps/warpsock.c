/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warpsock: the launcher. `warpsock run` puts the interposer and its options into the
 * environment and becomes COMMAND.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "config/option.h"

#define PRELOAD "libwarpsock-preload.so"

static const char usage[] = "usage: warpsock run [--all] [--mode on|auto|off] [--report FILE] [--] "
			    "COMMAND [ARG..]\n"
			    "       warpsock bench KIND [OPTION..]\n"
			    "       warpsock --version | --help\n"
			    "\n"
			    "Runs COMMAND with its TCP sockets over iWARP.\n"
			    "  --all          every TCP socket of the command\n"
			    "  --mode MODE    on: only DDP, else a connection fails; auto: DDP "
			    "where the peer speaks it\n"
			    "  --report FILE  at exit, write there what was done, as JSON\n";

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list args;

	fputs("warpsock: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(125);
}

/* Into the environment, when the table finds it good */
static void option_set(enum config_option_id id, const char *text)
{
	static struct config_settings scratch;
	struct config_error err;

	if (config_settings_set(&scratch, id, text, CONFIG_ENVIRONMENT, &err))
		die("%s", err.text);
	if (setenv(config_option_get(id)->name, text, 1))
		die("%s", strerror(errno));
}

static void environment_complain(void *ctx, bool bad, const struct config_error *what)
{
	fprintf(stderr, "warpsock: %s\n", what->text);
}

/* What is wrong in the environment must not be ignored in silence by every process to come. */
static void environment_check(void)
{
	static struct config_settings scratch;

	config_settings_init(&scratch);
	if (config_settings_read(&scratch, environ, environment_complain, NULL))
		exit(125);
}

/* The program may change its directory before it ends */
static void report_set(const char *file)
{
	char path[PATH_MAX], here[PATH_MAX];

	if (file[0] == '/') {
		snprintf(path, sizeof(path), "%s", file);
	} else {
		if (!getcwd(here, sizeof(here)))
			die("the working directory: %s", strerror(errno));
		if (snprintf(path, sizeof(path), "%s/%s", here, file) >= (int)sizeof(path))
			die("%s: %s", file, strerror(ENAMETOOLONG));
	}
	if (unlink(path) && errno != ENOENT)
		die("%s: %s", path, strerror(errno));
	option_set(CONFIG_REPORT, path);
}

/* Beside the launcher, in the build tree or installed */
static void preload_find(char *path, size_t room)
{
	static const char *const places[] = { "%s/" PRELOAD, "%s/../preload/" PRELOAD,
					      "%s/../lib/warpsock/" PRELOAD,
					      "%s/../" WARPSOCK_LIBDIR "/warpsock/" PRELOAD };
	char exe[PATH_MAX], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		die("/proc/self/exe: %s", strerror(errno));
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, room, places[i], exe);
		if (realpath(path, real) && !access(real, R_OK)) {
			snprintf(path, room, "%s", real);
			return;
		}
	}
	die(PRELOAD " is not where it should be, beside %s", exe);
}

static void preload_set(void)
{
	const char *before = getenv("LD_PRELOAD");
	char path[PATH_MAX], *all;

	preload_find(path, sizeof(path));
	if (asprintf(&all, "%s%s%s", path, before ? ":" : "", before ? before : "") < 0 ||
	    setenv("LD_PRELOAD", all, 1))
		die("%s", strerror(errno));
	free(all);
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "mode", required_argument, NULL, 'm' },
		{ "report", required_argument, NULL, 'r' },
		{ .name = NULL },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			option_set(CONFIG_ALL, "1");
			break;
		case 'm':
			option_set(CONFIG_MODE, optarg);
			break;
		case 'r':
			report_set(optarg);
			break;
		default:
			fputs(usage, stderr);
			return 125;
		}
	}
	if (optind == argc)
		die("run: which command?");
	environment_check();
	preload_set();
	execvp(argv[optind], argv + optind);
	fprintf(stderr, "warpsock: %s: %s\n", argv[optind], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "run"))
		return run(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "bench"))
		return bench_main(argc - 1, argv + 1);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("warpsock " WARPSOCK_VERSION);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	fputs(usage, stderr);
	return 125;
}
