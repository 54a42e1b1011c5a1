/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The quota of processor time that cgroups give.
 *
 *	/proc/self/cgroup	0::/a/b			version 2: /sys/fs/cgroup/a/b/cpu.max
 *				4:cpu,cpuacct:/a/b	version 1: .../cpu/a/b/cpu.cfs_quota_us
 *
 * The lowest of a group and those above it counts. A group that cannot be read is passed over: a
 * container may see the path of its group outside, which it does not have inside.
 */
#include "preload/guard/quota.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROCESSORS 2
#define TEXT 4096
#define PATH 768 /* a longer one is passed over */

/* False: it is not there, or longer than @size */
static bool file_read(const char *path, char *out, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	long n = -1;

	if (fd < 0)
		return false;
	n = syscall(SYS_read, fd, out, size - 1);
	syscall(SYS_close, fd);
	if (n < 0)
		return false;
	out[n] = 0;
	return true;
}

static bool is_less(long long quota, long long period)
{
	return quota > 0 && period > 0 && quota / PROCESSORS < period;
}

/* "max 100000" or "150000 100000" */
static bool unified_is_low(const char *dir)
{
	char path[PATH], text[64];
	long long quota, period;

	if (snprintf(path, sizeof(path), "%s/cpu.max", dir) >= (int)sizeof(path) ||
	    !file_read(path, text, sizeof(text)))
		return false;
	return sscanf(text, "%lld %lld", &quota, &period) == 2 && is_less(quota, period);
}

static long long number_read(const char *dir, const char *name)
{
	char path[PATH], text[64];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
	    !file_read(path, text, sizeof(text)))
		return -1;
	return strtoll(text, NULL, 10);
}

/* -1 and a period: there is no quota */
static bool split_is_low(const char *dir)
{
	return is_less(number_read(dir, "cpu.cfs_quota_us"), number_read(dir, "cpu.cfs_period_us"));
}

/* @mount with @group below it, and each group above that */
static bool any_is_low(const char *mount, const char *group, bool (*is_low)(const char *dir))
{
	size_t top = strlen(mount);
	char dir[PATH], *slash;

	if (snprintf(dir, sizeof(dir), "%s%s", mount, group) >= (int)sizeof(dir))
		return false;
	while (!is_low(dir)) {
		slash = strrchr(dir, '/');
		if (!slash || (size_t)(slash - dir) < top)
			return false;
		*slash = 0;
	}
	return true;
}

static bool has_cpu(const char *names)
{
	char word[128];

	snprintf(word, sizeof(word), ",%s,", names);
	return strstr(word, ",cpu,");
}

/* NUMBER:CONTROLLERS:GROUP */
static bool line_is_low(const char *root, char *line)
{
	char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
	char mount[PATH];

	if (!group)
		return false;
	*group++ = 0;
	names++;
	if (!*names) {
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
		return any_is_low(mount, group, unified_is_low);
	}
	if (!has_cpu(names))
		return false;
	snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/cpu", root);
	return any_is_low(mount, group, split_is_low);
}

bool quota_is_low(const char *root)
{
	char path[PATH], text[TEXT], *line, *rest = NULL;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (!file_read(path, text, sizeof(text)))
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (line_is_low(root, line))
			return true;
	return false;
}
