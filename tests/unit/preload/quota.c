/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Quotas of cgroups, of both versions, as files below a folder of the test's.
 */
#include "preload/guard/quota.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[32];

static void root_make(void)
{
	snprintf(root, sizeof(root), "/tmp/quota-XXXXXX");
	cr_assert(mkdtemp(root));
}

static void root_remove(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	cr_assert_eq(system(command), 0);
}

TestSuite(quota, .init = root_make, .fini = root_remove);

/* With the folders that it lies in */
static void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	file = fopen(path, "w");
	cr_assert(file);
	fputs(text, file);
	fclose(file);
}

Test(quota, of_none)
{
	cr_expect_not(quota_is_low(root), "nothing can be read");
	put("/proc/self/cgroup", "0::/\n");
	cr_expect_not(quota_is_low(root));
}

Test(quota, of_version_two)
{
	static const struct {
		const char *text;
		bool low;
	} rows[] = {
		{ "max 100000\n", false },
		{ "200000 100000\n", false },
		{ "199999 100000\n", true },
		{ "1000 100000\n", true },
		{ "", false },
		{ "0 100000\n", false },
		{ "150000\n", false },
		{ "x y\n", false },
		{ "150000 0\n", false },
		{ "100000 50000\n", false },
	};

	put("/proc/self/cgroup", "0::/a/b\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put("/sys/fs/cgroup/a/b/cpu.max", rows[i].text);
		cr_expect_eq(quota_is_low(root), rows[i].low, "%s", rows[i].text);
	}
}

Test(quota, of_a_group_above)
{
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	cr_expect_not(quota_is_low(root));
	put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
	cr_expect(quota_is_low(root));
}

/* A container may be told a path that it does not have */
Test(quota, of_a_group_that_is_not_there)
{
	put("/proc/self/cgroup", "0::/outside/of/it\n");
	put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
	cr_expect(quota_is_low(root));
}

Test(quota, of_version_one)
{
	put("/proc/self/cgroup", "5:cpuset:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	cr_expect_not(quota_is_low(root));
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
	cr_expect(quota_is_low(root));
	put("/proc/self/cgroup", "5:cpuset:/a\n4:cpuacct:/a\n");
	cr_expect_not(quota_is_low(root), "another controller's");
}

Test(quota, of_what_is_no_list)
{
	put("/proc/self/cgroup", "0:\n::\n\n:\nx");
	cr_expect_not(quota_is_low(root));
}
