/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warpsock: the launcher and what tells a user about it.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/warpsock/command.h"
#include "apps/warpsock/launcher.h"
#include "config/nearest.h"

void launcher_die(const char *fmt, ...)
{
	va_list args;

	fputs("warpsock: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(COMMAND_FAILED);
}

int help_main(int argc, char **argv)
{
	const struct command *c = NULL;

	if (command_next("help", argc, argv) == 'J') {
		command_json();
		return 0;
	}
	if (argc > optind + 1)
		return command_wrong("help", "one command, not %d", argc - optind);
	if (argc > optind) {
		c = command_find(argv[optind]);
		if (!c)
			return command_unknown(argv[optind]);
	}
	command_help(c);
	return 0;
}

/* 0: it is none; else what is to be done: 'h'elp or 'v'ersion, '?' of one that there is not */
static int option_of(const char *word)
{
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return 'h';
	if (!strcmp(word, "--version"))
		return 'v';
	return word[0] == '-' ? '?' : 0;
}

static const char *option_name(unsigned int i)
{
	static const char *const names[] = { "help", "version", NULL };

	return names[i];
}

static int option_unknown(const char *word)
{
	size_t dashes = strspn(word, "-");
	const char *meant = config_nearest(word + dashes, strlen(word + dashes), option_name);

	fprintf(stderr, "warpsock: there is no option %s%s%s%s\nSee: warpsock help\n", word,
		meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "");
	return COMMAND_FAILED;
}

/* What follows --help may be a command; nothing follows --version */
static int option_do(int option, int argc, char **argv)
{
	if (option == '?')
		return option_unknown(argv[0]);
	if (option == 'h')
		return help_main(argc, argv);
	if (argc > 1)
		launcher_die("--version has no argument, and got \"%s\"", argv[1]);
	puts("warpsock " WARPSOCK_VERSION);
	return 0;
}

int main(int argc, char **argv)
{
	const struct command *c;
	int option;

	if (argc < 2) {
		fputs("warpsock: which command?\nSee: warpsock help\n", stderr);
		return COMMAND_FAILED;
	}
	option = option_of(argv[1]);
	if (option)
		return option_do(option, argc - 1, argv + 1);
	c = command_find(argv[1]);
	return c ? c->main(argc - 1, argv + 1) : command_unknown(argv[1]);
}
