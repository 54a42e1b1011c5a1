/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks in shared memory, and what is left when an owner dies.
 */
#include "base/lock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"

struct shared {
	struct base_lock lock;
	int count;
};

static struct shared *shared_create(void)
{
	void *p;

	cr_assert_eq(base_map_create_shared(sizeof(struct shared), &p), 0);
	base_lock_init(&((struct shared *)p)->lock);
	return p;
}

static void count(struct shared *s, int n)
{
	while (n--) {
		base_lock_take(&s->lock, NULL, NULL);
		s->count++;
		base_lock_drop(&s->lock);
	}
}

Test(lock, excludes_other_processes)
{
	struct shared *s = shared_create();
	pid_t pid = fork();

	count(s, 50000);
	if (pid == 0)
		_exit(0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(s->count, 100000);
	base_map_destroy(s, sizeof(*s));
}

Test(lock, survives_its_owner, .timeout = 60)
{
	struct shared *s = shared_create();
	uint64_t begin;
	pid_t pid = fork();

	if (pid == 0) {
		base_lock_take(&s->lock, NULL, NULL);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	begin = base_now();
	cr_expect_eq(base_lock_take(&s->lock, NULL, NULL), -EOWNERDEAD);
	cr_expect_lt(base_now() - begin, BASE_LOCK_TIMEOUT / 2, "who is dead is not waited for");
	base_lock_drop(&s->lock);
	cr_expect_eq(base_lock_take(&s->lock, NULL, NULL), 0);
	base_lock_drop(&s->lock);
	base_map_destroy(s, sizeof(*s));
}

struct inside {
	struct base_lock *lock;
	pthread_barrier_t in;
	bool left; /* atomic */
};

static void *stay_inside(void *arg)
{
	struct inside *i = arg;

	base_lock_take(i->lock, NULL, NULL);
	pthread_barrier_wait(&i->in);
	usleep(20000);
	__atomic_store_n(&i->left, true, __ATOMIC_RELAXED);
	base_lock_drop(i->lock);
	return NULL;
}

Test(lock, who_passes_finds_nobody_of_this_process_inside)
{
	struct shared *s = shared_create();
	struct inside i = { .lock = &s->lock };
	pthread_t thread;

	base_lock_pass(&s->lock);
	pthread_barrier_init(&i.in, NULL, 2);
	cr_assert_eq(pthread_create(&thread, NULL, stay_inside, &i), 0);
	pthread_barrier_wait(&i.in);
	base_lock_pass(&s->lock);
	cr_expect(__atomic_load_n(&i.left, __ATOMIC_RELAXED));
	pthread_join(thread, NULL);
	base_map_destroy(s, sizeof(*s));
}

Test(lock, who_passes_does_not_wait_for_other_processes, .timeout = 60)
{
	struct shared *s = shared_create();
	uint64_t begin;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		base_lock_take(&s->lock, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	begin = base_now();
	base_lock_pass(&s->lock);
	cr_expect_lt(base_now() - begin, BASE_LOCK_TIMEOUT / 2);
	cr_expect_neq(s->lock.word, 0);
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	base_map_destroy(s, sizeof(*s));
}

#define STOPPED_MS 10500

/* The child holds the lock, and stands still for longer than a waiter's patience */
Test(lock, waits_for_an_owner_that_is_stopped, .timeout = 60)
{
	struct shared *s = shared_create();
	siginfo_t info;
	pid_t pid = fork(), waker;

	if (pid == 0) {
		base_lock_take(&s->lock, NULL, NULL);
		raise(SIGSTOP);
		base_lock_drop(&s->lock);
		_exit(0);
	}
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	waker = fork();
	if (waker == 0) {
		usleep(STOPPED_MS * 1000);
		_exit(kill(pid, SIGCONT));
	}
	cr_expect_eq(base_lock_take(&s->lock, NULL, NULL), 0);
	base_lock_drop(&s->lock);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_assert_eq(waitpid(waker, NULL, 0), waker);
	base_map_destroy(s, sizeof(*s));
}

Test(lock, private_memory_is_zeroed_and_not_shared)
{
	pid_t pid;
	char *p;

	cr_assert_eq(base_map_create(5000, (void **)&p), 0);
	for (int i = 0; i < 5000; i++)
		cr_assert_eq(p[i], 0);
	pid = fork();
	if (pid == 0) {
		p[0] = 1;
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(p[0], 0);
	base_map_destroy(p, 5000);
	base_map_destroy(NULL, 5000);
	errno = 0;
	cr_expect_eq(base_map_create(0, (void **)&p), -EINVAL);
	cr_expect_eq(errno, 0);
}
