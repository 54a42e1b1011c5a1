/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry of providers: who is the default, who is found, who is refused.
 */
#include "rnic/rnic.h"

#include <criterion/criterion.h>

static const struct rnic_ops first = { .name = "first" };
static const struct rnic_ops second = { .name = "second" };
static const struct rnic_ops impostor = { .name = "first" };

/* Criterion runs each test in a process of its own, so each begins with an empty registry. */
Test(registry, empty_has_no_default)
{
	cr_expect_null(rnic_find(NULL));
	cr_expect_null(rnic_find("first"));
	cr_expect_null(rnic_at(0));
}

Test(registry, first_one_is_the_default)
{
	rnic_register(&first);
	rnic_register(&second);
	cr_expect_eq(rnic_find(NULL), &first);
	cr_expect_eq(rnic_find("first"), &first);
	cr_expect_eq(rnic_find("second"), &second);
	cr_expect_null(rnic_find("third"));
	cr_expect_null(rnic_find(""));
	cr_expect_eq(rnic_at(0), &first);
	cr_expect_eq(rnic_at(1), &second);
	cr_expect_null(rnic_at(2));
}

Test(registry, a_name_may_have_a_device)
{
	rnic_register(&first);
	rnic_register(&second);
	cr_expect_eq(rnic_find("second:dev0"), &second);
	cr_expect_eq(rnic_find("second:"), &second);
	cr_expect_null(rnic_find("sec:dev0"));
	cr_expect_null(rnic_find(":second"));
	cr_expect_str_eq(rnic_device_name("second:dev0"), "dev0");
	cr_expect_str_eq(rnic_device_name("second:"), "");
	cr_expect_null(rnic_device_name("second"));
	cr_expect_null(rnic_device_name(NULL));
}

Test(registry, name_is_taken_once)
{
	rnic_register(&first);
	rnic_register(&impostor);
	cr_expect_eq(rnic_find("first"), &first);
	cr_expect_null(rnic_at(1));
}

Test(registry, full_registry_refuses)
{
	static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8" };
	static struct rnic_ops ops[9];

	for (unsigned int i = 0; i < 9; i++) {
		ops[i].name = names[i];
		rnic_register(&ops[i]);
	}
	cr_expect_eq(rnic_at(7), &ops[7]);
	cr_expect_null(rnic_at(8));
	cr_expect_null(rnic_find("8"));
}
