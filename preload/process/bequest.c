/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process apart that finishes what lingers (preload/sock/attend.c) when this one's program is
 * replaced by another, which is not to wait for it.
 */
#include "preload/process/bequest.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/point.h"
#include "preload/guard/sandbox.h"
#include "preload/process/apart.h"
#include "preload/sock/attend.h"

static void bequeathed(void *ctx)
{
	apart_init("warpsock-linger");
	attend_begin_apart();
	BASE_POINT(preload_attend_bequeathed);
	apart_close_others(attend_next, NULL);
	attend_finish(base_deadline(base_now(), sock_config.linger));
	syscall(SYS_exit_group, 0);
}

static int heir_create(void)
{
	return apart_create(bequeathed, NULL);
}

bool bequest_make(void)
{
	if (__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED))
		return false;
	return attend_give(heir_create);
}
