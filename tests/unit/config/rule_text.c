/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table as text: what was encoded comes back octet by octet, and what was not encoded here is
 * refused without a read outside of the table.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/bits.h"
#include "rules_text.h"

static struct config_rules rules, back;
static char text[CONFIG_RULES_TEXT_MAX];

static void rules_set(const char *source)
{
	struct config_error err = { "" };

	config_rules_init(&rules);
	cr_assert_eq(text_add(&rules, CONFIG_FROM_FILE, "f", source, &err), 0, "%s", err.text);
}

static void expect_empty(const struct config_rules *table)
{
	cr_expect_eq(table->magic, CONFIG_RULES_MAGIC);
	cr_expect_eq(table->count, 0);
	cr_expect_null(config_rule_next(table, NULL));
}

Test(rule_text, comes_back)
{
	static const char *const sources[] = {
		"",
		"use ddp * * *:*",
		"use ddp * a *:1",
		"use ddp * ab *:1",
		"use ddp * abc *:1",
		"use ddp * abcd *:1",
		"use tcp client a\\ b 10.0.0.0/8:1-2\nuse auto server * [fd00::]/8:443",
	};

	for (size_t i = 0; i < base_array_size(sources); i++) {
		rules_set(sources[i]);
		cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
		memset(&back, 0xFF, sizeof(back));
		cr_assert_eq(config_rules_decode(&back, text), 0, "%s", sources[i]);
		cr_expect_eq(back.count, rules.count);
		cr_expect_eq(back.size, rules.size);
		cr_expect_eq(memcmp(back.octets, rules.octets, rules.size), 0);
		for (const char *p = text; *p; p++)
			cr_expect(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "0123456789-_",
					 *p));
	}
}

Test(rule_text, full_table_comes_back)
{
	struct config_error err;

	config_rules_init(&rules);
	while (!text_add(&rules, CONFIG_FROM_FILE, "f", "use ddp * x *:80\n", &err))
		;
	cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
	cr_assert_eq(config_rules_decode(&back, text), 0);
	cr_assert_eq(memcmp(&back, &rules, offsetof(struct config_rules, octets) + rules.size), 0);
	/* one variable may have 128 KiB (MAX_ARG_STRLEN) */
	cr_assert_lt(strlen(text), 128 * 1024 - 64);
}

Test(rule_text, room_is_kept)
{
	size_t need;

	rules_set("use ddp * abcde *:1");
	cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
	need = (strlen(text) + 3) / 4 * 4 + 1;
	for (size_t size = 0; size < need; size++) {
		char *exact = malloc(size + !size);

		cr_expect_eq(config_rules_encode(&rules, exact, size), -ENOSPC);
		free(exact);
	}
	cr_expect_eq(config_rules_encode(&rules, text, need), 0);
}

/* Every octet of the text changed, in turn, to each of a few others, and every length. */
Test(rule_text, damaged_text_is_refused_or_sound)
{
	static const char others[] = "A_-w9=+/ \n\x80";
	unsigned int refused = 0;
	size_t len;

	rules_set("use tcp client abc 10.0.0.0/8:1-2\nuse auto server * [fd00::]/8:443");
	cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
	len = strlen(text);
	for (size_t i = 0; i < len; i++) {
		for (size_t j = 0; j < sizeof(others); j++) {
			char *copy = strdup(text), out[1024];

			copy[i] = others[j];
			if (config_rules_decode(&back, copy)) {
				refused++;
				expect_empty(&back);
			}
			rules_write(&back, out, sizeof(out));
			free(copy);
		}
	}
	cr_expect_gt(refused, len);
}

static uint8_t *first_rule(void)
{
	return rules.octets;
}

/* The table itself made wrong, then encoded well */
static const struct {
	const char *what;
	size_t at; /* in the first rule */
	uint8_t value;
} damage[] = {
	{ "a transport that is none", offsetof(struct config_rule, transport), 3 },
	{ "no role", offsetof(struct config_rule, roles), 0 },
	{ "a role that is none", offsetof(struct config_rule, roles), 4 },
	{ "a family that is none", offsetof(struct config_rule, family), 3 },
	{ "a prefix beyond the address", offsetof(struct config_rule, prefix), 33 },
	{ "a provider that is none", offsetof(struct config_rule, by), 4 },
	{ "a way to ask that is none", offsetof(struct config_rule, ask), 3 },
	{ "a source that is none", offsetof(struct config_rule, source), 3 },
	{ "a size of 0", offsetof(struct config_rule, size), 0 },
	{ "a size without a program", offsetof(struct config_rule, size), 36 },
	{ "a size that is odd", offsetof(struct config_rule, size), 37 },
	{ "a size beyond the table", offsetof(struct config_rule, size), 252 },
	{ "a program without an end", offsetof(struct config_rule, program) + 3, 'x' },
};

Test(rule_text, damaged_table_is_refused)
{
	for (size_t i = 0; i < base_array_size(damage); i++) {
		rules_set("use tcp client abc 10.0.0.0/8:1-2");
		first_rule()[damage[i].at] = damage[i].value;
		cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
		cr_expect_eq(config_rules_decode(&back, text), -EINVAL, "%s", damage[i].what);
		expect_empty(&back);
	}
}

Test(rule_text, damaged_header_is_refused)
{
	uint32_t *fields[] = { &rules.magic, &rules.count };

	for (size_t i = 0; i < base_array_size(fields); i++) {
		rules_set("use tcp client abc 10.0.0.0/8:1-2");
		++*fields[i];
		cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
		cr_expect_eq(config_rules_decode(&back, text), -EINVAL);
		expect_empty(&back);
	}
	/* the size of the table and of the text do not agree */
	rules_set("use tcp client abc 10.0.0.0/8:1-2");
	cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
	text[strlen(text) - 4] = 0;
	cr_expect_eq(config_rules_decode(&back, text), -EINVAL);
	cr_expect_eq(config_rules_decode(&back, ""), -EINVAL);
	expect_empty(&back);
}

/* A text longer than any table */
Test(rule_text, endless_text_is_refused)
{
	size_t len = 2 * CONFIG_RULES_TEXT_MAX;
	char *big = malloc(len + 1);

	memset(big, 'A', len);
	big[len] = 0;
	cr_expect_eq(config_rules_decode(&back, big), -EINVAL);
	expect_empty(&back);
	free(big);
}

/* A pattern that is longer than rules may have would overrun who formats it. */
Test(rule_text, long_pattern_is_refused)
{
	struct config_rule *r = (void *)rules.octets;

	config_rules_init(&rules);
	memset(&rules.octets, 0, 512);
	r->size = 32 + 260;
	r->transport = CONFIG_USE_DDP;
	r->roles = CONFIG_CLIENT;
	memset(r->program, 'x', 256);
	rules.count = 1;
	rules.size = r->size;
	cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
	cr_expect_eq(config_rules_decode(&back, text), -EINVAL);
	r->program[255] = 0;
	cr_assert_eq(config_rules_encode(&rules, text, sizeof(text)), 0);
	cr_expect_eq(config_rules_decode(&back, text), 0);
}

Test(rule_text, format_keeps_to_its_room)
{
	char out[8];

	rules_set("use tcp client abc 10.0.0.0/8:1-2");
	cr_assert_str_eq(config_rule_format(config_rule_next(&rules, NULL), out, sizeof(out)), "use"
											       " tc"
											       "p");
}
