/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Words for values: each known one has words of its own, each unknown one some.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <warp/rdma.h>

static const char *status_text(int value)
{
	return warp_wc_status_text((enum warp_wc_status)value);
}

static const char *state_text(int value)
{
	return warp_conn_state_text((enum warp_conn_state)value);
}

static void expect_texts(const char *(*text)(int), int last)
{
	const char *unknown = text(last + 1);

	cr_assert_not_null(unknown);
	cr_expect_str_eq(text(-1), unknown);
	for (int i = 0; i <= last; i++) {
		cr_assert_not_null(text(i), "%d", i);
		cr_expect_str_neq(text(i), unknown, "%d", i);
		for (int k = 0; k < i; k++)
			cr_expect_str_neq(text(i), text(k), "%d and %d", i, k);
	}
}

Test(text, each_status_has_its_own)
{
	expect_texts(status_text, WARP_WC_GENERAL);
}

Test(text, each_state_has_its_own)
{
	expect_texts(state_text, WARP_CONN_ERROR);
}

Test(text, faults)
{
	/* DDP, untagged buffer, no buffer; one that nobody has defined; none */
	const char *known = warp_fault_text(0x11202), *odd = warp_fault_text(0x1F3AB);

	cr_assert_not_null(known);
	cr_expect_not_null(strstr(known, "buffer"), "%s", known);
	cr_assert_not_null(odd);
	cr_expect_str_neq(odd, known);
	cr_assert_not_null(warp_fault_text(0));
	cr_expect_str_neq(warp_fault_text(0), known);
}
