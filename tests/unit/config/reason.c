/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reason codes: the rows are whole and in order, and the numbers that others hold stay.
 */
#include "config/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"

Test(reason, rows)
{
	const struct config_reason_row *r, *last = NULL;
	static const unsigned int first[] = { 0, 100, 200, 300, 400 };

	for (unsigned int i = 0; (r = config_reason_at(i)); i++) {
		size_t len = strlen(r->text), advice = strlen(r->advice);

		cr_expect(!last || r->number > last->number, "%s", r->name);
		cr_expect(r->number >= first[r->group] && r->number < first[r->group + 1], "%s",
			  r->name);
		cr_expect_eq(strspn(r->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(r->name));
		cr_expect_eq(r->text[len - 1], '.', "%s", r->name);
		cr_expect(!advice || r->advice[advice - 1] == '.', "%s", r->name);
		for (size_t j = 0; j < len; j++)
			cr_expect(r->text[j] >= 0x20 && r->text[j] < 0x7f, "%s", r->name);
		cr_expect_eq(config_reason_name(r->number), r->name);
		cr_expect_eq(config_reason_text(r->number), r->text);
		last = r;
	}
	cr_assert_not_null(last);
}

/* Numbers that programs may have stored: never to be changed */
Test(reason, numbers)
{
	static const struct {
		unsigned int number;
		const char *name;
	} rows[] = {
		{ 0, "NONE" },
		{ 1, "RULE_NONE" },
		{ 2, "RULE_TCP" },
		{ 3, "MODE_OFF" },
		{ 4, "PEER_UNKNOWN" },
		{ 100, "PEER_NOT_MPA" },
		{ 101, "PROBE_TIMEOUT" },
		{ 102, "REFUSED" },
		{ 103, "GRACE_EXPIRED" },
		{ 200, "PROVIDER_UNAVAILABLE" },
		{ 203, "NO_MEMORY" },
		{ 206, "FORKED" },
		{ 207, "SANDBOXED" },
		{ 208, "IO_URING" },
		{ 300, "CLOSED" },
		{ 307, "LINGER_EXPIRED" },
		{ 311, "FLOODED" },
	};

	for (size_t i = 0; i < base_array_size(rows); i++)
		cr_expect_str_eq(config_reason_name(rows[i].number), rows[i].name);
	cr_expect_eq(CONFIG_REASON_PEER_UNKNOWN, 4);
	cr_expect_eq(CONFIG_REASON_LINGER_EXPIRED, 307);
}

Test(reason, every_number_has_words)
{
	cr_expect_str_eq(config_reason_name(99), "UNKNOWN");
	cr_expect_str_eq(config_reason_name(0xFFFFFFFF), "UNKNOWN");
	cr_expect_gt(strlen(config_reason_text(99)), 10);
}

/* Who shows the table, and who asks it, see the same */
Test(reason, of_errors)
{
	enum config_reason reason;
	unsigned int i = 0;
	int error;

	for (; (error = config_reason_error_at(i, &reason)); i++)
		if (i < 9 || error == ENETUNREACH)
			cr_expect_eq(config_reason_of_error(error), reason, "errno %d", error);
		else
			cr_expect_neq(config_reason_of_error(error), reason, "errno %d", error);
	cr_expect_geq(i, 13);
	cr_expect_eq(config_reason_of_error(ETIMEDOUT), CONFIG_REASON_PROBE_TIMEOUT);
	cr_expect_eq(config_reason_of_error(EDOM), CONFIG_REASON_PEER_NOT_MPA);
	cr_expect_str_empty(config_reason_advice(9999));
	cr_expect_str_not_empty(config_reason_advice(CONFIG_REASON_PROBE_TIMEOUT));
}
