/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What signals and stdio do otherwise on a DDP socket than on one of TCP (docs/limits.md). To be
 * run under the launcher.
 */
#include "tests/e2e/programs/calls.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <wchar.h>

static pthread_t main_thread;
static int talk_fd;

static void *signal_and_talk(void *arg)
{
	struct timespec ts = { .tv_nsec = 50000000 };

	nanosleep(&ts, NULL);
	pthread_kill(main_thread, SIGUSR1);
	nanosleep(&ts, NULL);
	return write(talk_fd, "x", 1) == 1 ? NULL : arg;
}

/* A read that a signal comes to, and later an octet */
static long read_with_signal(int fd[2])
{
	pthread_t thread;
	char c = 0;
	long n;

	main_thread = pthread_self();
	talk_fd = fd[1];
	pthread_create(&thread, NULL, signal_and_talk, &main_thread);
	n = read(fd[0], &c, 1);
	pthread_join(thread, NULL);
	return n;
}

/* As a runtime does that makes its system calls itself; libc's way back is borrowed */
static bool handler_of_system_call(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action;
	int fd[2];

	need(pair(fd));
	signals = 0;
	signal(SIGUSR1, on_signal);
	need(!syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, _NSIG / 8));
	need(action.handler != on_signal);
	action.handler = on_signal;
	action.flags &= ~(unsigned long)(SA_RESTART | SA_SIGINFO);
	need(!syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, _NSIG / 8));
	need(read_with_signal(fd) == 1 && signals == 1);
	done(fd);
	return true;
}

#ifdef __x86_64__
static void spoil(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	uc->uc_mcontext.gregs[REG_RIP] = 0;
	signals++;
}

static bool context_registers(void)
{
	struct sigaction action = { .sa_sigaction = spoil, .sa_flags = SA_SIGINFO | SA_RESTART };
	int fd[2];

	need(pair(fd));
	signals = 0;
	need(!sigaction(SIGUSR1, &action, NULL));
	need(read_with_signal(fd) == 1 && signals == 1);
	signal(SIGUSR1, SIG_DFL);
	done(fd);
	return true;
}
#endif

static bool wide(void)
{
	int fd[2];
	FILE *file;

	need(pair(fd));
	file = fdopen(fd[0], "w");
	need(file && fwide(file, 1) < 0 && fputws(L"wide", file) < 0);
	need(fputs("narrow", file) >= 0 && !fclose(file));
	close(fd[1]);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "a handler by a system call of its own interrupts nothing",
		  handler_of_system_call },
#ifdef __x86_64__
		{ "registers in a handler's context do not count", context_registers },
#endif
		{ "a FILE is no wide one", wide },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
