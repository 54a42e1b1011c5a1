/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Helper processes.
 *
 * Forked twice, by a clone() without a signal first, so that the program has no child more than
 * it made. A child of vfork() may make one too: the copy is of the memory that it is a guest in.
 */
#include "preload/process/helper_process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/point.h"
#include "preload/guard/call.h"
#include "preload/sock/others.h"
#include "preload/sock/wakeup.h"
#include "preload/table/libc.h"

static int middle(void (*run)(void *ctx), void *ctx)
{
	long pid;

	syscall(SYS_setsid);
	BASE_POINT(preload_helper_process_middle);
	pid = libc._Fork();
	if (!pid)
		run(ctx);
	return pid < 0;
}

static int fork_twice(void (*run)(void *ctx), void *ctx)
{
	long pid = BASE_FAILS(process) ? -1 : syscall(SYS_clone, 0, 0, 0, 0, 0);
	int status = 0;

	if (!pid)
		syscall(SYS_exit_group, middle(run, ctx));
	if (pid < 0)
		return -EAGAIN;
	while (syscall(SYS_wait4, pid, &status, __WCLONE, NULL) < 0 && errno == EINTR)
		;
	return status ? -EAGAIN : 0;
}

int helper_process_create(void (*run)(void *ctx), void *ctx)
{
	sigset_t all, mask;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = fork_twice(run, ctx);
	BASE_POINT(preload_helper_process_made);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return err;
}

static void signals_reset(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < _NSIG; sig++)
		libc.sigaction(sig, &action, NULL);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	/* Those that wait for the call's end are the program's */
	if (call_self)
		call_self->noted = 0;
}

void helper_process_init(const char *name)
{
	BASE_POINT(preload_helper_process_begun);
	signals_reset();
	wakeup_forget();
	others_after_fork();
	__atomic_store_n(&base_log_fd, -1, __ATOMIC_RELAXED);
	prctl(PR_SET_NAME, name);
	if (chdir("/"))
		base_debug("%s: / cannot be entered", name);
}

void helper_process_close_others(int (*next)(void *ctx, int from), void *ctx)
{
	int from = 0, stays;

	while ((stays = next(ctx, from)) >= 0) {
		if (stays > from)
			syscall(SYS_close_range, from, stays - 1, 0);
		from = stays + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}
