/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What signals and stdio do otherwise on a DDP socket than on one of TCP (docs/limits.md). To be
 * run under the launcher.
 */
#include "tests/e2e/programs/calls.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <wchar.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

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

static long by_read(int fd)
{
	char c;

	return read(fd, &c, 1);
}

static long by_poll(int fd)
{
	return ready(fd, POLLIN, -1);
}

static long by_epoll(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(0);

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) ? -1 : epoll_wait(ep, &e, 1, -1);
}

/* A call that a signal comes to, and later an octet */
static long call_with_signal(int fd[2], long (*call)(int fd))
{
	pthread_t thread;
	long n;

	main_thread = pthread_self();
	talk_fd = fd[1];
	pthread_create(&thread, NULL, signal_and_talk, &main_thread);
	n = call(fd[0]);
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
	need(call_with_signal(fd, by_read) == 1 && signals == 1);
	need(call_with_signal(fd, by_poll) <= 0 && signals == 2);
	need(by_read(fd[0]) == 1);
	need(call_with_signal(fd, by_epoll) < 0 && signals == 3);
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
	need(call_with_signal(fd, by_read) == 1 && signals == 1);
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

/* --- a kernel, or a filter of system calls, without epoll_pwait2() --- */

static bool epoll_pwait2_refuse(unsigned int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static bool old_kernel(unsigned int err)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	pthread_t thread;
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e) && epoll_pwait2_refuse(err));
	need(epoll_wait(ep, &e, 1, 10) == 0);
	signal(SIGUSR1, on_signal);
	signals = 0;
	main_thread = pthread_self();
	talk_fd = fd[1];
	need(!pthread_create(&thread, NULL, signal_and_talk, &main_thread));
	need(epoll_wait(ep, &e, 1, -1) < 0 && errno == EINTR && signals == 1);
	need(epoll_wait(ep, &e, 1, -1) == 1 && read(fd[0], &c, 1) == 1 && c == 'x');
	need(!pthread_join(thread, NULL));
	return true;
}

static bool old_kernels(void)
{
	static const unsigned int errs[] = { ENOSYS, EPERM };
	int status;

	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (!pid)
			exit(old_kernel(errs[i]) ? 0 : 1);
		need(waitpid(pid, &status, 0) == pid && !status);
	}
	return true;
}

/* --- several signals in one call --- */

#define HIGHER 50

static volatile sig_atomic_t runs;
static bool other_blocked, other_pending;

static void look_at_other(int sig)
{
	sigset_t set;

	if (sig != HIGHER || runs++)
		return;
	sigprocmask(SIG_BLOCK, NULL, &set);
	other_blocked = sigismember(&set, SIGUSR1);
	sigpending(&set);
	other_pending = sigismember(&set, SIGUSR1);
}

static void *send_two(void *arg)
{
	struct timespec ts = { .tv_nsec = 50000000 };

	nanosleep(&ts, NULL);
	return pthread_kill(main_thread, SIGUSR1) || pthread_kill(main_thread, HIGHER) ? arg : NULL;
}

/* Linux has both handlers' frames on the stack, and neither signal is pending or blocked */
static bool others_of_a_call(void)
{
	struct sigaction action = { .sa_handler = look_at_other, .sa_flags = SA_NODEFER };
	struct timespec limit = { .tv_nsec = 300000000 };
	struct pollfd p = { .events = POLLIN };
	pthread_t thread;
	sigset_t both;
	int fd[2];

	need(pair(fd));
	p.fd = fd[0];
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, HIGHER);
	main_thread = pthread_self();
	need(!sigaction(SIGUSR1, &action, NULL) && !sigaction(HIGHER, &action, NULL));
	pthread_sigmask(SIG_BLOCK, &both, NULL);
	need(!pthread_create(&thread, NULL, send_two, fd));
	pthread_sigmask(SIG_UNBLOCK, &both, NULL);
	need(ppoll(&p, 1, &limit, &both) == 0 && runs == 1);
	need(!pthread_join(thread, NULL) && other_blocked && other_pending);
	done(fd);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "a handler by a system call of its own does not interrupt read()",
		  handler_of_system_call },
#ifdef __x86_64__
		{ "registers in a handler's context do not count", context_registers },
#endif
		{ "a FILE is no wide one", wide },
		{ "a handler blocks the others of its call", others_of_a_call },
		{ "without epoll_pwait2", old_kernels },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
