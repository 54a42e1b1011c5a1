/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of slabs: their own, those of connections that others come to, and who takes them away.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream/place.h"

TestSuite(names, .init = place_begin, .fini = place_end, .timeout = 60);

static bool is_named(const struct stream *s)
{
	struct stat st;

	return !stat(place_path(s->fd), &st) && st.st_ino == place_file_of(s).st_ino;
}

/* So that whoever finds the socket finds its state */
Test(names, who_is_handed_over_is_a_name)
{
	struct stream *s[2], *more[2];

	ends_open(s);
	ends_open(more);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(stream_hand_over(s[1]), 0, "twice is once");
	cr_expect(is_named(s[1]));
	cr_expect_not(is_named(s[0]));
	cr_expect_eq(place_file_of(more[0]).st_nlink, 2);
	cr_expect_eq(stream_hand_over(more[0]), 0);
	cr_expect_eq(place_file_of(more[0]).st_nlink, 3);
	ends_destroy(s);
	cr_expect_eq(place_file_of(more[0]).st_nlink, 2, "one that is closed is none");
	place_both_ways(more);
	ends_destroy(more);
	cr_expect_eq(place_files(), 0);
}

/* Of one that was killed, or that never was anything */
Test(names, a_name_that_is_another_files_is_taken)
{
	struct stream *s[2];

	ends_open(s);
	fclose(fopen(place_path(s[1]->fd), "w"));
	cr_expect_eq(stream_hand_over(s[1]), 0);
	cr_expect(is_named(s[1]));
	place_both_ways(s);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

/* No name can be added where the folder is gone, and nobody finds the file */
Test(names, who_cannot_be_named_is_not_handed_over)
{
	struct stream *s[2], *more[2];

	ends_open(s);
	cr_assert_eq(unlink(place_slab_path(s[0])), 0);
	cr_expect_eq(stream_hand_over(s[0]), -EOPNOTSUPP);
	place_both_ways(s);
	ends_open(more);
	ends_destroy(s);
	ends_destroy(more);
}

/* A program that was executed behind our back has not been announced */
Test(names, who_is_not_announced_is_found_by_a_search)
{
	struct stream *s[2], *found = NULL;
	struct stream_param param = ends_param;

	ends_open(s);
	cr_expect_eq(stream_adopt(s[1]->fd, &param, &found), -ENOENT);
	param.search = true;
	cr_assert_eq(stream_adopt(s[1]->fd, &param, &found), 0);
	place_send(s[0], 0, PLACE_SOME);
	place_recv(found, 0, PLACE_SOME);
	stream_close(found);
	stream_destroy(found);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

/* The first of two files is not it, and the process may open one at a time */
Test(names, a_search_needs_one_descriptor)
{
	struct stream *s[2], *more[2], *found = NULL;
	struct stream_param param = ends_param;
	struct rlimit limit;
	int last, err;

	ends_open(s);
	for (int i = 0; i < 2; i++)
		stream_share(s[i], STREAM_SHARE_FLIGHT);
	ends_open(more);
	for (int i = 0; i < 2; i++)
		stream_share(more[i], STREAM_SHARE_FLIGHT);
	param.search = true;
	last = dup(0);
	close(last);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)last + 1;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 4; i++) {
		err = stream_adopt((i < 2 ? s : more)[i % 2]->fd, &param, &found);
		cr_expect_eq(err, 0, "%d: %d", i, err);
	}
}

/* The last one takes the file's name away, whoever made the file */
Test(names, the_last_of_others_removes_the_file)
{
	struct stream *s[2], *found[2];
	int err;

	ends_open(s);
	for (int i = 0; i < 2; i++) {
		found[i] = place_adopt(s[i]->fd, &err);
		cr_assert_not_null(found[i], "%d", err);
		/* As for this process, which has it twice */
		stream_share(s[i], STREAM_SHARE_FLIGHT);
	}
	stream_spare_allow(false);
	for (int i = 0; i < 2; i++) {
		stream_close(s[i]);
		stream_destroy(s[i]);
	}
	cr_expect_eq(place_files(), 1, "others have it");
	place_both_ways(found);
	for (int i = 0; i < 2; i++)
		stream_unshare(found[i], STREAM_SHARE_FLIGHT);
	ends_destroy(found);
	cr_expect_eq(place_files(), 0);
}

/* Who sweeps has found it left, and its maker may live in another PID namespace */
Test(names, a_kept_file_that_was_swept_is_of_no_use)
{
	struct stream *s[2];
	ino_t file;

	ends_open(s);
	file = place_file_of(s[0]).st_ino;
	ends_destroy(s);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 1);
	ends_open(s);
	cr_expect_neq(place_file_of(s[0]).st_ino, file);
	place_both_ways(s);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

Test(names, a_file_with_a_connection_is_not_swept)
{
	struct stream *s[2];

	ends_open(s);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 0);
	cr_expect_eq(stream_hand_over(s[0]), 0);
	ends_destroy(s);
}

/* A child that has all of these, and closes them pair by pair as another user when it is told to */
static pid_t other_user(struct stream *s[], int pairs, int go)
{
	pid_t pid;

	for (int i = 0; i < 2 * pairs; i++)
		stream_share(s[i], STREAM_SHARE_FORK);
	pid = ends_fork();
	if (pid)
		return pid;
	for (int i = 0; i < 2 * pairs; i++)
		stream_joined(s[i]);
	if (setuid(65534))
		_exit(1);
	for (int i = 0; i < pairs; i++) {
		if (read(go, &(char){ 0 }, 1) != 1)
			_exit(1);
		ends_destroy(s + 2 * i);
	}
	_exit(0);
}

/* Its user number was changed behind our back: there is a name, of no memory, and soon swept */
Test(names, a_name_that_nobody_can_remove_has_no_memory)
{
	struct stream *s[2];
	char path[BASE_RUNFILE_PATH];
	struct stat st;
	int go[2];
	pid_t pid;

	if (geteuid())
		cr_skip_test("only root may become another user");
	cr_assert_eq(pipe(go), 0);
	ends_open(s);
	place_both_ways(s);
	strcpy(path, place_slab_path(s[1]));
	pid = other_user(s, 1, go[0]);
	ends_destroy(s);
	stream_spare_allow(false);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_expect_eq(place_wait(pid), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_blocks, 0, "%ld", (long)st.st_blocks);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 1);
	cr_expect_eq(place_files(), 0);
}

/* Its maker is about to execute another program, and has not delivered all of it */
Test(names, what_lingers_keeps_its_memory)
{
	struct stream *s[4]; /* the first two end here, and the others in the child */
	char path[BASE_RUNFILE_PATH];
	struct stat st;
	int go[2];
	pid_t pid;

	if (geteuid())
		cr_skip_test("only root may become another user");
	cr_assert_eq(pipe(go), 0);
	ends_open(s);
	ends_open(s + 2);
	place_both_ways(s);
	strcpy(path, place_slab_path(s[1]));
	pid = other_user(s, 2, go[0]);
	cr_assert_eq(write(go[1], "", 1), 1);
	while (!stream_alone(s[0]) || !stream_alone(s[1]))
		sched_yield();
	for (int i = 0; i < 2; i++)
		stream_close(s[i]);
	ends_destroy(s + 2);
	stream_spare_allow(false);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_expect_eq(place_wait(pid), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_gt(st.st_blocks, 0);
	cr_expect_eq(s[0]->state->magic, STREAM_MAGIC);
	for (int i = 0; i < 2; i++)
		stream_destroy(s[i]);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 1);
	cr_expect_eq(place_files(), 0);
}

/* The maker of a file that has lost its names goes on, and its next connections have names */
Test(names, others_go_on_without_names)
{
	struct stream *s[2], *more[2];
	pid_t pid;

	ends_open(s);
	cr_expect_eq(stream_hand_over(s[0]), 0);
	stream_share(s[1], STREAM_SHARE_FORK);
	pid = ends_fork();
	if (!pid) {
		stream_joined(s[1]);
		stream_names_drop(place_none_stays, NULL);
		stream_close(s[1]);
		stream_destroy(s[1]);
		_exit(0);
	}
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(place_files(), 0);
	cr_expect_eq(stream_hand_over(s[0]), -EOPNOTSUPP);
	place_both_ways(s);
	ends_open(more);
	cr_expect_eq(stream_hand_over(more[0]), 0);
	ends_destroy(s);
	ends_destroy(more);
	cr_expect_eq(place_files(), 0);
}
