/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `warpsock help --json`: the table of commands, of which config/docs.py makes manual pages.
 */
#include <stdio.h>

#include "apps/warpsock/command.h"

/* The table is ASCII: a newline, a quote and a backslash need an escape */
static void string_put(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", stdout);
		else
			printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
	putchar('"');
}

static void member_put(const char *name, const char *text)
{
	printf("\"%s\": ", name);
	string_put(text ? text : "");
}

static void option_put(const struct command_option *o)
{
	bool is_short = o->letter < 'A' || o->letter > 'Z';
	char letter[2] = { is_short ? (char)o->letter : '\0', '\0' };

	putchar('{');
	member_put("name", o->name);
	fputs(", ", stdout);
	member_put("letter", letter);
	fputs(", ", stdout);
	member_put("arg", o->arg);
	fputs(", ", stdout);
	member_put("text", o->text);
	putchar('}');
}

static void command_put(const struct command *c)
{
	putchar('{');
	member_put("name", c->name);
	fputs(", ", stdout);
	member_put("args", c->args);
	fputs(", ", stdout);
	member_put("summary", c->summary);
	fputs(", ", stdout);
	member_put("text", c->text);
	fputs(", ", stdout);
	member_put("examples", c->examples);
	fputs(", \"options\": [", stdout);
	for (const struct command_option *o = c->options; o->name; o++) {
		fputs(o == c->options ? "" : ",\n ", stdout);
		option_put(o);
	}
	fputs("]}", stdout);
}

void command_json(void)
{
	const struct command *c;

	putchar('[');
	for (unsigned int i = 0; (c = command_at(i)); i++) {
		fputs(i ? ",\n" : "", stdout);
		command_put(c);
	}
	puts("]");
}
