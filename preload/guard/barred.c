/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What keeps a whole process from DDP: a sandbox that forbids what start-up needs, or a way to the
 * kernel that passes by us.
 *
 * A filter that stood before the program began cannot be read. But what wakes a sleeping thread can
 * be asked for: where that is refused, as no want of descriptors or memory is, connections would
 * begin and then stand still.
 */
#include "preload/guard/barred.h"

#include <errno.h>
#include <stdbool.h>

#include "base/fdutil.h"
#include "preload/guard/sandbox.h"
#include "preload/guard/uring.h"

enum outside { UNKNOWN, FREE, CONFINED };

static enum outside outside_ask(void)
{
	int fd = -1, saved = errno, err = base_eventfd_create(&fd);

	base_fd_close(fd);
	errno = saved;
	return err == -EPERM || err == -EACCES || err == -ENOSYS ? CONFINED : FREE;
}

/* Once, before a filter of the program's own stands */
static bool is_confined_outside(void)
{
	static enum outside known; /* atomic */
	enum outside it = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (it == UNKNOWN && !__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED)) {
		it = outside_ask();
		__atomic_store_n(&known, it, __ATOMIC_RELAXED);
	}
	return it == CONFINED;
}

enum config_reason barred_reason(void)
{
	if (!sandbox_may_begin() || is_confined_outside())
		return CONFIG_REASON_SANDBOXED;
	return uring_used() ? CONFIG_REASON_IO_URING : CONFIG_REASON_NONE;
}
