/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who lives: children in each state between birth and having been waited for.
 */
#include "base/process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUCH (256ul << 20)
#define TIMES 5

static struct base_process child_of(pid_t pid)
{
	return (struct base_process){ (uint32_t)pid, base_process_self().space };
}

static void *sleeper(void *arg)
{
	write(*(int *)arg, "u", 1);
	for (;;)
		pause();
	return NULL;
}

/* A child with a second thread and much memory, which does @then when both are there */
static pid_t child_start(void (*then)(void))
{
	pthread_t thread;
	int up[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(up), 0);
	pid = fork();
	if (!pid) {
		mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		     -1, 0);
		pthread_create(&thread, NULL, sleeper, &up[1]);
		then();
	}
	cr_assert_eq(read(up[0], &c, 1), 1);
	close(up[0]);
	close(up[1]);
	return pid;
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void thread_end(void)
{
	syscall(SYS_exit, 0);
}

static void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(process, lives_until_it_ends)
{
	uint64_t before = base_process_clock();
	pid_t pid;

	cr_expect(base_process_lives(base_process_self(), 0));
	usleep(50000);
	pid = child_start(sleep_on);
	cr_expect(base_process_lives(child_of(pid), 0));
	cr_expect(base_process_lives(child_of(pid), base_process_clock()));
	cr_expect_not(base_process_lives(child_of(pid), before), "it is younger than that");
	child_end(pid);
	cr_expect_not(base_process_lives(child_of(pid), 0));
}

/* The first thread is a zombie, and so is the process to a careless look */
Test(process, lives_without_its_first_thread)
{
	pid_t pid = child_start(thread_end);

	usleep(50000);
	cr_expect(base_process_lives(child_of(pid), 0));
	child_end(pid);
}

/* Until its parent or its debugger has waited for it, its file has the signal that stopped it */
Test(process, lives_while_it_is_stopped)
{
	pid_t pid = child_start(sleep_on);
	siginfo_t info;

	cr_expect_not(base_process_is_stopped(child_of(pid)));
	kill(pid, SIGSTOP);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	cr_expect(base_process_lives(child_of(pid), 0));
	cr_expect(base_process_is_stopped(child_of(pid)));
	kill(pid, SIGCONT);
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	cr_expect(base_process_lives(child_of(pid), 0));
	cr_expect(base_process_is_stopped(child_of(pid)));
	child_end(pid);
	cr_expect_not(base_process_lives(child_of(pid), 0));
	cr_expect_not(base_process_is_stopped(child_of(pid)));
}

/* Its memory takes a while to go, in which it does nothing any more */
Test(process, who_was_killed_lives_no_more, .timeout = 120)
{
	int sooner = 0;

	for (int i = 0; i < TIMES; i++) {
		pid_t pid = child_start(sleep_on);
		siginfo_t ended = { .si_pid = 0 };

		kill(pid, SIGKILL);
		while (base_process_lives(child_of(pid), 0))
			;
		waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT);
		sooner += !ended.si_pid;
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
	}
	cr_expect_geq(sooner, TIMES - 1);
}

#define WAITS 500

static uint32_t waited_for; /* atomic */

/* Waits for one zombie after the other, at once when it is told of it */
static void *waiter(void *arg)
{
	for (;;) {
		pid_t pid = (pid_t)__atomic_load_n(&waited_for, __ATOMIC_ACQUIRE);
		int spins = rand() % 5000;

		if (pid < 0)
			return NULL;
		if (!pid)
			continue;
		for (volatile int i = 0; i < spins; i++)
			;
		cr_assert_eq(waitpid(pid, NULL, 0), pid);
		__atomic_store_n(&waited_for, 0, __ATOMIC_RELEASE);
	}
}

/* Somebody waits for it while it is looked at */
Test(process, a_zombie_that_goes_is_dead, .timeout = 120)
{
	siginfo_t ended;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, waiter, NULL), 0);
	for (int i = 0; i < WAITS; i++) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		cr_assert_eq(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
		__atomic_store_n(&waited_for, (uint32_t)pid, __ATOMIC_RELEASE);
		while (__atomic_load_n(&waited_for, __ATOMIC_ACQUIRE))
			cr_assert_not(base_process_lives(child_of(pid), 0));
	}
	__atomic_store_n(&waited_for, (uint32_t)-1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

/* The next child of this namespace has the number @pid */
static void number_next(pid_t pid)
{
	FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");

	if (!last || fprintf(last, "%d", pid - 1) < 0 || fclose(last))
		_exit(2);
}

/* The first process of a namespace, which has its parent's /proc: there @pid is another one's */
static int first_main(pid_t pid)
{
	pid_t child;
	bool well;

	number_next(pid);
	child = fork();
	if (!child)
		sleep_on();
	well = child == pid && base_process_lives(child_of(child), 0);
	kill(child, SIGKILL);
	well &= waitpid(child, NULL, 0) == child && !base_process_lives(child_of(child), 0);
	return !well;
}

#define NO_NAMESPACE 77

/* In a process of its own: who has left its namespace cannot fork when the first there is dead */
static int leaver_main(void)
{
	pid_t zombie = fork(), first;
	siginfo_t ended;
	int status;
	bool well;

	if (!zombie)
		_exit(0);
	if (zombie < 0 || waitid(P_PID, (id_t)zombie, &ended, WEXITED | WNOWAIT))
		return 1;
	if (unshare(CLONE_NEWPID))
		return errno == EPERM ? NO_NAMESPACE : 1;
	first = fork();
	if (!first)
		_exit(first_main(zombie));
	well = base_process_is_elsewhere((uint32_t)first) &&
	       !base_process_is_elsewhere((uint32_t)getpid());
	return waitpid(first, &status, 0) != first || status || !well;
}

/* A living one whose number is a dead one's in /proc */
Test(process, lives_by_its_own_namespace, .timeout = 120)
{
	pid_t leaver = fork();
	int status;

	if (!leaver)
		_exit(leaver_main());
	cr_assert_eq(waitpid(leaver, &status, 0), leaver);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		cr_skip("no PID namespace is to be had");
	cr_expect_eq(WEXITSTATUS(status), 0);
}
