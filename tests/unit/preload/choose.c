/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules as a process asks them: by its name when it started, by role and address.
 */
#include "preload/rules/choose.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/log.h"

static char name[] = "server";

static void begin(void)
{
	clearenv();
	setenv("WARPSOCK_CONFIG", "", 1);
	program_invocation_short_name = name;
}

TestSuite(choose, .init = begin);

static void load(const char *rules)
{
	setenv("WARPSOCK_USE", rules, 1);
	cr_assert_eq(choose_init(), 0, "%s", rules);
}

static struct choice client(const char *addr, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct choice c;

	inet_pton(AF_INET, addr, &sin.sin_addr);
	choose_client((struct sockaddr *)&sin, sizeof(sin), &c);
	return c;
}

static struct choice server(const char *addr, uint16_t port)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct choice c;

	inet_pton(AF_INET6, addr, &sin6.sin6_addr);
	choose_server((struct sockaddr *)&sin6, sizeof(sin6), &c);
	return c;
}

Test(choose, rules_that_take_sockets)
{
	static const struct {
		const char *rules;
		bool takes;
	} cases[] = {
		{ "", false },
		{ "use tcp * * *:*", false },
		{ "use ddp * * *:*", true },
		{ "use auto client * 10.0.0.0/8:*", true },
		{ "use ddp * another *:*", false },
		{ "use tcp * * *:*; use ddp * * *:*", false },
		{ "use tcp * server *:*; use auto * * *:*", false },
		{ "use tcp * another *:*; use auto * * *:*", true },
		{ "use tcp client * *:*; use auto client * *:*", false },
		{ "use tcp client * *:*; use auto * * *:*", true },
		{ "use tcp client * *:*; use tcp server * *:*; use auto * * *:*", false },
		{ "use tcp * * 10.0.0.0/8:*; use auto * * *:*", true },
		{ "use tcp * * *:80; use auto * * *:*", true },
		{ "use ddp * * *:*; use tcp * * *:*", true },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		load(cases[i].rules);
		cr_expect_eq(choose_takes(), cases[i].takes, "%s", cases[i].rules);
	}
}

Test(choose, which_roles_there_are_rules_for)
{
	static const struct {
		const char *rules;
		bool client, server;
	} cases[] = {
		{ "", false, false },
		{ "ddp * * *:*", true, true },
		{ "auto client * *:*", true, false },
		{ "ddp server s*r *:80", false, true },
		{ "ddp * other *:*", false, false },
		{ "tcp * * *:*", false, false },
		{ "tcp * server *:*; auto client ser?er 10.0.0.0/8:*", true, false },
	};

	for (size_t i = 0; i < base_array_size(cases); i++) {
		load(cases[i].rules);
		cr_expect_eq(choose_may(CONFIG_CLIENT), cases[i].client, "%s", cases[i].rules);
		cr_expect_eq(choose_may(CONFIG_SERVER), cases[i].server, "%s", cases[i].rules);
	}
}

Test(choose, what_a_rule_says_and_why)
{
	static const struct {
		const char *addr;
		uint16_t port;
		struct choice want;
	} cases[] = {
		{ "10.1.2.3",
		  80,
		  { CONFIG_USE_DDP, CONFIG_REASON_NONE, true, NULL, CONFIG_ASK_NEAR } },
		{ "10.1.2.3",
		  81,
		  { CONFIG_USE_AUTO, CONFIG_REASON_NONE, false, NULL, CONFIG_ASK_NEAR } },
		{ "10.9.2.3",
		  81,
		  { CONFIG_USE_TCP, CONFIG_REASON_RULE_TCP, true, NULL, CONFIG_ASK_NEAR } },
		{ "11.1.2.3",
		  82,
		  { CONFIG_USE_TCP, CONFIG_REASON_RULE_NONE, false, NULL, CONFIG_ASK_NEAR } },
	};

	load("ddp client * 10.1.0.0/16:80; tcp client * 10.9.0.0/16:*; auto client * *:80-81");
	for (size_t i = 0; i < base_array_size(cases); i++) {
		struct choice c = client(cases[i].addr, cases[i].port);

		cr_expect_eq(c.mode, cases[i].want.mode, "case %zu", i);
		cr_expect_eq(c.reason, cases[i].want.reason, "case %zu", i);
		cr_expect_eq(c.named, cases[i].want.named, "case %zu", i);
	}
}

Test(choose, a_server_by_its_own_end)
{
	load("auto server * [::1]:80; ddp server * 127.0.0.1:90");
	cr_expect_eq(server("::1", 80).mode, CONFIG_USE_AUTO);
	cr_expect_eq(server("::2", 80).reason, CONFIG_REASON_RULE_NONE);
	cr_expect_eq(server("::ffff:127.0.0.1", 90).mode, CONFIG_USE_DDP);
	cr_expect_eq(client("127.0.0.1", 90).reason, CONFIG_REASON_RULE_NONE);
}

static const char *listener(const char *addr, uint16_t port, bool serves)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct choice choice;

	inet_pton(AF_INET, addr, &sin.sin_addr);
	cr_expect_eq(choose_serves((struct sockaddr *)&sin, sizeof(sin), &choice), serves);
	return choice.provider ? choice.provider : "none";
}

Test(choose, which_provider_a_rule_names)
{
	load("ddp client * 10.1.0.0/16:* provider verbs; ddp * * *:80 provider soft;"
	     "ddp server * 10.2.0.0/16:90 provider verbs; auto * * *:81-95");
	cr_expect_str_eq(client("10.1.2.3", 80).provider, "verbs");
	cr_expect_str_eq(client("10.2.2.3", 80).provider, "soft");
	cr_expect_null(client("10.2.2.3", 81).provider);
	cr_expect_null(client("10.2.2.3", 79).provider);
	cr_expect_str_eq(listener("10.2.0.1", 90, true), "verbs");
	cr_expect_str_eq(listener("10.3.0.1", 90, true), "none");
	cr_expect_str_eq(listener("10.3.0.1", 79, false), "none");
	/* One of all addresses: by the first rule for one of them */
	cr_expect_str_eq(listener("0.0.0.0", 90, true), "verbs");
	cr_expect_str_eq(listener("0.0.0.0", 80, true), "soft");
	cr_expect_str_eq(listener("0.0.0.0", 79, false), "none");
}

/* A server that writes what it does over its name is still the program of the rules */
Test(choose, the_name_is_that_of_the_start)
{
	load("ddp * server *:*");
	memset(name, 'x', strlen(name));
	cr_expect_eq(client("10.0.0.1", 1).mode, CONFIG_USE_DDP);
}

Test(choose, a_bad_rule_and_none_holds)
{
	base_log_level = BASE_LOG_OFF;
	setenv("WARPSOCK_USE", "ddp * * *:*; dpd * * *:*", 1);
	cr_expect_eq(choose_init(), -EINVAL);
	cr_expect_not(choose_may(CONFIG_CLIENT));
	cr_expect_eq(client("10.0.0.1", 1).reason, CONFIG_REASON_RULE_NONE);
}
