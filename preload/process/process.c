/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of the process, or of its program.
 *
 * At the end the kernel would close the sockets without DISCONNECT, and with a reset where
 * input is unread. So every way out that runs code finishes first: exit() and return from main
 * by the last of exit()'s functions, quick_exit() by its list, _exit() and abort() by their names.
 * A guest (preload/table/fork_gen.c) has nothing to finish.
 */
#include "preload/process/process.h"

#include <stdbool.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "preload/guard/call.h"
#include "preload/guard/exiting.h"
#include "preload/process/linger_handoff.h"
#include "preload/rules/answerer.h"
#include "preload/rules/report.h"
#include "preload/sock/info.h"
#include "preload/sock/linger.h"
#include "preload/sock/sock.h"
#include "preload/sock/work_item.h"
#include "preload/sock/worker.h"
#include "preload/table/fork_gen.h"
#include "stream/place.h"

static bool any_ended; /* atomic: streams have, then */

/*
 * The number stays the program's, for another thread that is still at work would use it; only a
 * program that is executed does not get it
 */
static void end_one(int fd, struct fdent *ent, void *ctx)
{
	if (!sock_stream_of_entry(ent) || sock_of_entry(ent)->executed)
		return;
	base_fd_set_cloexec(fd, true);
	__atomic_store_n(&any_ended, true, __ATOMIC_RELEASE);
	ent->ops->end(ent);
}

/* What goes at once needs no other process */
#define SOON (20 * BASE_NS_PER_MS)

static void closed_finish(bool program_follows)
{
	unsigned int left;

	if (program_follows &&
	    (!worker_finish(base_deadline(base_now(), base_min(SOON, sock_config.linger))) ||
	     linger_handoff_make()))
		return;
	left = worker_finish(base_deadline(base_now(), sock_config.linger));
	if (left)
		work_list_expired(left);
}

/*
 * Not behind exiting_claim(), which halts the program's threads: one that ends may be in libc's
 * lock of stacks, where the program's malloc makes calls, and to join a thread takes that lock
 */
static bool claim(void)
{
	if (!__atomic_load_n(&exiting_begun, __ATOMIC_ACQUIRE)) {
		answerer_stop();
		worker_join();
	}
	return exiting_claim();
}

static void all_end(bool program_follows)
{
	if (!program_follows)
		stream_spare_allow(false);
	linger_never(true);
	fdtab_each(end_one, NULL);
	linger_never(false);
	closed_finish(program_follows);
	/* What is left to another process keeps its names */
	if (program_follows)
		stream_spare_allow(false);
	sock_report_all();
	if (!program_follows)
		worker_retire();
	report_end(!program_follows);
}

static void finish(bool program_follows)
{
	struct call *e;
	long r = 0;

	if (fork_gen_is_guest())
		return;
	e = call_enter(false);
	if (claim()) {
		all_end(program_follows);
		if (!program_follows)
			exiting_done();
	}
	call_leave(e, &r);
}

void process_finish(void)
{
	finish(false);
}

void process_replace(void)
{
	finish(true);
}

void process_resume(void)
{
	if (!exiting_revoke())
		return;
	stream_spare_allow(true);
	answerer_resume();
	if (__atomic_exchange_n(&any_ended, false, __ATOMIC_ACQ_REL))
		base_err("the program could not be executed after its predecessor's streams had "
			 "ended");
	report_reset();
}
