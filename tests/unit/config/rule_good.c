/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts that are rules, and what the table then says, written as rules again. What is written
 * back must be the same rules when it is read once more.
 */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "rules_text.h"

#define X15 "xxxxxxxxxxxxxxx"
#define X60 X15 X15 X15 X15
#define X255 X60 X60 X60 X60 X15

static const struct {
	const char *text;
	const char *want;
} rows[] = {
	{ "use ddp client * *:*", "use ddp client * *:*" },
	{ "use ddp server * *:*", "use ddp server * *:*" },
	{ "use ddp * * *:*", "use ddp * * *:*" },
	{ "use auto client * *:*", "use auto client * *:*" },
	{ "use auto server * *:*", "use auto server * *:*" },
	{ "use auto * * *:*", "use auto * * *:*" },
	{ "use tcp client * *:*", "use tcp client * *:*" },
	{ "use tcp server * *:*", "use tcp server * *:*" },
	{ "use tcp * * *:*", "use tcp * * *:*" },
	{ "use ddp * redis *:80", "use ddp * redis *:80" },
	{ "use ddp * redis* *:80", "use ddp * redis* *:80" },
	{ "use ddp * redis-? *:80", "use ddp * redis-? *:80" },
	{ "use ddp * * *:80", "use ddp * * *:80" },
	{ "use ddp * ** *:80", "use ddp * ** *:80" },
	{ "use ddp * ? *:80", "use ddp * ? *:80" },
	{ "use ddp * [a-c]x *:80", "use ddp * [a-c]x *:80" },
	{ "use ddp * [!a-c]x *:80", "use ddp * [!a-c]x *:80" },
	{ "use ddp * [^a-c] *:80", "use ddp * [^a-c] *:80" },
	{ "use ddp * []x] *:80", "use ddp * []x] *:80" },
	{ "use ddp * [!]x] *:80", "use ddp * [!]x] *:80" },
	{ "use ddp * [a-] *:80", "use ddp * [a-] *:80" },
	{ "use ddp * [-a] *:80", "use ddp * [-a] *:80" },
	{ "use ddp * a\\ b *:80", "use ddp * a\\ b *:80" },
	{ "use ddp * a\\;b *:80", "use ddp * a\\;b *:80" },
	{ "use ddp * \\#x *:80", "use ddp * \\#x *:80" },
	{ "use ddp * a#b *:80", "use ddp * a#b *:80" },
	{ "use ddp * \\* *:80", "use ddp * \\* *:80" },
	{ "use ddp * \\[ *:80", "use ddp * \\[ *:80" },
	{ "use ddp * \\\\ *:80", "use ddp * \\\\ *:80" },
	{ "use ddp * [\\]] *:80", "use ddp * [\\]] *:80" },
	{ "use ddp * [a\\-z] *:80", "use ddp * [a\\-z] *:80" },
	{ "use ddp * \"x\" *:80", "use ddp * \"x\" *:80" },
	{ "use ddp * use *:80", "use ddp * use *:80" },
	{ "use ddp * client *:80", "use ddp * client *:80" },
	{ "use ddp * a:b *:80", "use ddp * a:b *:80" },
	{ "use ddp * a=b *:80", "use ddp * a=b *:80" },
	{ "use ddp * caf\351 *:80", "use ddp * caf\351 *:80" },
	{ "use ddp * [x*?] *:80", "use ddp * [x*?] *:80" },
	{ "use ddp * [[] *:80", "use ddp * [[] *:80" },
	{ "use ddp * [a[] *:80", "use ddp * [a[] *:80" },
	{ "use ddp * " X255 " *:80", "use ddp * " X255 " *:80" },
	{ "use ddp client x *:80", "use ddp client x *:80" },
	{ "use auto * x *:80 ask never", "use auto * x *:80 ask never" },
	{ "use auto * x *:80 ask  always;", "use auto * x *:80 ask always" },
	{ "use ddp * ask *:80 provider soft ask always", "use ddp * ask *:80 provider soft ask "
							 "always" },
	{ "use ddp * x *:80 provider verbs", "use ddp * x *:80 provider verbs" },
	{ "use auto * x *:80 provider  soft # y", "use auto * x *:80 provider soft" },
	{ "use ddp server provider 10.0.0.1:80 provider auto; ", "use ddp server provider "
								 "10.0.0.1:80 provider auto" },
	{ "use ddp client x 0.0.0.0:80", "use ddp client x 0.0.0.0:80" },
	{ "use ddp client x 0.0.0.0/0:80", "use ddp client x 0.0.0.0/0:80" },
	{ "use ddp client x 127.0.0.1:80", "use ddp client x 127.0.0.1:80" },
	{ "use ddp client x 127.0.0.1/32:80", "use ddp client x 127.0.0.1:80" },
	{ "use ddp client x 127.0.0.1/8:80", "use ddp client x 127.0.0.0/8:80" },
	{ "use ddp client x 10.1.2.3/16:80", "use ddp client x 10.1.0.0/16:80" },
	{ "use ddp client x 10.255.255.255/9:80", "use ddp client x 10.128.0.0/9:80" },
	{ "use ddp client x 255.255.255.255/1:80", "use ddp client x 128.0.0.0/1:80" },
	{ "use ddp client x 192.168.1.77/31:80", "use ddp client x 192.168.1.76/31:80" },
	{ "use ddp client x 192.168.1.77/25:80", "use ddp client x 192.168.1.0/25:80" },
	{ "use ddp client x [::]:80", "use ddp client x [::]:80" },
	{ "use ddp client x [::]/0:80", "use ddp client x [::]/0:80" },
	{ "use ddp client x [::/0]:80", "use ddp client x [::]/0:80" },
	{ "use ddp client x [::1]:80", "use ddp client x [::1]:80" },
	{ "use ddp client x [::1]/128:80", "use ddp client x [::1]:80" },
	{ "use ddp client x [::1/128]:80", "use ddp client x [::1]:80" },
	{ "use ddp client x [fd00::]/8:80", "use ddp client x [fd00::]/8:80" },
	{ "use ddp client x [fd00::/8]:80", "use ddp client x [fd00::]/8:80" },
	{ "use ddp client x [FD00:0:0::0]/8:80", "use ddp client x [fd00::]/8:80" },
	{ "use ddp client x [fe80::1]/10:80", "use ddp client x [fe80::]/10:80" },
	{ "use ddp client x [2001:db8:ffff::]/33:80", "use ddp client x [2001:db8:8000::]/33:80" },
	{ "use ddp client x [2001:db8:ffff::]/47:80", "use ddp client x [2001:db8:fffe::]/47:80" },
	{ "use ddp client x [2001:db8::1:2:3]/127:80", "use ddp client x "
						       "[2001:db8::1:2:2]/127:80" },
	{ "use ddp client x [::ffff:10.0.0.1]:80", "use ddp client x 10.0.0.1:80" },
	{ "use ddp client x [::ffff:10.9.0.0]/104:80", "use ddp client x 10.0.0.0/8:80" },
	{ "use ddp client x [::ffff:0:0]/96:80", "use ddp client x 0.0.0.0/0:80" },
	{ "use ddp client x [::ffff:a00:1/120]:80", "use ddp client x 10.0.0.0/24:80" },
	{ "use ddp client x [::10.0.0.1]:80", "use ddp client x [::10.0.0.1]:80" },
	{ "use ddp client x [64:ff9b::10.0.0.1]/96:80", "use ddp client x [64:ff9b::]/96:80" },
	{ "use ddp client x [1:2:3:4:5:6:7:8]:80", "use ddp client x [1:2:3:4:5:6:7:8]:80" },
	{ "use tcp server x *:*", "use tcp server x *:*" },
	{ "use tcp server x *:1", "use tcp server x *:1" },
	{ "use tcp server x *:80", "use tcp server x *:80" },
	{ "use tcp server x *:080", "use tcp server x *:80" },
	{ "use tcp server x *:65535", "use tcp server x *:65535" },
	{ "use tcp server x *:1-65535", "use tcp server x *:1-65535" },
	{ "use tcp server x *:80-80", "use tcp server x *:80" },
	{ "use tcp server x *:80-81", "use tcp server x *:80-81" },
	{ "use tcp server x *:6379-6389", "use tcp server x *:6379-6389" },
	{ "use tcp server x *:0000000443", "use tcp server x *:443" },
	{ "", "" },
	{ "\n", "" },
	{ "\n\n\n", "" },
	{ ";", "" },
	{ ";;;\n;", "" },
	{ " \t\r\n ", "" },
	{ "# only a comment", "" },
	{ "#", "" },
	{ "#use bad", "" },
	{ "# a ; use x\nuse tcp * a *:1", "use tcp * a *:1" },
	{ "  use\tddp  *\t* *:*  ", "use ddp * * *:*" },
	{ "use ddp * * *:* # why", "use ddp * * *:*" },
	{ "use ddp * * *:*\t#why;x", "use ddp * * *:*" },
	{ "use ddp * * *:*;use tcp * a *:1", "use ddp * * *:*\nuse tcp * a *:1" },
	{ "use ddp * * *:* ; use tcp * a *:1;", "use ddp * * *:*\nuse tcp * a *:1" },
	{ "use ddp * * *:*\n\nuse tcp * a *:1\n", "use ddp * * *:*\nuse tcp * a *:1" },
	{ "use ddp * * *:*\r\nuse tcp * a *:1\r\n", "use ddp * * *:*\nuse tcp * a *:1" },
	{ "\n#c\nuse ddp * * *:*", "use ddp * * *:*" },
	{ "use ddp * * *:*\n   # x\n", "use ddp * * *:*" },
	{ "use ddp * a *:1; # c ; d\nuse ddp * b *:2", "use ddp * a *:1\nuse ddp * b *:2" },
	{ "use tcp * x *:1", "use tcp * x *:1" },
	{ "use ddp * a *:1\n;\nuse ddp * b *:2", "use ddp * a *:1\nuse ddp * b *:2" },
};

static struct config_rules rules, again;

Test(rule_good, rows)
{
	struct config_error err = { "" };
	char got[1024], second[1024];

	for (size_t i = 0; i < base_array_size(rows); i++) {
		config_rules_init(&rules);
		cr_expect_eq(text_add(&rules, CONFIG_FROM_FILE, "f", rows[i].text, &err), 0,
			     "%s: %s", rows[i].text, err.text);
		rules_write(&rules, got, sizeof(got));
		cr_expect_str_eq(got, rows[i].want, "%s: %s", rows[i].text, got);
		config_rules_init(&again);
		cr_expect_eq(text_add(&again, CONFIG_FROM_FILE, "f", got, &err), 0, "%s", err.text);
		cr_expect_str_eq(rules_write(&again, second, sizeof(second)), got);
	}
}

/* In a file the keyword is needed, elsewhere it may be left out. */
Test(rule_good, keyword_is_for_files)
{
	static const enum config_source free[] = { CONFIG_FROM_COMMAND, CONFIG_FROM_ENVIRONMENT };
	struct config_error err;
	char got[256];

	for (size_t i = 0; i < base_array_size(free); i++) {
		config_rules_init(&rules);
		cr_assert_eq(text_add(&rules, free[i], "x", "ddp * a *:1; use tcp * b *:2", &err),
			     0);
		cr_assert_str_eq(rules_write(&rules, got, sizeof(got)), "use ddp * a *:1\nuse tcp "
									"* b *:2");
	}
}

Test(rule_good, each_rule_knows_where_it_stands)
{
	struct config_text text = { .source = CONFIG_FROM_COMMAND, .name = "--use", .line = 7 };
	const struct config_rule *r;
	struct config_error err;

	config_rules_init(&rules);
	text.octets = "tcp * a *:1";
	text.len = strlen(text.octets);
	cr_assert_eq(config_rules_add(&rules, &text, &err), 0);
	cr_assert_eq(text_add(&rules, CONFIG_FROM_FILE, "f", "\n# x\nuse ddp * b *:2;\n\n", &err),
		     0);
	cr_assert_eq(rules.count, 2);
	r = config_rule_next(&rules, NULL);
	cr_expect_eq(r->source, CONFIG_FROM_COMMAND);
	cr_expect_eq(r->line, 7);
	r = config_rule_next(&rules, r);
	cr_expect_eq(r->source, CONFIG_FROM_FILE);
	cr_expect_eq(r->line, 3);
	cr_expect_null(config_rule_next(&rules, r));
}

Test(rule_good, empty_table)
{
	config_rules_init(&rules);
	cr_assert_null(config_rule_next(&rules, NULL));
}
