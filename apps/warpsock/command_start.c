/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The beginning of a program that has a table of commands: what its first word is.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "apps/warpsock/command.h"
#include "config/nearest.h"

int command_help_of(int argc, char **argv)
{
	const struct command *c = NULL;

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

	fprintf(stderr, "%s: there is no option %s%s%s%s\nSee: %s help\n", command_program.name,
		word, meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "",
		command_program.name);
	return command_program.failed;
}

/* What follows --help may be a command; nothing follows --version */
static int option_do(int option, int argc, char **argv)
{
	if (option == '?')
		return option_unknown(argv[0]);
	if (option == 'h')
		return command_find("help")->main(argc, argv);
	if (argc > 1) {
		fprintf(stderr, "%s: --version has no argument, and got \"%s\"\n",
			command_program.name, argv[1]);
		return command_program.failed;
	}
	printf("%s " WARPSOCK_VERSION "\n", command_program.name);
	return 0;
}

int command_start(int argc, char **argv)
{
	const struct command *c;
	int option;

	if (argc < 2) {
		fprintf(stderr, "%s: which command?\nSee: %s help\n", command_program.name,
			command_program.name);
		return command_program.failed;
	}
	option = option_of(argv[1]);
	if (option)
		return option_do(option, argc - 1, argv + 1);
	c = command_find(argv[1]);
	return c ? c->main(argc - 1, argv + 1) : command_unknown(argv[1]);
}
