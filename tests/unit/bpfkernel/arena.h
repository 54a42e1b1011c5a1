/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_BPFKERNEL_ARENA_H
#define TESTS_UNIT_BPFKERNEL_ARENA_H

/* What units of the rewriter begin with. */

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/bpf/assemble.h"
#include "tests/bpf/kernel_engine.h"

/* Skips the test where the kernel has no arena */
static inline struct kernel_engine *kernel_open(void)
{
	static struct kernel_engine k;
	int ret = kernel_engine_open(&k);

	if (ret == -EOPNOTSUPP || ret == -EPERM)
		cr_skip_test("no BPF arena: %s", strerror(-ret));
	cr_assert_eq(ret, 0, "%s", strerror(-ret));
	return &k;
}

#endif
