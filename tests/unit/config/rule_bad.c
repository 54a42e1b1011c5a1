/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts that are no rules, each with the place and the sentence that a user reads. What was good
 * before the fault leaves no trace in the table.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "rules_text.h"

#define X15 "xxxxxxxxxxxxxxx"
#define X60 X15 X15 X15 X15
#define X100 X60 X15 X15 "xxxxxxxxxx"
#define X256 X60 X60 X60 X60 X15 "x"
#define CUT "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
#define RULES_10 \
	"use ddp * x *:1\nuse ddp * x *:1\nuse ddp * x *:1\nuse ddp * x *:1\n;;\n;\n\n\n\n\n"
#define RULES_40 RULES_10 RULES_10 RULES_10 RULES_10

/* what was expected */
#define USE "use"
#define TRANSPORT "ddp, auto or tcp"
#define ROLE "client, server or *"
#define PROGRAM "a program or a pattern"
#define SET_END "a ] to end the ["
#define RANGE_UP "a range that goes up"
#define NO_CLASS "single bytes and ranges between [ and ]"
#define BASE_NAME "a base name without /"
#define NO_CONTROL "a program without control characters"
#define SHORTER "a pattern of at most 255 bytes"
#define ESCAPED "a byte after the \\"
#define ENDPOINT "an address, a colon and a port or *"
#define ADDRESS "an IPv4 address, an IPv6 address in [ ], or *"
#define BRACKETS "an IPv6 address in brackets, as in [::1]:80"
#define LEN_4 "a length from 0 to 32"
#define LEN_6 "a length from 0 to 128"
#define LEN_MAPPED "a length from 96 to 128 for a mapped IPv4 address"
#define BRACKET_END "a ] behind the IPv6 address"
#define COLON "a colon and a port or * behind the ]"
#define COLON_OR_LEN "a colon or a length behind the ]"
#define IPV6 "an IPv6 address in the brackets"
#define PORT "a port or *"
#define PORT_LIMITS "a port from 1 to 65535"
#define LOWER_FIRST "the lower port first"
/* what was there */
#define Q(word) "\"" word "\""
#define END "the end of the rule"
#define BLANK "a blank"
#define MORE "provider, ask or the end of the rule"
#define ASK_OR_END "ask or the end of the rule"
#define ASK "always or never"
#define PROVIDER "auto, soft or verbs"

#define ROW(text, ...)                              \
	{                                           \
		text, sizeof(text) - 1, __VA_ARGS__ \
	}

static const struct {
	const char *text;
	size_t len; /* a NUL may stand in it */
	const char *place;
	const char *expected;
	const char *got;
} rows[] = {
	/* clang-format off */
	ROW("ddp * * *:*", "1:1", USE, Q("ddp")),
	ROW("Use ddp * * *:*", "1:1", USE, Q("Use")),
	ROW("us ddp * * *:*", "1:1", USE, Q("us")),
	ROW("used ddp * * *:*", "1:1", USE, Q("used")),
	ROW("use;", "1:4", TRANSPORT, END),
	ROW("use", "1:4", TRANSPORT, END),
	ROW("use ", "1:5", TRANSPORT, END),
	ROW("use # x", "1:5", TRANSPORT, END),
	ROW("x", "1:1", USE, Q("x")),
	ROW("\n\n  x", "3:3", USE, Q("x")),
	ROW("use ddp * * *:*; x", "1:18", USE, Q("x")),
	ROW("use ddp * * *:*\nx", "2:1", USE, Q("x")),
	ROW("# c\nx", "2:1", USE, Q("x")),
	ROW("\\", "1:1", USE, Q("\\")),
	ROW("\"use\" ddp * * *:*", "1:1", USE, Q("\"use\"")),
	ROW("\000use ddp * * *:*", "1:1", USE, Q("\\x00use")),
	ROW("use\000 ddp * * *:*", "1:1", USE, Q("use\\x00")),
	ROW("\240use ddp * * *:*", "1:1", USE, Q("\\xa0use")),
	ROW("\014use ddp * * *:*", "1:1", USE, Q("\\x0cuse")),
	ROW("=", "1:1", USE, Q("=")),
	ROW("set x 1", "1:1", USE, Q("set")),
	ROW("\357\273\277use ddp * * *:*", "1:1", USE, Q("\\xef\\xbb\\xbfuse")),
	ROW("use use ddp * * *:*", "1:5", TRANSPORT, Q("use")),
	ROW("use rdma * * *:*", "1:5", TRANSPORT, Q("rdma")),
	ROW("use DDP * * *:*", "1:5", TRANSPORT, Q("DDP")),
	ROW("use dpd * * *:*", "1:5", TRANSPORT, Q("dpd")),
	ROW("use dd * * *:*", "1:5", TRANSPORT, Q("dd")),
	ROW("use ddpx * * *:*", "1:5", TRANSPORT, Q("ddpx")),
	ROW("use * * * *:*", "1:5", TRANSPORT, Q("*")),
	ROW("use \001ddp * * *:*", "1:5", TRANSPORT, Q("\\x01ddp")),
	ROW("use on * * *:*", "1:5", TRANSPORT, Q("on")),
	ROW("use \033[31mddp * * *:*", "1:5", TRANSPORT, Q("\\x1b[31mddp")),
	ROW("use " X100, "1:5", TRANSPORT, Q(CUT)),
	ROW("use ddp", "1:8", ROLE, END),
	ROW("use ddp ", "1:9", ROLE, END),
	ROW("use ddp;", "1:8", ROLE, END),
	ROW("use ddp # *", "1:9", ROLE, END),
	ROW("use ddp both * *:*", "1:9", ROLE, Q("both")),
	ROW("use ddp ** * *:*", "1:9", ROLE, Q("**")),
	ROW("use ddp Client * *:*", "1:9", ROLE, Q("Client")),
	ROW("use ddp clients * *:*", "1:9", ROLE, Q("clients")),
	ROW("use ddp serv * *:*", "1:9", ROLE, Q("serv")),
	ROW("use ddp client,server * *:*", "1:9", ROLE, Q("client,server")),
	ROW("use ddp ? * *:*", "1:9", ROLE, Q("?")),
	ROW("use ddp * * *:* provider", "1:25", PROVIDER, END),
	ROW("use ddp * * *:* provider rdma", "1:26", PROVIDER, Q("rdma")),
	ROW("use auto * * *:* provider verbs:siw0", "1:27", PROVIDER, Q("verbs:siw0")),
	ROW("use ddp * * *:* provider soft soft", "1:31", ASK_OR_END, Q("soft")),
	ROW("use auto * * *:* ask", "1:21", ASK, END),
	ROW("use auto * * *:* ask yes", "1:22", ASK, Q("yes")),
	ROW("use auto * * *:* ask never ask", "1:28", END, Q("ask")),
	ROW("use auto * * *:* ask never provider soft", "1:28", END, Q("provider")),
	ROW("use auto * * *:* provider soft ask", "1:35", ASK, END),
	ROW("use auto * * *:* provider soft ask always x", "1:43", END, Q("x")),
	ROW("use tcp * * *:* ask never", "1:17", END, Q("ask")),
	ROW("use ddp * * *:* Provider soft", "1:17", MORE, Q("Provider")),
	ROW("use tcp * * *:* provider soft", "1:17", END, Q("provider")),
	ROW("use ddp *", "1:10", PROGRAM, END),
	ROW("use ddp * ;", "1:11", PROGRAM, END),
	ROW("use ddp *\n", "1:10", PROGRAM, END),
	ROW("use ddp * #x *:*", "1:11", PROGRAM, END),
	ROW("use ddp * [ *:80", "1:11", SET_END, Q("[")),
	ROW("use ddp * [a *:80", "1:11", SET_END, Q("[a")),
	ROW("use ddp * [] *:80", "1:11", SET_END, Q("[]")),
	ROW("use ddp * [!] *:80", "1:11", SET_END, Q("[!]")),
	ROW("use ddp * [! *:80", "1:11", SET_END, Q("[!")),
	ROW("use ddp * [^ *:80", "1:11", SET_END, Q("[^")),
	ROW("use ddp * [a- *:80", "1:11", SET_END, Q("[a-")),
	ROW("use ddp * [b-a] *:80", "1:12", RANGE_UP, Q("b-a]")),
	ROW("use ddp * [z-a]x *:80", "1:12", RANGE_UP, Q("z-a]x")),
	ROW("use ddp * x[ *:80", "1:12", SET_END, Q("[")),
	ROW("use ddp * x[[:alpha:]] *:80", "1:13", NO_CLASS, Q("[:alpha:]]")),
	ROW("use ddp * [[.a.]] *:80", "1:12", NO_CLASS, Q("[.a.]]")),
	ROW("use ddp * [[=a=]] *:80", "1:12", NO_CLASS, Q("[=a=]]")),
	ROW("use ddp * /usr/bin/redis *:80", "1:11", BASE_NAME, Q("/usr/bin/redis")),
	ROW("use ddp * bin/redis *:80", "1:14", BASE_NAME, Q("/redis")),
	ROW("use ddp * redis/ *:80", "1:16", BASE_NAME, Q("/")),
	ROW("use ddp * a\\ *:80", "1:18", ENDPOINT, END),
	ROW("use ddp * x\\ *:80", "1:18", ENDPOINT, END),
	ROW("use ddp * [\\ *:80", "1:11", SET_END, Q("[\\ *:80")),
	ROW("use ddp * [a\\ *:80", "1:11", SET_END, Q("[a\\ *:80")),
	ROW("use ddp * a\001b *:80", "1:12", NO_CONTROL, Q("\\x01")),
	ROW("use ddp * a\177 *:80", "1:12", NO_CONTROL, Q("\\x7f")),
	ROW("use ddp * \000 *:80", "1:11", NO_CONTROL, Q("\\x00")),
	ROW("use ddp * a\000b *:80", "1:12", NO_CONTROL, Q("\\x00")),
	ROW("use ddp * " X256 " *:80", "1:11", SHORTER, Q(CUT)),
	ROW("use ddp * ab[c *:80", "1:13", SET_END, Q("[c")),
	ROW("use ddp * [a]b[ *:80", "1:15", SET_END, Q("[")),
	ROW("use ddp * [a]b[c-b] *:80", "1:16", RANGE_UP, Q("c-b]")),
	ROW("use ddp * \\\033 *:80", "1:12", NO_CONTROL, Q("\\x1b")),
	ROW("use ddp * [/ *:80", "1:11", SET_END, Q("[/")),
	ROW("use ddp * x", "1:12", ENDPOINT, END),
	ROW("use ddp * x ", "1:13", ENDPOINT, END),
	ROW("use ddp * x;", "1:12", ENDPOINT, END),
	ROW("use ddp * x #*:*", "1:13", ENDPOINT, END),
	ROW("use ddp * x 10.0.0.1", "1:13", ENDPOINT, Q("10.0.0.1")),
	ROW("use ddp * x *", "1:13", ENDPOINT, Q("*")),
	ROW("use ddp * x 80", "1:13", ENDPOINT, Q("80")),
	ROW("use ddp * x x", "1:13", ENDPOINT, Q("x")),
	ROW("use ddp * x :", "1:13", ADDRESS, Q(":")),
	ROW("use ddp * x :80", "1:13", ADDRESS, Q(":80")),
	ROW("use ddp * x ::", "1:13", BRACKETS, Q("::")),
	ROW("use ddp * x *:", "1:15", PORT, END),
	ROW("use ddp * x *::80", "1:13", BRACKETS, Q("*::80")),
	ROW("use ddp * x **:80", "1:13", ADDRESS, Q("**")),
	ROW("use ddp * x */8:80", "1:13", ADDRESS, Q("*")),
	ROW("use ddp * x 10.0.0.1:", "1:22", PORT, END),
	ROW("use ddp * x 10.0.0.1/:80", "1:22", LEN_4, Q(":80")),
	ROW("use ddp * x 10.0.0.1/33:80", "1:22", LEN_4, Q("33")),
	ROW("use ddp * x 10.0.0.1/-1:80", "1:22", LEN_4, Q("-1")),
	ROW("use ddp * x 10.0.0.1/8/8:80", "1:22", LEN_4, Q("8/8")),
	ROW("use ddp * x 10.0.0.1/a:80", "1:22", LEN_4, Q("a")),
	ROW("use ddp * x 10.0.0.1/ 8:80", "1:13", ENDPOINT, Q("10.0.0.1/")),
	ROW("use ddp * x 10.0.0.1/99999999999:80", "1:22", LEN_4, Q("99999999999")),
	ROW("use ddp * x 10.0.0.1/0x8:80", "1:22", LEN_4, Q("0x8")),
	ROW("use ddp * x 10.0.0:80", "1:13", ADDRESS, Q("10.0.0")),
	ROW("use ddp * x 10.0.0.256:80", "1:13", ADDRESS, Q("10.0.0.256")),
	ROW("use ddp * x 10.0.0.1.2:80", "1:13", ADDRESS, Q("10.0.0.1.2")),
	ROW("use ddp * x 010.0.0.1:80", "1:13", ADDRESS, Q("010.0.0.1")),
	ROW("use ddp * x 0x7f.0.0.1:80", "1:13", ADDRESS, Q("0x7f.0.0.1")),
	ROW("use ddp * x 1:80", "1:13", ADDRESS, Q("1")),
	ROW("use ddp * x localhost:80", "1:13", ADDRESS, Q("localhost")),
	ROW("use ddp * x example.org:80", "1:13", ADDRESS, Q("example.org")),
	ROW("use ddp * x 10.0.0.1 :80", "1:13", ENDPOINT, Q("10.0.0.1")),
	ROW("use ddp * x 10.0.0.*:80", "1:13", ADDRESS, Q("10.0.0.*")),
	ROW("use ddp * x /8:80", "1:13", ADDRESS, Q("/8:80")),
	ROW("use ddp * x 10.0.0.1\000:80", "1:13", ADDRESS, Q("10.0.0.1\\x00")),
	ROW("use ddp * x 1111111111111111111111111111111111111111111111:80",
	    "1:13", ADDRESS, Q("1111111111111111111111111111111111111111111111")),
	ROW("use ddp * x ::1:80", "1:13", BRACKETS, Q("::1:80")),
	ROW("use ddp * x ::1", "1:13", BRACKETS, Q("::1")),
	ROW("use ddp * x fd00::/8:80", "1:13", BRACKETS, Q("fd00::/8:80")),
	ROW("use ddp * x [", "1:13", BRACKET_END, Q("[")),
	ROW("use ddp * x ]", "1:13", ENDPOINT, Q("]")),
	ROW("use ddp * x []", "1:15", COLON, END),
	ROW("use ddp * x []:80", "1:14", IPV6, Q("]:80")),
	ROW("use ddp * x [:80", "1:13", BRACKET_END, Q("[:80")),
	ROW("use ddp * x [::1", "1:13", BRACKET_END, Q("[::1")),
	ROW("use ddp * x [::1:80", "1:13", BRACKET_END, Q("[::1:80")),
	ROW("use ddp * x [::1]", "1:18", COLON, END),
	ROW("use ddp * x [::1]80", "1:18", COLON, Q("80")),
	ROW("use ddp * x [::1]x:80", "1:18", COLON_OR_LEN, Q("x:80")),
	ROW("use ddp * x [::1] :80", "1:18", COLON, BLANK),
	ROW("use ddp * x [::1]:", "1:19", PORT, END),
	ROW("use ddp * x [::1]]:80", "1:18", COLON_OR_LEN, Q("]:80")),
	ROW("use ddp * x [[::1]]:80", "1:19", COLON_OR_LEN, Q("]:80")),
	ROW("use ddp * x [::1]/:80", "1:19", LEN_6, Q(":80")),
	ROW("use ddp * x [::1/]:80", "1:18", LEN_6, Q("]:80")),
	ROW("use ddp * x [::1]/129:80", "1:19", LEN_6, Q("129")),
	ROW("use ddp * x [::1/129]:80", "1:18", LEN_6, Q("129")),
	ROW("use ddp * x [::1]/x:80", "1:19", LEN_6, Q("x")),
	ROW("use ddp * x [::1/64]/64:80", "1:14", IPV6, Q("::1/64")),
	ROW("use ddp * x [::1]/64/64:80", "1:19", LEN_6, Q("64/64")),
	ROW("use ddp * x [10.0.0.1]:80", "1:14", IPV6, Q("10.0.0.1")),
	ROW("use ddp * x [*]:80", "1:14", IPV6, Q("*")),
	ROW("use ddp * x [::g]:80", "1:14", IPV6, Q("::g")),
	ROW("use ddp * x [1:2:3:4:5:6:7]:80", "1:14", IPV6, Q("1:2:3:4:5:6:7")),
	ROW("use ddp * x [1:2:3:4:5:6:7:8:9]:80", "1:14", IPV6, Q("1:2:3:4:5:6:7:8:9")),
	ROW("use ddp * x [fe80::1%eth0]:80", "1:14", IPV6, Q("fe80::1%eth0")),
	ROW("use ddp * x [::ffff:10.0.0.1]/95:80", "1:31", LEN_MAPPED, Q("95")),
	ROW("use ddp * x [::ffff:10.0.0.1/32]:80", "1:30", LEN_MAPPED, Q("32")),
	ROW("use ddp * x [::ffff:0:0]/129:80", "1:26", LEN_MAPPED, Q("129")),
	ROW("use ddp * x [::1\000]:80", "1:14", IPV6, Q("::1\\x00")),
	ROW("use ddp * x [::1]:80:81", "1:19", PORT, Q("80:81")),
	ROW("use ddp * x *:80x", "1:15", PORT, Q("80x")),
	ROW("use ddp * x *:x", "1:15", PORT, Q("x")),
	ROW("use ddp * x *:0", "1:15", PORT_LIMITS, Q("0")),
	ROW("use ddp * x *:65536", "1:15", PORT_LIMITS, Q("65536")),
	ROW("use ddp * x *:99999999999999999999", "1:15", PORT_LIMITS, Q("99999999999999999999")),
	ROW("use ddp * x *:-1", "1:15", PORT, Q("-1")),
	ROW("use ddp * x *:-", "1:15", PORT, Q("-")),
	ROW("use ddp * x *:80-", "1:15", PORT, Q("80-")),
	ROW("use ddp * x *:-80", "1:15", PORT, Q("-80")),
	ROW("use ddp * x *:80-x", "1:15", PORT, Q("80-x")),
	ROW("use ddp * x *:x-80", "1:15", PORT, Q("x-80")),
	ROW("use ddp * x *:80-79", "1:15", LOWER_FIRST, Q("80-79")),
	ROW("use ddp * x *:0-80", "1:15", PORT_LIMITS, Q("0")),
	ROW("use ddp * x *:0-0", "1:15", PORT_LIMITS, Q("0")),
	ROW("use ddp * x *:80-65536", "1:18", PORT_LIMITS, Q("65536")),
	ROW("use ddp * x *:65536-65537", "1:15", PORT_LIMITS, Q("65536")),
	ROW("use ddp * x *:80-81-82", "1:15", PORT, Q("80-81-82")),
	ROW("use ddp * x *:80,81", "1:15", PORT, Q("80,81")),
	ROW("use ddp * x *:+80", "1:15", PORT, Q("+80")),
	ROW("use ddp * x *:**", "1:15", PORT, Q("**")),
	ROW("use ddp * x *:*-80", "1:15", PORT, Q("*-80")),
	ROW("use ddp * x *:80-*", "1:15", PORT, Q("80-*")),
	ROW("use ddp * x *:http", "1:15", PORT, Q("http")),
	ROW("use ddp * x *:80 81", "1:18", MORE, Q("81")),
	ROW("use ddp * x *:0x50", "1:15", PORT, Q("0x50")),
	ROW("use ddp * x *:8 0", "1:17", MORE, Q("0")),
	ROW("use ddp * x *:80/tcp", "1:15", PORT, Q("80/tcp")),
	ROW("use ddp * x *:\000", "1:15", PORT, Q("\\x00")),
	ROW("use ddp * x *:80\000", "1:15", PORT, Q("80\\x00")),
	ROW("use ddp * x *:\262", "1:15", PORT, Q("\\xb2")),
	ROW("use ddp * x *:80 x", "1:18", MORE, Q("x")),
	ROW("use ddp * x *:80 *:81", "1:18", MORE, Q("*:81")),
	ROW("use ddp * x *:80 use ddp * x *:81", "1:18", MORE, Q("use")),
	ROW("use ddp * x *:80 \\", "1:18", MORE, Q("\\")),
	ROW("use ddp client server x *:80", "1:23", ENDPOINT, Q("x")),
	ROW("use ddp * a b *:80", "1:13", ENDPOINT, Q("b")),
	ROW("use ddp * \"a b\" *:80", "1:14", ENDPOINT, Q("b\"")),
	ROW("use ddp * x *:80\nuse ddp * x *:80x", "2:15", PORT, Q("80x")),
	ROW("use ddp * x *:80\n\n\n   use ddp * x\t*:80x", "4:18", PORT, Q("80x")),
	ROW("use ddp * x *:80; use ddp * x *:80x", "1:33", PORT, Q("80x")),
	ROW("a;b", "1:1", USE, Q("a")),
	ROW("use ddp * x *:80;\n;\n; use", "3:6", TRANSPORT, END),
	ROW("use ddp * x *:80\r\nuse tcp", "2:8", ROLE, END),
	ROW("use ddp \\\n* x *:80", "1:9", ROLE, Q("\\")),
	ROW("use ddp * x\\\n *:80", "1:12", ESCAPED, Q("\\")),
	ROW("#\n#\n#\n\tuse", "4:5", TRANSPORT, END),
	ROW(" use ddp * x *:80x", "1:16", PORT, Q("80x")),
	ROW("\tuse ddp * x *:80x", "1:16", PORT, Q("80x")),
	ROW("use ddp * caf\351 *:80x", "1:18", PORT, Q("80x")),
	ROW(RULES_40 "use ddp * x y", "41:13", ENDPOINT, Q("y")),
	/* clang-format on */
};

static struct config_rules rules, before;

Test(rule_bad, rows)
{
	struct config_error err;
	char want[512];

	config_rules_init(&rules);
	cr_assert_eq(text_add(&rules, CONFIG_FROM_FILE, "f", "use tcp client y *:9", &err), 0);
	before = rules;
	for (size_t i = 0; i < base_array_size(rows); i++) {
		cr_expect_eq(octets_add(&rules, CONFIG_FROM_FILE, "f", rows[i].text, rows[i].len,
					&err),
			     -EINVAL, "%s", rows[i].text);
		snprintf(want, sizeof(want), "f:%s: expected %s, got %s", rows[i].place,
			 rows[i].expected, rows[i].got);
		cr_expect_str_eq(err.text, want, "%s: %s", rows[i].text, err.text);
		cr_expect_eq(rules.count, before.count);
		cr_expect_eq(rules.size, before.size);
		cr_expect_arr_eq(rules.octets, before.octets, before.size);
	}
}

/* Another source, another name; the keyword is no part of what is missing there. */
Test(rule_bad, sources)
{
	struct config_error err;

	config_rules_init(&rules);
	cr_expect_eq(text_add(&rules, CONFIG_FROM_ENVIRONMENT, "WARPSOCK_USE",
			      "tcp * x *:80;xdp * x *:80", &err),
		     -EINVAL);
	cr_expect_str_eq(err.text, "WARPSOCK_USE:1:14: expected ddp, auto or tcp, got \"xdp\"");
	cr_expect_eq(text_add(&rules, CONFIG_FROM_FILE, "/etc/warpsock.conf",
			      "# web\n\nuse ddp * w *:80x\n", &err),
		     -EINVAL);
	cr_expect_str_eq(err.text, "/etc/warpsock.conf:3:15: expected a port or *, got \"80x\"");
}

/* Nothing behind the given length is read, as in a mapped file. */
Test(rule_bad, length_is_kept)
{
	static const char text[] = "use ddp * x *:80";
	struct config_error err;

	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		char *exact = malloc(len + !len);

		memcpy(exact, text, len);
		config_rules_init(&rules);
		cr_expect_eq(octets_add(&rules, CONFIG_FROM_FILE, "f", exact, len, &err),
			     len == 0 || len == 15 ? 0 : -EINVAL, "%zu", len);
		free(exact);
	}
}

/* The table takes whole rules until one does not fit. */
Test(rule_bad, table_is_full)
{
	static const char text[] = "use ddp * x *:80\n";
	struct config_error err;
	unsigned int n = 0;
	int got;

	config_rules_init(&rules);
	while (!(got = text_add(&rules, CONFIG_FROM_FILE, "f", text, &err)))
		n++;
	cr_expect_eq(got, -ENOSPC);
	cr_expect_eq(n, sizeof(rules.octets) / 40);
	cr_expect_eq(rules.count, n);
	cr_expect_str_eq(err.text, "f:1:1: expected fewer rules: they fill the table of 64 KiB, "
				   "got one more");
	cr_expect_eq(config_rules_add(&rules, &(struct config_text){ .octets = "" }, &err), 0);
}
