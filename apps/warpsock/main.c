/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warpsock: the launcher and what tells a user about it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/warpsock/launcher.h"

const char launcher_usage[] =
	"usage: warpsock run [OPTION..] [--] COMMAND [ARG..]\n"
	"       warpsock explain [--use RULE].. [--all] [--mode on|auto] client|server PROGRAM "
	"ADDRESS:PORT\n"
	"       warpsock explain [CODE]\n"
	"       warpsock options [--profile NAME]\n"
	"       warpsock doctor\n"
	"       warpsock bench KIND [OPTION..]\n"
	"       warpsock --version | --help\n"
	"\n"
	"run starts COMMAND with its TCP sockets over iWARP, as rules say: those of the command\n"
	"line, then WARPSOCK_USE, then /etc/warpsock.conf or WARPSOCK_CONFIG.\n"
	"  --use RULE       ddp|auto|tcp client|server|* PROGRAM ADDRESS[/LEN]:PORT[-PORT]\n"
	"  --all            a rule for every TCP socket, behind those\n"
	"  --mode MODE      what --all says. on: only DDP, else a connection fails; auto: DDP\n"
	"                   where the peer speaks it\n"
	"  --profile NAME   a set of options: latency, throughput, safe\n"
	"  --provider NAME  who does RDMA\n"
	"  --report FILE    at exit, write there what was done, as JSON\n"
	"explain tells which rule decides about a socket, or what a reason code means.\n"
	"options shows every option with its value and where it comes from.\n"
	"doctor tells which RDMA devices there are, and why one cannot be used.\n";

void launcher_die(const char *fmt, ...)
{
	va_list args;

	fputs("warpsock: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(LAUNCHER_FAILED);
}

static int version_main(int argc, char **argv)
{
	puts("warpsock " WARPSOCK_VERSION);
	return 0;
}

static int help_main(int argc, char **argv)
{
	fputs(launcher_usage, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*main)(int argc, char **argv);
	} commands[] = {
		{ "run", run_main },	 { "options", options_main }, { "explain", explain_main },
		{ "bench", bench_main }, { "doctor", doctor_main },   { "--version", version_main },
		{ "--help", help_main },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	fputs(launcher_usage, stderr);
	return LAUNCHER_FAILED;
}
