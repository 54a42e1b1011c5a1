/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What keeps a whole process from DDP: a sandbox that forbids what start-up needs, or a way to the
 * kernel that passes by us.
 */
#include "preload/guard/barred.h"

#include "preload/guard/sandbox.h"
#include "preload/guard/uring.h"

enum config_reason barred_reason(void)
{
	if (!sandbox_may_begin())
		return CONFIG_REASON_SANDBOXED;
	return uring_used() ? CONFIG_REASON_IO_URING : CONFIG_REASON_NONE;
}
