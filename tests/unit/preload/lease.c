/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Leases of processors: taken, given back, past, in another process, and in a page into which
 * somebody has written what he likes.
 */
#include "preload/guard/lease.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define US BASE_NS_PER_US
#define T0 BASE_NS_PER_S
#define BYTES ((size_t)LEASE_SLOTS * 64)

static char dir[64], path[96];

static void folder_make(void)
{
	snprintf(dir, sizeof(dir), "/dev/shm/warpsock-test-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/leases", dir);
	lease_init(path, 4);
}

static void folder_remove(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(lease, .init = folder_make, .fini = folder_remove);

static uint64_t *page_map(void)
{
	int fd = open(path, O_RDWR);
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	cr_assert(p != MAP_FAILED);
	close(fd);
	return p;
}

Test(lease, a_slot_is_one_spinners)
{
	cr_expect(lease_take(3, T0, T0 + 50 * US));
	cr_expect_not(lease_take(3, T0 + 10 * US, T0 + 60 * US), "taken");
	cr_expect(lease_take(4, T0, T0 + 50 * US), "another processor");
	lease_give(3, T0 + 50 * US);
	cr_expect(lease_take(3, T0 + 20 * US, T0 + 70 * US), "given back");
}

Test(lease, a_lease_that_is_past_is_free)
{
	cr_expect(lease_take(3, T0, T0 + 50 * US));
	cr_expect_not(lease_take(3, T0 + 49 * US, T0 + 99 * US));
	cr_expect(lease_take(3, T0 + 50 * US, T0 + 100 * US));
	lease_give(3, T0 + 50 * US);
	cr_expect_not(lease_take(3, T0 + 60 * US, T0 + 110 * US), "who was late gives nothing "
								  "back");
}

Test(lease, of_another_process)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		lease_init(path, 4);
		_exit(!lease_take(1, T0, T0 + 50 * US));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_expect_not(lease_take(1, T0 + US, T0 + 51 * US));
	cr_expect(lease_take(1, T0 + 50 * US, T0 + 51 * US), "whoever has died meanwhile");
}

Test(lease, what_others_write)
{
	uint64_t *page = page_map();

	memset(page, 0xff, BYTES);
	cr_expect(lease_take(1, T0, T0 + 50 * US), "too far ahead to be one");
	page[2 * 8] = T0 + LEASE_MAX + 1;
	cr_expect(lease_take(2, T0, T0 + 50 * US));
	page[2 * 8] = T0 + LEASE_MAX;
	cr_expect_not(lease_take(2, T0, T0 + 50 * US));
	cr_expect_not(lease_is_busy(3, T0));
	for (int i = 0; i < 100; i++) {
		memset(page, i * 37, BYTES);
		lease_busy(3, T0);
		cr_expect(lease_is_busy(3, T0 + US), "%d", i);
		cr_expect_not(lease_is_busy(3, T0 + BASE_NS_PER_S), "%d", i);
	}
	munmap(page, BYTES);
}

Test(lease, there_is_no_slot_beyond_the_last)
{
	cr_expect(lease_take(LEASE_SLOTS - 2, T0, T0 + US));
	cr_expect_not(lease_take(LEASE_SLOTS - 1, T0, T0 + US));
	lease_give(LEASE_SLOTS - 1, T0 + US);
	lease_busy(LEASE_SLOTS - 1, T0);
	cr_expect_not(lease_is_busy(LEASE_SLOTS - 1, T0));
	cr_expect_not(lease_takes_last(0, T0));
}

/* Of four processors */
Test(lease, where_others_want_one_the_last_that_is_free_is_theirs)
{
	uint64_t now = T0;

	for (int i = 0; i < 2; i++) {
		now += 10 * BASE_NS_PER_MS;
		for (unsigned int cpu = 0; cpu < 3; cpu++)
			cr_assert(lease_take(cpu, now, now + BASE_NS_PER_MS));
		cr_expect_not(lease_takes_last(3, now), "%d: nobody else wants one for long", i);
		lease_busy(1, now);
	}
	cr_expect(lease_takes_last(3, now));
	lease_give(2, now + BASE_NS_PER_MS);
	cr_expect_not(lease_takes_last(3, now), "2 is free");
	lease_busy(2, now);
	cr_expect(lease_takes_last(3, now));
	cr_expect_not(lease_takes_last(0, now), "3 is free");
	cr_expect_not(lease_takes_last(3, now + BASE_NS_PER_MS), "the lease of 0 is past");
}

/* 10 ms, then four times that each time, to 640 ms; after a time of quiet 10 ms again */
Test(lease, a_busy_processor_is_left_alone_for_longer_and_longer)
{
	static const unsigned int ms[] = { 10, 40, 160, 640, 640 };
	uint64_t now = T0;

	for (size_t i = 0; i < sizeof(ms) / sizeof(*ms); i++) {
		lease_busy(5, now);
		cr_expect(lease_is_busy(5, now + ms[i] * BASE_NS_PER_MS - 1), "%zu", i);
		cr_expect_not(lease_is_busy(5, now + ms[i] * BASE_NS_PER_MS), "%zu", i);
		cr_expect_not(lease_is_busy(6, now));
		now += ms[i] * BASE_NS_PER_MS + BASE_NS_PER_MS;
	}
	now += BASE_NS_PER_S;
	lease_busy(5, now);
	cr_expect_not(lease_is_busy(5, now + 10 * BASE_NS_PER_MS));
}

/* A moment's work is none that runs on, however often it comes */
Test(lease, who_wants_it_for_a_moment_is_left_alone_as_long_each_time)
{
	uint64_t now = T0;

	for (int i = 0; i < 10; i++) {
		lease_busy_briefly(5, now);
		cr_expect(lease_is_busy(5, now + 10 * BASE_NS_PER_MS - 1), "%d", i);
		cr_expect_not(lease_is_busy(5, now + 10 * BASE_NS_PER_MS), "%d", i);
		cr_expect_not(lease_takes_last(0, now));
		now += 11 * BASE_NS_PER_MS;
	}
}

/* Is the page that of the file? */
static bool is_shared(void)
{
	int fd = open(path, O_RDONLY);
	uint64_t lease = 0;

	lease_take(7, T0, T0 + 7 * US);
	cr_assert_eq(pread(fd, &lease, sizeof(lease), 7 * 64), (ssize_t)sizeof(lease));
	close(fd);
	lease_give(7, T0 + 7 * US);
	return lease == T0 + 7 * US;
}

/* A file that is not what it should be is left alone, and the process has a page of its own */
Test(lease, a_file_that_is_not_fit)
{
	cr_expect(is_shared());
	cr_assert_eq(chmod(path, 0644), 0);
	lease_init(path, 4);
	cr_expect_not(is_shared(), "open to others");
	cr_assert_eq(chmod(path, 0600), 0);
	cr_assert_eq(truncate(path, BYTES + 1), 0);
	lease_init(path, 4);
	cr_expect_not(is_shared(), "too long");
	cr_assert_eq(truncate(path, BYTES - 4096), 0);
	lease_init(path, 4);
	cr_expect_not(is_shared(), "too short");
	cr_expect(lease_take(1, T0, T0 + US));
	cr_assert_eq(truncate(path, BYTES), 0);
	lease_init(path, 4);
	cr_expect(is_shared());
}

Test(lease, without_a_file)
{
	lease_init(NULL, 4);
	cr_expect(lease_take(1, T0, T0 + 50 * US));
	cr_expect_not(lease_take(1, T0, T0 + 50 * US));
	lease_init("/proc/no/such/folder", 4);
	cr_expect(lease_take(1, T0, T0 + 50 * US));
}
