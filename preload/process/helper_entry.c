/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a program of our own begins: a relay, or what lingers of an executed program.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "preload/process/linger_handoff.h"
#include "preload/process/relay.h"

int warpsock_helper(int argc, char **argv) __attribute__((visibility("default")));

int warpsock_helper(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)argc - 1 : 0;
	struct relay_given *given;
	unsigned long long grace;
	int err;

	__atomic_store_n(&base_log_fd, -1, __ATOMIC_RELAXED);
	if (n && !strcmp(argv[0], LINGER_HANDOFF_NAME))
		return linger_handoff_continue(argv + 1);
	prctl(PR_SET_NAME, RELAY_NAME);
	err = base_map_create((n + 1) * sizeof(*given), (void **)&given);
	for (unsigned int i = 0; !err && i < n; i++) {
		if (sscanf(argv[i + 1], "%d,%d,%llu", &given[i].fd, &given[i].local, &grace) != 3)
			err = -EINVAL;
		given[i].grace = grace;
	}
	if (!err)
		err = relay_go_on(given, n);
	syscall(SYS_exit_group, -err);
	return 1;
}
