/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of the runtime folder. What of a folder or a file is refused, tests of streams have
 * (tests/unit/stream/adopt.c).
 */
#include "base/runfile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

#define SIZE 65536

static char dir[64], path[96];

static void begin(void)
{
	strcpy(dir, "/dev/shm/warpsock-test-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
}

static void finish(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(runfile, .init = begin, .fini = finish);

Test(runfile, is_one_memory_for_all_who_open_it)
{
	char *a, *b;
	size_t size;

	errno = 0;
	cr_assert_eq(base_runfile_create(path, SIZE, SIZE, (void **)&a), 0);
	cr_assert_eq(base_runfile_create(path, SIZE, SIZE, (void **)&b), -EEXIST);
	cr_assert_eq(base_runfile_open(path, SIZE, (void **)&b, &size), 0);
	cr_expect_eq(errno, 0);
	cr_expect_eq(size, SIZE);
	cr_expect_neq(a, b);
	for (int i = 0; i < SIZE; i++)
		cr_assert_eq(a[i], 0);
	a[5000] = 1;
	cr_expect_eq(b[5000], 1);
	cr_assert_eq(base_runfile_remove(path), 0);
	cr_expect_eq(base_runfile_remove(path), -ENOENT);
	cr_expect_eq(base_runfile_open(path, SIZE, (void **)&b, &size), -ENOENT);
	b[5000] = 2;
	cr_expect_eq(a[5000], 2, "the memory stays");
	base_map_destroy(a, SIZE);
	base_map_destroy(b, SIZE);
}

Test(runfile, no_descriptor_stays_open)
{
	int before = dup(0), after;
	size_t size;
	void *p, *q;

	close(before);
	cr_assert_eq(base_rundir_prepare(dir, geteuid(), true), 0);
	cr_assert_eq(base_runfile_create(path, SIZE, SIZE, &p), 0);
	cr_assert_eq(base_runfile_open(path, SIZE, &q, &size), 0);
	cr_assert_eq(base_runfile_open(path, SIZE + 1, &q, &size), -EPROTO);
	after = dup(0);
	cr_expect_eq(before, after);
	close(after);
}

Test(runfile, folder_is_judged_once_for_a_user)
{
	cr_expect_eq(base_rundir_prepare("/proc", geteuid(), false), -EACCES);
	cr_expect_eq(base_rundir_prepare("/dev/shm/warpsock-no-such-folder", geteuid(), false),
		     -ENOENT);
	cr_expect_eq(base_rundir_prepare(dir, geteuid(), false), 0);
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_expect_eq(base_rundir_prepare(dir, geteuid(), false), 0, "it was good");
	base_rundir_forget();
	cr_expect_eq(base_rundir_prepare(dir, geteuid(), false), -EACCES);
	cr_assert_eq(chmod(dir, 0700), 0);
	cr_expect_eq(base_rundir_prepare(dir, geteuid(), false), 0);
	if (!geteuid()) {
		cr_assert_eq(seteuid(65534), 0);
		cr_expect_eq(base_rundir_prepare(dir, geteuid(), false), -EACCES);
		cr_assert_eq(seteuid(0), 0);
	}
}

/* The owner of the folder may put a link to another one in its place, and root is not led there */
Test(runfile, a_link_leads_nobody_to_files_of_others)
{
	enum { OTHER = 65534 };
	char own[96], file[128];
	void *p;

	if (geteuid())
		cr_skip_test("only root removes names of others");
	snprintf(own, sizeof(own), "%s/own", dir);
	snprintf(file, sizeof(file), "%s/file", own);
	cr_assert_eq(mkdir(own, 0700), 0);
	cr_assert_eq(chown(own, OTHER, OTHER), 0);
	cr_assert_eq(base_runfile_create(path, SIZE, SIZE, &p), 0);
	cr_assert_eq(base_runfile_create(file, SIZE, SIZE, &p), 0);
	cr_expect_eq(base_runfile_remove_of(file, OTHER), 0, "that is a name of its own");
	cr_assert_eq(rmdir(own), 0);
	cr_assert_eq(symlink(dir, own), 0);
	cr_expect_neq(base_runfile_remove_of(file, OTHER), 0);
	cr_expect_eq(access(path, F_OK), 0);
	cr_assert_eq(unlink(own), 0);
	/* Nor a folder of somebody's else */
	cr_expect_eq(base_runfile_remove_of(path, OTHER), -EPERM);
	cr_expect_eq(access(path, F_OK), 0);
}

/* To touch memory that there is not would be SIGBUS */
Test(runfile, a_full_folder_says_so)
{
	char *p;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, "size=80k,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	cr_assert_eq(base_runfile_create(path, SIZE, SIZE, (void **)&p), 0);
	cr_expect_eq(base_runfile_reserve(p, SIZE / 2), 0);
	memset(p, 1, SIZE / 2);
	snprintf(path, sizeof(path), "%s/other", dir);
	cr_assert_eq(base_runfile_create(path, SIZE, SIZE, (void **)&p), -ENOSPC, "not all of it");
	cr_expect_eq(access(path, F_OK), -1);
	cr_assert_eq(base_runfile_create(path, SIZE / 2, SIZE / 2, (void **)&p), 0);
	cr_expect_eq(base_runfile_reserve(p, SIZE / 2), 0);
	cr_expect_eq(base_runfile_reserve(p, SIZE / 2), 0, "it has it already");
	snprintf(path, sizeof(path), "%s/file", dir);
	cr_assert_eq(base_runfile_open(path, 0, (void **)&p, &(size_t){ 0 }), 0);
	cr_expect_eq(base_runfile_reserve(p, SIZE), -ENOSPC);
	memset(p, 2, SIZE / 2);
	umount2(dir, MNT_DETACH);
}
