/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that end the process; and its beginning and end, which stand around all calls.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/fdutil.h"
#include "preload/calls/files.h"
#include "preload/calls/fork.h"
#include "preload/guard/edge.h"
#include "preload/guard/nap.h"
#include "preload/guard/over.h"
#include "preload/process/environment.h"
#include "preload/process/inherit.h"
#include "preload/process/process.h"
#include "preload/rules/choose.h"
#include "preload/rules/probe.h"
#include "preload/sock/sock.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/table/life.h"

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
