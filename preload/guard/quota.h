/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_QUOTA_H
#define PRELOAD_QUOTA_H

#include <stdbool.h>

/*
 * May the process use less than two processors' time, by the quota of its cgroup or of one above
 * it? Reads /proc/self/cgroup and /sys/fs/cgroup below @root, which is "" for the host's own.
 */
bool quota_is_low(const char *root);

#endif
