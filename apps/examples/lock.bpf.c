/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-lock's programs: the lock's code, beside the lock.
 */
#include <warp/active_bpf.h>

#include "lock_code.h"
#include "place_memory.h"

/* 1: the lock is the caller's, 0: it waits. Output: its node */
long enter(const struct lock_args *args, unsigned long len)
{
	unsigned long node = 0;
	long ret = lock_enter(0, args, &node);

	/* most locks are held for a short time */
	if (!ret) {
		const struct lock_args look = { args->lock, args->size, node, args->turns };

		ret = lock_look(0, &look);
	}
	warp_output(&node, sizeof(node));
	return ret;
}

long look(const struct lock_args *args, unsigned long len)
{
	return lock_look(0, args);
}

long give_up(const struct lock_args *args, unsigned long len)
{
	return lock_give_up(0, args);
}

long leave(const struct lock_args *args, unsigned long len)
{
	return lock_leave(0, args);
}
