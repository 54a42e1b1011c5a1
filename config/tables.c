/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables as JSON, for config/docs.py, which makes pages of them. It is a tool of the build
 * and not installed. `tables check FILE` reads a file with rules instead, as every program
 * under Warpsock would.
 */
#include <stdio.h>
#include <string.h>

#include "config/option.h"
#include "config/reason.h"
#include "config/rule.h"

static const char *const groups[] = {
	[CONFIG_REASON_CHOICE] = "choice",
	[CONFIG_REASON_PEER] = "peer",
	[CONFIG_REASON_HOST] = "host",
	[CONFIG_REASON_END] = "end",
};

/* The tables are printable ASCII (a test looks), so only two bytes need an escape. */
static void string_put(const char *name, const char *text)
{
	printf("\"%s\": \"", name);
	for (; *text; text++)
		printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	putchar('"');
}

static void member_put(const char *name, const char *text)
{
	string_put(name, text);
	fputs(", ", stdout);
}

static void option_put(enum config_option_id id)
{
	const struct config_option *o = config_option_get(id);
	char range[256];

	printf("%s\n{", id ? "," : "");
	member_put("name", o->name);
	member_put("range", config_option_range(id, range, sizeof(range)));
	member_put("default", o->fallback);
	member_put("unit", o->unit ? o->unit : "");
	member_put("text", o->text);
	printf("\"planned\": %s, \"internal\": %s}", o->planned ? "true" : "false",
	       o->internal ? "true" : "false");
}

static void profile_put(const struct config_profile *p, unsigned int i)
{
	printf("%s\n{", i ? "," : "");
	member_put("name", p->name);
	member_put("text", p->text);
	fputs("\"values\": {", stdout);
	for (const struct config_profile_value *v = p->values; v->value; v++) {
		fputs(v == p->values ? "" : ", ", stdout);
		string_put(config_option_get(v->id)->name, v->value);
	}
	fputs("}}", stdout);
}

static void reason_put(const struct config_reason_row *r, unsigned int i)
{
	printf("%s\n{", i ? "," : "");
	member_put("name", r->name);
	member_put("group", groups[r->group]);
	member_put("text", r->text);
	member_put("advice", r->advice);
	printf("\"number\": %u}", r->number);
}

static void tables_put(void)
{
	fputs("{\"options\": [", stdout);
	for (enum config_option_id id = 0; id < CONFIG_OPTIONS; id++)
		option_put(id);
	fputs("],\n\"profiles\": [", stdout);
	for (unsigned int i = 0; config_profile_at(i); i++)
		profile_put(config_profile_at(i), i);
	fputs("],\n\"reasons\": [", stdout);
	for (unsigned int i = 0; config_reason_at(i); i++)
		reason_put(config_reason_at(i), i);
	puts("]}");
}

static int file_check(const char *path)
{
	struct config_sources sources = { .file = path };
	const struct config_rule *r = NULL;
	char text[CONFIG_RULE_TEXT_MAX];
	static struct config_rules rules;
	struct config_error err;

	if (config_rules_load(&rules, &sources, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	while ((r = config_rule_next(&rules, r)))
		puts(config_rule_format(r, text, sizeof(text)));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "check"))
		return file_check(argv[2]);
	if (argc != 1) {
		fprintf(stderr, "usage: %s [check FILE]\n", argv[0]);
		return 2;
	}
	tables_put();
	return 0;
}
