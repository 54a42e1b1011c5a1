/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random octets: all of them are written, none beyond, and a child's differ from its parent's.
 */
#include "base/rand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* 40 tries leave an octet 0 each time with a chance of 256^-40. */
Test(rand, fills_each_octet_and_no_other)
{
	uint8_t buf[300], seen[300] = { 0 };

	for (int try = 0; try < 40; try++) {
		memset(buf, 0, sizeof(buf));
		cr_assert_eq(base_rand_fill(buf, sizeof(buf) - 1), 0);
		for (size_t i = 0; i < sizeof(buf); i++)
			seen[i] |= buf[i];
	}
	for (size_t i = 0; i < sizeof(buf) - 1; i++)
		cr_expect_neq(seen[i], 0, "octet %zu", i);
	cr_assert_eq(seen[sizeof(buf) - 1], 0);
}

static void signal_ignore(int signo)
{
}

/* Is each page of 4 KiB begun with something else than 16 zeroes? */
static bool pages_filled(const uint8_t *p, size_t n)
{
	static const uint8_t zeroes[16];

	for (size_t at = 0; at < n; at += 4096)
		if (!memcmp(p + at, zeroes, sizeof(zeroes)))
			return false;
	return true;
}

/* Signals cut a long system call short; 16 MiB take much longer than a signal's interval. */
Test(rand, fills_on_after_signals)
{
	struct sigaction action = { .sa_handler = signal_ignore };
	struct itimerval every = { { 0, 500 }, { 0, 500 } };
	size_t n = (size_t)16 << 20;
	uint8_t *p = calloc(1, n);

	cr_assert_not_null(p);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	cr_expect_eq(base_rand_fill(p, n), 0);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	cr_expect(pages_filled(p, n));
	free(p);
}

Test(rand, nothing_asked_nothing_done)
{
	cr_assert_eq(base_rand_fill(NULL, 0), 0);
}

Test(rand, tells_of_an_error)
{
	cr_assert_eq(base_rand_fill((void *)1, 8), -EFAULT);
}

Test(rand, words_differ)
{
	uint64_t a = 0, b = 0;
	uint32_t c[4] = { 0 };

	cr_assert_eq(base_rand_u64(&a), 0);
	cr_assert_eq(base_rand_u64(&b), 0);
	cr_assert_neq(a, b);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(base_rand_u32(&c[i]), 0);
	cr_assert(c[0] != c[1] || c[1] != c[2] || c[2] != c[3]);
}

Test(rand, child_differs_from_parent)
{
	uint64_t mine = 0, theirs = 0;
	int fds[2], status = -1;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		if (base_rand_u64(&mine) || write(fds[1], &mine, sizeof(mine)) != sizeof(mine))
			_exit(1);
		_exit(0);
	}
	cr_assert_eq(base_rand_u64(&mine), 0);
	cr_assert_eq(read(fds[0], &theirs, sizeof(theirs)), (ssize_t)sizeof(theirs));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_neq(mine, theirs);
}

enum { MANY = 100 };

static void many_take(uint32_t numbers[MANY])
{
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(base_rand_u32(&numbers[i]), 0);
}

/* Of 200 random ones two are alike once in 200,000 times; of those that two have, all are */
static unsigned int alike(const uint32_t a[MANY], const uint32_t b[MANY])
{
	unsigned int n = 0;

	for (int i = 0; i < MANY; i++)
		for (int k = 0; k < MANY; k++)
			n += a[i] == b[k];
	return n;
}

/* Some numbers are kept for later, and the child has its parent's memory; libc knows nothing */
Test(rand, a_child_that_nobody_announced_has_numbers_of_its_own)
{
	uint32_t mine[MANY], theirs[MANY];
	int fds[2], status = -1;
	long pid;

	cr_assert_eq(base_rand_u32(mine), 0);
	cr_assert_eq(pipe(fds), 0);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		many_take(theirs);
		_exit(write(fds[1], theirs, sizeof(theirs)) != sizeof(theirs));
	}
	many_take(mine);
	cr_assert_eq(read(fds[0], theirs, sizeof(theirs)), (ssize_t)sizeof(theirs));
	cr_assert_eq(waitpid((pid_t)pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_expect_leq(alike(mine, theirs), 1);
}

static void *taker(void *numbers)
{
	many_take(numbers);
	return NULL;
}

Test(rand, no_two_threads_have_the_same_number)
{
	static uint32_t numbers[4][MANY];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, taker, numbers[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			cr_expect_leq(alike(numbers[i], numbers[k]), 1);
}
