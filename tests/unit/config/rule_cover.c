/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which rules can never decide.
 */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/rule.h"

/* The number of the rule that goes before the last one; 0: it may decide */
static unsigned int shadow(const char *text)
{
	static struct config_rules rules;
	struct config_text source = { .source = CONFIG_FROM_ENVIRONMENT,
				      .name = "here",
				      .line = 1,
				      .octets = text,
				      .len = strlen(text) };
	const struct config_rule *r = NULL, *last = NULL, *found;
	struct config_error err;

	config_rules_init(&rules);
	cr_assert_eq(config_rules_add(&rules, &source, &err), 0, "%s", err.text);
	while ((r = config_rule_next(&rules, r)))
		last = r;
	found = config_rule_shadow(&rules, last);
	return found ? found->line : 0;
}

Test(rule_cover, rules)
{
	static const struct {
		const char *text;
		unsigned int line;
	} rows[] = {
		{ "ddp * * *:*", 0 },
		{ "ddp * * *:*\ntcp * * *:*", 1 },
		{ "ddp * * *:*\ntcp client ssh 10.0.0.0/8:22", 1 },
		{ "tcp client ssh *:22\nddp * * *:*", 0 },
		{ "ddp client * *:*\ntcp * * *:*", 0 },
		{ "ddp client * *:*\nddp server * *:*\ntcp * * *:*", 2 },
		{ "ddp * ssh *:*\ntcp * ssh *:*", 1 },
		{ "ddp * ssh *:*\ntcp * sshd *:*", 0 },
		{ "ddp * s* *:*\ntcp * ssh *:*", 0 }, /* true, and not found */
		{ "ddp * * 10.0.0.0/8:*\ntcp * * 10.1.0.0/16:*", 1 },
		{ "ddp * * 10.1.0.0/16:*\ntcp * * 10.0.0.0/8:*", 0 },
		{ "ddp * * 10.0.0.0/8:*\ntcp * * 11.1.0.0/16:*", 0 },
		{ "ddp * * 10.0.0.0/8:*\ntcp * * *:*", 0 },
		{ "ddp * * 10.0.0.128/25:*\ntcp * * 10.0.0.129:*", 1 },
		{ "ddp * * 10.0.0.128/25:*\ntcp * * 10.0.0.127:*", 0 },
		{ "ddp * * 0.0.0.0/0:*\ntcp * * [::1]:*", 0 },
		{ "ddp * * [fd00::]/8:*\ntcp * * [fd01::]/16:*", 1 },
		{ "ddp * * *:80-90\ntcp * * *:85", 1 },
		{ "ddp * * *:80-90\ntcp * * *:85-91", 0 },
		{ "ddp * * *:1\nddp * * *:2\ntcp * * *:2", 2 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(shadow(rows[i].text), rows[i].line, "%s: %u", rows[i].text,
			     shadow(rows[i].text));
}
