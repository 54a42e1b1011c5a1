/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of a report: what is written is read again, adds up, and nothing else is taken for one.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/report.h"

static const struct config_report full = {
	.n = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 },
	.reason = { [1] = 12, [CONFIG_REPORT_REASONS - 1] = 13 },
	.peer = "[::1]:80",
	.why = CONFIG_REASON_PEER_NOT_MPA,
};

static struct config_report read_again(const struct config_report *r)
{
	char text[CONFIG_REPORT_MAX];
	struct config_report out;

	cr_assert_eq(config_report_format(r, text), strlen(text));
	cr_assert_eq(config_report_parse(&out, text), 0);
	return out;
}

static void expect_equal(const struct config_report *got, const struct config_report *want)
{
	for (unsigned int i = 0; i < CONFIG_REPORT_NUMBERS; i++)
		cr_expect_eq(got->n[i], want->n[i], "number %u: %llu", i, got->n[i]);
	for (unsigned int i = 0; i < CONFIG_REPORT_REASONS; i++)
		cr_expect_eq(got->reason[i], want->reason[i], "reason %u", i);
	cr_expect_str_eq(got->peer, want->peer);
	cr_expect_eq(got->why, want->why);
}

Test(report, what_is_written_is_read)
{
	static const struct config_report zeros;
	struct config_report got = read_again(&full);

	expect_equal(&got, &full);
	got = read_again(&zeros);
	expect_equal(&got, &zeros);
	cr_expect_eq(config_report_parse(&got, ""), 0);
	expect_equal(&got, &zeros);
}

Test(report, the_longest_fits)
{
	struct config_report most, got;

	memset(&most, 0xff, sizeof(most));
	snprintf(most.peer, sizeof(most.peer), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
	got = read_again(&most);
	expect_equal(&got, &most);
}

Test(report, sums)
{
	struct config_report sum = full, newer = { .n[CONFIG_REPORT_TCP] = 1 };

	config_report_add(&sum, &newer);
	cr_expect_eq(sum.n[CONFIG_REPORT_TCP], full.n[CONFIG_REPORT_TCP] + 1);
	config_report_add(&newer, &full);
	cr_expect_str_eq(newer.peer, full.peer, "the older one had none");
	cr_expect_eq(newer.why, full.why);
	snprintf(newer.peer, sizeof(newer.peer), "1.2.3.4:5");
	config_report_add(&sum, &newer);
	cr_expect_str_eq(sum.peer, full.peer, "the older one's is kept");
	config_report_reason(&sum, CONFIG_REASON_RULE_NONE, 3);
	cr_expect_eq(sum.reason[1], 27);
}

Test(report, something_else)
{
	static const char *const others[] = {
		"x", "{}", "\n", " {\"connections\": {\"software\": 1}}", "{\"connections\": 1}",
	};
	struct config_report r;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(config_report_parse(&r, others[i]), -EINVAL, "%s", others[i]);
}

/* It may come to stand in a log, and in a terminal */
Test(report, a_peer_is_an_address)
{
	static const char *const peers[] = { "a b", "\\u001b[2J", "", "x", "1.2.3.4:80;" };
	struct config_report r;
	char text[256];

	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		snprintf(text, sizeof(text),
			 "{\"connections\": {\"software\": 0}, \"first\": {\"peer\": \"%s\", "
			 "\"why\": 1}}",
			 peers[i]);
		cr_assert_eq(config_report_parse(&r, text), 0);
		cr_expect_str_empty(r.peer, "%s: %s", peers[i], r.peer);
	}
}

Test(report, what_is_taken_of_a_tally_is_taken_once)
{
	struct config_tally tally = { .sums = full };
	struct config_report got;

	config_tally_read(&tally, false, &got);
	cr_expect_str_eq(got.peer, "", "nobody has written it");
	tally.peer = CONFIG_TALLY_PEER;
	config_tally_read(&tally, false, &got);
	expect_equal(&got, &full);
	config_tally_read(&tally, true, &got);
	expect_equal(&got, &full);
	config_tally_read(&tally, true, &got);
	for (unsigned int i = 0; i < CONFIG_REPORT_NUMBERS; i++)
		cr_expect_eq(got.n[i], 0);
	cr_expect_str_eq(got.peer, full.peer, "the report has it already");
}
