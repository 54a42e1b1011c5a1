/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Commands and options as a user writes them: read by the table, and explained by it.
 *
 * Help that was asked for goes to standard output. A mistake goes to standard error: what is wrong,
 * what was probably meant, and how to get help, but not the help itself, under which nobody
 * would find the mistake.
 */
#include "apps/warpsock/command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/nearest.h"

#define COLUMNS 80

const struct command *command_find(const char *name)
{
	const struct command *c;

	for (unsigned int i = 0; (c = command_at(i)); i++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

/* --- mistakes --- */

static const struct command *searched;

static const char *command_name(unsigned int i)
{
	const struct command *c = command_at(i);

	return c ? c->name : NULL;
}

static const char *option_name(unsigned int i)
{
	return searched->options[i].name;
}

int command_wrong(const char *name, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: %s: ", command_program.name, name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\nSee: %s help %s\n", command_program.name, name);
	return command_program.failed;
}

int command_unknown(const char *name)
{
	const char *meant = config_nearest(name, strlen(name), command_name);

	fprintf(stderr, "%s: there is no command \"%s\"", command_program.name, name);
	if (meant)
		fprintf(stderr, "; did you mean %s?", meant);
	fprintf(stderr, "\nSee: %s help\n", command_program.name);
	return command_program.failed;
}

static int option_wrong(const struct command *c, const char *word)
{
	size_t len = strcspn(word, "=");
	const char *meant = NULL;

	searched = c;
	if (len > 2 && !strncmp(word, "--", 2))
		meant = config_nearest(word + 2, len - 2, option_name);
	if (meant)
		return command_wrong(c->name, "there is no option %.*s; did you mean --%s?",
				     (int)len, word, meant);
	return command_wrong(c->name, "there is no option %.*s", (int)len, word);
}

static int value_missing(const struct command *c, int letter)
{
	const struct command_option *o = c->options;

	while (o->name && o->letter != letter)
		o++;
	return command_wrong(c->name, "--%s needs a value: %s", o->name, o->arg);
}

/* --- reading --- */

static void options_make(const struct command *c, struct option *out)
{
	const struct command_option *o = c->options;

	for (; o->name; o++)
		*out++ = (struct option){ o->name, o->arg ? required_argument : no_argument, NULL,
					  o->letter };
	*out++ = (struct option){ "help", no_argument, NULL, 'h' };
	*out = (struct option){ .name = NULL };
}

/* Of those that have a short form */
static void letters_make(const struct command *c, char *out)
{
	out = stpcpy(out, c->leaves_rest ? "+:h" : ":h");
	for (const struct command_option *o = c->options; o->name; o++) {
		if (o->letter >= 'A' && o->letter <= 'Z')
			continue;
		*out++ = (char)o->letter;
		if (o->arg)
			*out++ = ':';
	}
	*out = '\0';
}

int command_next(const char *name, int argc, char **argv)
{
	const struct command *c = command_find(name);
	struct option options[COMMAND_OPTIONS + 2];
	char letters[2 * COMMAND_OPTIONS + 4], two[3] = "-?";
	const char *word;
	int letter;

	options_make(c, options);
	letters_make(c, letters);
	opterr = 0;
	letter = getopt_long(argc, argv, letters, options, NULL);
	if (letter == 'h') {
		command_help(c);
		exit(0);
	}
	if (letter == ':' || (letter > 0 && letter != '?' && optarg && !strcmp(optarg, "--")))
		exit(value_missing(c, letter == ':' ? optopt : letter));
	if (letter != '?')
		return letter;
	two[1] = (char)optopt;
	word = argv[optind - 1];
	if (optopt && !strncmp(word, "--", 2))
		exit(command_wrong(c->name, "%.*s has no value", (int)strcspn(word, "="), word));
	exit(option_wrong(c, optopt ? two : word));
}

/* --- help --- */

/* Wrapped at blanks; a newline begins a new line */
static void text_put(const char *text, int indent)
{
	int at = 0;

	while (*text) {
		int n = (int)strcspn(text, " \n");

		if (at && at + 1 + n > COLUMNS) {
			putchar('\n');
			at = 0;
		}
		at += printf("%*s%.*s", at ? 1 : indent, "", n, text);
		text += n;
		if (*text == '\n') {
			putchar('\n');
			at = 0;
		}
		text += *text != '\0';
	}
	if (at)
		putchar('\n');
}

static void option_put(const struct command_option *o)
{
	if (o->letter < 'A' || o->letter > 'Z')
		printf("  -%c, --%s", o->letter, o->name);
	else
		printf("  --%s", o->name);
	printf("%s%s\n", o->arg ? " " : "", o->arg ? o->arg : "");
	text_put(o->text, 6);
}

static void usage_put(const struct command *c)
{
	const char *line = c->args, *begin = "usage: ";

	do {
		size_t n = strcspn(line, "\n");

		printf("%s%s %s%s%s%.*s\n", begin, command_program.name, c->name,
		       c->options[0].name ? " [OPTION..]" : "", n ? " " : "", (int)n, line);
		begin = "       ";
		line += n + (line[n] == '\n');
	} while (*line);
}

static void commands_put(void)
{
	const struct command *c;

	printf("usage: %s COMMAND [OPTION..] [ARGUMENT..]\n"
	       "       %s --version\n\n%s\n\n",
	       command_program.name, command_program.name, command_program.about);
	for (unsigned int i = 0; (c = command_at(i)); i++)
		printf("  %-11s %s\n", c->name, c->summary);
	printf("\n%s help COMMAND tells more. %s\n", command_program.name, command_program.begin);
}

void command_help(const struct command *c)
{
	if (!c) {
		commands_put();
		return;
	}
	usage_put(c);
	putchar('\n');
	text_put(c->summary, 0);
	text_put(c->text, 0);
	if (c->options[0].name)
		putchar('\n');
	for (const struct command_option *o = c->options; o->name; o++)
		option_put(o);
	if (c->examples[0])
		printf("\nexamples:\n%s", c->examples);
}
