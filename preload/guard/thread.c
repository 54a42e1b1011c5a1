/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads of ours in a program that does not know of them.
 *
 * libc's setuid() and its kin wait for each thread that has been made and does not run yet. In a
 * child that the program makes by clone() it never would. So the caller goes on when the thread
 * runs, and no fork of a program of one thread can fall between.
 *
 * libc takes the thread-local memory of all libraries from the stack of each thread, which may be
 * more than all that a thread of ours needs, so it comes on top. Nobody but libc knows how much it
 * is; the function that tells it is the one that Rust and Java ask.
 *
 * libc ends a process with its last thread, and counts ours. Where the first thread has left by
 * pthread_exit(), the kernel is asked how many there are.
 */
#include "preload/guard/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/table/libc.h"

#define STARTED_POLL (20 * BASE_NS_PER_US)

__thread bool thread_is_ours;
void (*thread_first_ended)(void);
static bool first_ended;  /* atomic */
static unsigned int ours; /* atomic: threads that have not come back from run() */

struct start {
	void *(*run)(void *arg);
	bool runs; /* atomic */
};

static void *first(void *arg)
{
	struct start *start = arg;
	void *(*run)(void *arg) = start->run, *result;

	thread_is_ours = true;
	__atomic_add_fetch(&ours, 1, __ATOMIC_RELAXED);
	/* The last look at what is the caller's */
	__atomic_store_n(&start->runs, true, __ATOMIC_RELEASE);
	result = run(NULL);
	__atomic_sub_fetch(&ours, 1, __ATOMIC_RELAXED);
	return result;
}

static size_t (*least_stack)(const pthread_attr_t *attr); /* thread-local memory is part of it */

void thread_init(void)
{
	libc_find("__pthread_get_minstack", &least_stack);
}

int thread_stack_set(pthread_attr_t *attr, size_t need)
{
	return pthread_attr_setstacksize(attr, need + (least_stack ? least_stack(attr) : 0));
}

int thread_begin(pthread_t *id, size_t stack, void *(*run)(void *arg))
{
	struct start start = { .run = run };
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	thread_stack_set(&attr, stack);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = BASE_FAILS(thread) ? EAGAIN : pthread_create(id, &attr, first, &start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	while (!err && !__atomic_load_n(&start.runs, __ATOMIC_ACQUIRE))
		base_poll(NULL, 0, base_deadline(base_now(), STARTED_POLL));
	return -err;
}

/* --- when the first thread has ended --- */

void thread_first_ends(void)
{
	__atomic_store_n(&first_ended, true, __ATOMIC_RELEASE);
	if (thread_first_ended)
		thread_first_ended();
}

bool thread_first_has_ended(void)
{
	return __atomic_load_n(&first_ended, __ATOMIC_ACQUIRE);
}

/* num_threads: so many words behind the name in parentheses. 0: not known */
#define COUNT_WORD 18

static unsigned int count_of(const char *stat)
{
	const char *at = strrchr(stat, ')');

	for (int i = 0; at && i < COUNT_WORD; i++)
		at = strchr(at + 1, ' ');
	return at ? (unsigned int)strtoul(at, NULL, 10) : 0;
}

static unsigned int count(void)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char stat[1024];
	long n;

	if (fd < 0)
		return 0;
	n = syscall(SYS_read, fd, stat, sizeof(stat) - 1);
	base_fd_close(fd);
	stat[n > 0 ? n : 0] = '\0';
	return count_of(stat);
}

/* The first one is counted until the process ends */
bool thread_is_only_ours(void)
{
	return thread_first_has_ended() && count() <= __atomic_load_n(&ours, __ATOMIC_RELAXED) + 1;
}

void thread_after_fork(void)
{
	__atomic_store_n(&first_ended, false, __ATOMIC_RELAXED);
	__atomic_store_n(&ours, 0, __ATOMIC_RELAXED);
}
