/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that end the process; and its beginning and end, which stand around all calls.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/calls/files.h"
#include "preload/calls/fork.h"
#include "preload/guard/call.h"
#include "preload/guard/exiting.h"
#include "preload/guard/lease.h"
#include "preload/guard/quota.h"
#include "preload/guard/spin.h"
#include "preload/process/environment.h"
#include "preload/process/helper_program.h"
#include "preload/process/inherit.h"
#include "preload/process/process.h"
#include "preload/rules/answerer.h"
#include "preload/rules/ask.h"
#include "preload/rules/choose.h"
#include "preload/rules/probe.h"
#include "preload/rules/report.h"
#include "preload/sock/provider.h"
#include "preload/sock/sock.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/wait/epoll.h"
#include "stream/place.h"

_Noreturn void call__exit(int status)
{
	if (!fork_gen_is_guest())
		call_enter(false);
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
 * Our part is in last(). Until then it is libc's; but a second thread would find nothing left to
 * do, and end the process while the first one finishes.
 */
_Noreturn void call_exit(int status)
{
	exiting_halt_for_good();
	libc.exit(status);
	__builtin_unreachable();
}

_Noreturn void call__Exit(int status)
{
	call__exit(status);
}

static void last(void *unused)
{
	files_flush(); /* libc does it after us */
	process_finish();
}

/*
 * exit() calls it behind the destructors of all libraries, for which sockets are to work and
 * threads to go on: a destructor would come first, since a preloaded library is initialised last.
 * libc registers its call of the destructors later, when the program begins. A function of no
 * library is not forgotten with one: so exit() finds the first, and a quick_exit() that another
 * thread calls meanwhile the second.
 */
int __cxa_atexit(void (*fn)(void *arg), void *arg, void *library);
int __cxa_at_quick_exit(void (*fn)(void *arg), void *library);

static void quick(void *unused)
{
	process_finish();
}

/* The folder is cleared when the first connection comes, and made now, if need be */
static bool folder_is_fit(struct stream_place place)
{
	int err = stream_place_prepare(place, false);

	return !err || (err == -ENOENT && !stream_place_prepare(place, true));
}

/*
 * A program of which no rule takes a socket spins, if at all, by a page of its own. The page's name
 * has the number of its layout
 */
static void spin_prepare(void)
{
	bool shared = choose_may(CONFIG_CLIENT) || choose_may(CONFIG_SERVER) ||
		      sock_config.tcp_spin;
	struct stream_place place = stream_place_of(sock_config.dir);
	char path[BASE_RUNFILE_PATH];

	if (!sock_config.spin)
		return;
	shared = shared && folder_is_fit(place) && !stream_place_file(path, place, "leases-1");
	lease_init(shared ? path : NULL, (unsigned int)get_nprocs());
	spin_init(sock_config.spin, quota_is_low(""));
	if (sock_config.spin_always)
		spin_force();
}

__attribute__((constructor)) static void begin(void)
{
	__cxa_atexit(last, NULL, NULL);
	__cxa_at_quick_exit(quick, NULL);
	libc_init();
	fork_init();
	call_init();
	epoll_init();
	base_fd_keeper(internal_move, internal_forget);
	environment_init();
	helper_program_init();
	base_log_init(); /* which may have run already, or not: mistakes of rules are logged here */
	config_load(&sock_config);
	report_init(&sock_config);
	choose_init();
	spin_prepare();
	probe_init();
	ask_init(sock_config.ask, sock_config.forget_plain);
	answerer_init(sock_config.ask);
	if (choose_may(CONFIG_CLIENT) || choose_may(CONFIG_SERVER))
		files_init();
	if (choose_may(CONFIG_CLIENT))
		ask_prepare();
	if (choose_may(CONFIG_SERVER))
		call_create(); /* so that the end of the first thread is noticed */
	inherit_sockets();
}

/* Libraries of devices end by destructors of their own, and what they have made must end before */
__attribute__((destructor)) static void end(void)
{
	if (provider_is_used())
		last(NULL);
}
