/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs provider on a host without an RDMA device: it says so, and costs nothing. What it does
 * with one is seen in the kernel lab (tests/vm/cases/native.sh).
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <warp/rdma.h>

static bool host_has_devices(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *e;
	bool has = false;

	while (dir && !has && (e = readdir(dir)))
		has = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return has;
}

static bool is_mapped(const char *library)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];
	bool found = false;

	cr_assert_not_null(f);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, library);
	fclose(f);
	return found;
}

Test(verbs_open, a_host_without_devices)
{
	struct warp_device *dev;

	if (host_has_devices())
		cr_skip_test("this host has RDMA devices");
	cr_assert_eq(warp_device_open("verbs", &dev), -ENODEV);
	cr_assert_eq(warp_device_open("verbs:siw0", &dev), -ENODEV);
	cr_assert_not(is_mapped("libibverbs"));
	cr_assert_not(is_mapped("librdmacm"));
	cr_assert(is_mapped("libcriterion"), "what is mapped is seen");
}

Test(verbs_open, a_device_that_nobody_has)
{
	struct warp_device *dev;

	cr_assert_eq(warp_device_open("verbs:no such device", &dev), -ENODEV);
	cr_assert_eq(warp_device_open("soft:siw0", &dev), -ENODEV);
	cr_assert_eq(warp_device_open("soft", &dev), 0);
	cr_assert_eq(warp_device_close(dev), 0);
}

Test(verbs_open, the_software_provider_is_the_default)
{
	cr_assert_str_eq(warp_provider_name(0), "soft");
	cr_assert_str_eq(warp_provider_name(1), "verbs");
	cr_assert_null(warp_provider_name(2));
}
