/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of the process: beginning and end.
 *
 * At the end the kernel would close the sockets without DISCONNECT, and with a reset where
 * input is unread. So every way out that runs code finishes first: exit() and return from main
 * by our destructor, quick_exit() by its list, _exit() and abort() by their names. A guest
 * (preload/table/life.c) has nothing to finish.
 */
#include "preload/process/process.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/calls/files.h"
#include "preload/calls/fork.h"
#include "preload/guard/edge.h"
#include "preload/guard/nap.h"
#include "preload/guard/over.h"
#include "preload/process/environment.h"
#include "preload/process/inherit.h"
#include "preload/rules/choose.h"
#include "preload/rules/probe.h"
#include "preload/rules/report.h"
#include "preload/sock/attend.h"
#include "preload/sock/linger.h"
#include "preload/sock/sock.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/table/life.h"

static bool any_ended; /* atomic: streams have, then */

/*
 * The number stays the program's, for another thread that is still at work would use it; only a
 * program that is executed does not get it
 */
static void end_one(int fd, struct fdent *ent, void *ctx)
{
	if (!sock_stream_of_entry(ent) || sock_of_entry(ent)->heir)
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
	    (!attend_finish(base_deadline(base_now(), base_min(SOON, sock_config.linger))) ||
	     attend_bequeath()))
		return;
	left = attend_finish(base_deadline(base_now(), sock_config.linger));
	if (left)
		attend_expired(left);
}

static void finish(bool program_follows)
{
	struct edge *e;
	long r = 0;

	if (life_is_guest() || !over_claim())
		return;
	e = edge_enter(false);
	linger_never(true);
	fdtab_each(end_one, NULL);
	linger_never(false);
	closed_finish(program_follows);
	sock_report_all();
	if (!program_follows)
		attend_retire();
	if (sock_config.report[0])
		report_write(sock_config.report);
	edge_leave(e, &r);
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
	if (!over_revoke())
		return;
	if (__atomic_exchange_n(&any_ended, false, __ATOMIC_ACQ_REL))
		base_err("the program could not be executed after its predecessor's streams had "
			 "ended");
	report_reset();
}

_Noreturn void call__exit(int status)
{
	if (!life_is_guest())
		edge_enter(false);
	process_finish();
	libc._exit(status);
	__builtin_unreachable();
}

/*
 * A handler may leave by longjmp() and go on, so it comes before the streams end; when it returns,
 * the process ends without asking it again.
 */
_Noreturn void call_abort(void)
{
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGABRT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (!libc.sigaction(SIGABRT, NULL, &action) && action.sa_handler != SIG_DFL)
		raise(SIGABRT);
	process_finish();
	action = (struct sigaction){ .sa_handler = SIG_DFL };
	libc.sigaction(SIGABRT, &action, NULL);
	libc.abort();
	__builtin_unreachable();
}

/*
 * Our part is in the destructor. Until then it is libc's; but a second thread would find nothing
 * left to do, and end the process while the first one finishes.
 */
_Noreturn void call_exit(int status)
{
	over_halt();
	libc.exit(status);
	__builtin_unreachable();
}

_Noreturn void call__Exit(int status)
{
	call__exit(status);
}

__attribute__((constructor)) static void begin(void)
{
	libc_init();
	fork_init();
	edge_init();
	base_fd_keeper(internal_move, internal_forget);
	environment_init();
	config_load(&sock_config);
	nap_init(sock_config.spin);
	choose_init();
	probe_init();
	if (choose_may(CONFIG_CLIENT) || choose_may(CONFIG_SERVER))
		files_init();
	inherit_sockets();
	at_quick_exit(process_finish);
}

__attribute__((destructor)) static void end(void)
{
	files_flush(); /* libc does it after us */
	process_finish();
}
