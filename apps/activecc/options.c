/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of warp-activecc: one table, of which the command line, the help and the shells'
 * completion are made.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "active/helper_list.h"
#include "apps/activecc/activecc.h"

enum { LONG_ONLY = 256, OPTIONS_MAX = 16 };

const struct activecc_option activecc_table[] = {
	{ "output", 'o', "FILE", "the object to write (the source's name, with .o)" },
	{ "list", 'l', NULL, "print the instructions with their source lines" },
	{ "kernel", 'k', NULL, "tell which functions can run in the kernel of a server" },
	{ "helper", 0, "NAME:ID:ARGS", "a function of the server that warp/program.h lacks" },
	{ "clang", 0, "PROGRAM", "the compiler (clang)" },
	{ NULL, 'O', "LEVEL", "optimisation, as clang takes it (2)" },
	{ NULL, 'D', "NAME[=VALUE]", "define a macro" },
	{ NULL, 'U', "NAME", "undefine one" },
	{ NULL, 'I', "FOLDER", "look for headers there, too" },
	{ NULL, 'X', "WORD", "give this word to clang" },
	{ "completion", 0, "SHELL", "print a completion script for bash, zsh or fish" },
	{ "help", 'h', NULL, "this text" },
	{ "version", 0, NULL, "say which version this is" },
	{ 0 },
};

static const char usage[] = "usage: warp-activecc [OPTION..] FILE.c | FILE.s | FILE.o\n";

void activecc_complain(const char *format, ...)
{
	va_list args;

	fputs("warp-activecc: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static void help_print(void)
{
	fputs(usage, stdout);
	for (const struct activecc_option *o = activecc_table; o->text; o++) {
		char words[64];
		int n = 0;

		if (o->letter)
			n = snprintf(words, sizeof(words), "-%c%s", o->letter,
				     o->name ? ", " : o->arg);
		if (o->name)
			snprintf(words + n, sizeof(words) - (size_t)n, "--%s%s%s", o->name,
				 o->arg ? " " : "", o->arg ? o->arg : "");
		printf("  %-25s %s\n", words, o->text);
	}
	fputs("The object of a source is written if the verifier takes it; FILE.o is only "
	      "checked.\n"
	      "exit status: 0 done, 1 refused, 2 usage, 3 failed\n",
	      stdout);
}

static int wrong(const char *what, const char *value)
{
	activecc_complain("%s%s", what, value);
	fputs(usage, stderr);
	return ACTIVECC_USAGE;
}

static int helper_add(struct activecc_options *opt, const char *name, size_t len, uint32_t id,
		      uint32_t args)
{
	struct ebpf_helper *h = &opt->helpers[opt->helper_count];

	if (opt->helper_count == ACTIVECC_HELPERS_MAX)
		return wrong("too many helpers: ", name);
	*h = (struct ebpf_helper){ strndup(name, len), id, args, NULL };
	if (!h->name)
		return wrong("out of memory: ", name);
	for (size_t i = 0; i < opt->helper_count; i++)
		if (opt->helpers[i].id == id || !strcmp(opt->helpers[i].name, h->name)) {
			free((char *)h->name);
			return wrong("two helpers of one name or number: ", name);
		}
	opt->helper_count++;
	return -1;
}

/* Those that servers have */
static int helpers_add(struct activecc_options *opt)
{
#define ROW(name, number, args, call) { name, number, args, NULL },
	static const struct ebpf_helper list[] = { ACTIVE_HELPER_LIST(ROW) };
	int ret = -1;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]) && ret < 0; i++)
		ret = helper_add(opt, list[i].name, strlen(list[i].name), list[i].id, list[i].args);
	return ret;
}

/* NAME:ID:ARGS */
static int helper_read(struct activecc_options *opt, const char *text)
{
	const char *colon = strchr(text, ':');
	unsigned int id, args;
	int end = 0;

	if (!colon || colon == text || sscanf(colon, ":%u:%u%n", &id, &args, &end) != 2 ||
	    colon[end] || args > 5)
		return wrong("a helper is NAME:ID:ARGS, with 0 to 5 arguments, not ", text);
	return helper_add(opt, text, (size_t)(colon - text), id, args);
}

static int pass(struct activecc_options *opt, int letter, const char *value)
{
	static const char *const words[] = { ['D'] = "-D", ['U'] = "-U", ['I'] = "-I" };

	if (opt->passed_count + 2 > ACTIVECC_ARGS_MAX)
		return wrong("too many words for clang: ", value);
	if (letter != 'X')
		opt->passed[opt->passed_count++] = words[letter];
	opt->passed[opt->passed_count++] = value;
	return -1;
}

static int one_read(struct activecc_options *opt, const struct activecc_option *o)
{
	const char *name = o->name ? o->name : "";

	if (o->letter == 'o') {
		free(opt->output);
		opt->output = strdup(optarg);
		return opt->output ? -1 : wrong("out of memory", "");
	}
	if (o->letter == 'l')
		opt->list = true;
	else if (o->letter == 'k')
		opt->kernel = true;
	else if (o->letter == 'O')
		opt->level = optarg;
	else if (o->letter && strchr("DUIX", o->letter))
		return pass(opt, o->letter, optarg);
	else if (!strcmp(name, "clang"))
		opt->clang = optarg;
	else if (!strcmp(name, "helper"))
		return helper_read(opt, optarg);
	else if (!strcmp(name, "completion"))
		return activecc_completion_print(optarg)
			       ? ACTIVECC_OK
			       : wrong("expected bash, zsh or fish, got ", optarg);
	else if (!strcmp(name, "version"))
		return puts("warp-activecc " WARPSOCK_VERSION) < 0;
	else
		return help_print(), ACTIVECC_OK;
	return -1;
}

/* The table as getopt_long(3) wants it */
static void table_convert(struct option *longs, char *letters)
{
	int i = 0;

	*letters++ = ':';
	for (const struct activecc_option *o = activecc_table; o->text; o++) {
		int value = o->letter ? o->letter : LONG_ONLY + (int)(o - activecc_table);

		if (o->name)
			longs[i++] = (struct option){ o->name, !!o->arg, NULL, value };
		if (!o->letter)
			continue;
		*letters++ = o->letter;
		if (o->arg)
			*letters++ = ':';
	}
	longs[i] = (struct option){ 0 };
	*letters = 0;
}

static const struct activecc_option *table_find(int value)
{
	if (value >= LONG_ONLY)
		return &activecc_table[value - LONG_ONLY];
	for (const struct activecc_option *o = activecc_table; o->text; o++)
		if (o->letter == value)
			return o;
	return NULL;
}

/* What kind of file it is, and what the object will be called */
static int input_read(struct activecc_options *opt, const char *name)
{
	const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');

	opt->input = name;
	if (!dot || (slash && dot < slash))
		return wrong("neither .c nor .s nor .o: ", name);
	if (!strcmp(dot, ".c"))
		opt->kind = ACTIVECC_C;
	else if (!strcmp(dot, ".s") || !strcmp(dot, ".S"))
		opt->kind = ACTIVECC_ASSEMBLER;
	else if (!strcmp(dot, ".o"))
		opt->kind = ACTIVECC_OBJECT;
	else
		return wrong("neither .c nor .s nor .o: ", name);
	if (opt->kind == ACTIVECC_OBJECT)
		return opt->output ? wrong("an object is only checked: ", name) : -1;
	if (opt->output && !strcmp(opt->output, name))
		return wrong("the object would replace its source: ", name);
	if (!opt->output &&
	    asprintf(&opt->output, "%.*s.o", (int)(dot - (slash ? slash + 1 : name)),
		     slash ? slash + 1 : name) < 0)
		opt->output = NULL;
	return opt->output ? -1 : wrong("out of memory", "");
}

int activecc_options_read(struct activecc_options *opt, int argc, char **argv)
{
	struct option longs[OPTIONS_MAX];
	char letters[3 * OPTIONS_MAX];
	int ret, value;

	*opt = (struct activecc_options){ .clang = "clang", .level = "2" };
	ret = helpers_add(opt);
	table_convert(longs, letters);
	opterr = 0;
	while (ret < 0 && (value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (value == ':')
			ret = wrong("a value is needed: ", argv[optind - 1]);
		else if (value == '?')
			ret = wrong("no such option: ", argv[optind - 1]);
		else
			ret = one_read(opt, table_find(value));
	}
	if (ret >= 0)
		return ret;
	if (optind + 1 != argc)
		return wrong(optind == argc ? "a file is needed" : "one file at a time, not ",
			     optind == argc ? "" : argv[optind + 1]);
	return input_read(opt, argv[optind]);
}

void activecc_options_free(struct activecc_options *opt)
{
	for (size_t i = 0; i < opt->helper_count; i++)
		free((char *)opt->helpers[i].name);
	free(opt->output);
}
