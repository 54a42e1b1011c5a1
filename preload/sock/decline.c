/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of a device that were accepted for another process.
 *
 * A device's connection is its process's, and that a server accepts for a child, or for a worker,
 * shows only behind accept(). Beside the kernel's listener the peer is not answered before that: by
 * the first call that would move octets or wait for some, or soon by the worker thread. If a fork()
 * of the same thread comes first, an execution or a message, the peer is refused. It comes again by
 * TCP, so the program has its connection by software; of the first one it finds that its peer has
 * reset it.
 */
#include "preload/sock/decline.h"

#include "base/log.h"
#include "config/reason.h"
#include "preload/guard/sandbox.h"
#include "preload/rules/report.h"
#include "preload/sock/life.h"
#include "preload/sock/reset.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"

static bool declined; /* atomic */

bool sock_has_declined(void)
{
	return __atomic_load_n(&declined, __ATOMIC_ACQUIRE);
}

bool sock_decline(struct sock *s)
{
	if (!s->accepted || !sock_on_device(s) || __atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE) ||
	    stream_decline(s->stream))
		return false;
	base_info("descriptor %d is for another process: its peer comes again by TCP", s->fd);
	__atomic_store_n(&declined, true, __ATOMIC_RELEASE);
	worker_forget(s);
	/* It has been no connection, and is none */
	__atomic_store_n(&s->reported, true, __ATOMIC_RELAXED);
	sock_start_set(s, SOCK_START_SPOKEN);
	report_reason(CONFIG_REASON_FORKED, 1);
	reset_make(s->fd);
	sock_give_back(s, CONFIG_REASON_FORKED);
	return true;
}
