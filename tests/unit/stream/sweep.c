/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is looked through in the folder of states, and what is taken away there.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "stream/place.h"

TestSuite(sweep, .init = place_begin, .fini = place_end, .timeout = 60);

static unsigned int sweep(uint64_t age)
{
	return stream_place_sweep(stream_place_of(place_dir), age);
}

/* Someone came to it between the two looks of who sweeps: it can be handed over as before */
Test(sweep, a_mark_in_vain_is_taken_back)
{
	struct stream *s[2];
	struct stream_slab_cells c;

	ends_open(s);
	cr_assert_eq(stream_slab_map(place_slab_path(s[0]), &c), 0);
	cr_expect_not(stream_slab_sweep(&c));
	cr_expect_eq(stream_hand_over(s[0]), 0);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

/* Two sweep at once, and only one of them has come in vain: the name goes */
Test(sweep, a_mark_of_two_stays_for_the_second)
{
	struct stream *s[2];
	struct stream_slab_cells c;

	ends_open(s);
	cr_assert_eq(stream_slab_map(place_slab_path(s[0]), &c), 0);
	c.at->swept = 1;
	cr_expect_not(stream_slab_sweep(&c));
	cr_expect_eq(stream_hand_over(s[0]), -EOPNOTSUPP);
	ends_destroy(s);
}

struct walk {
	unsigned int seen;
	char path[1000][BASE_RUNFILE_PATH];
};

/* As others do meanwhile: all that was seen is removed, a few at a time */
static bool seen_and_gone(const char *path, void *ctx)
{
	struct walk *walk = ctx;

	strcpy(walk->path[walk->seen++], path);
	if (walk->seen % 50 == 0)
		for (unsigned int i = walk->seen - 50; i < walk->seen; i++)
			unlink(walk->path[i]);
	return false;
}

/* On a file system where a place in the folder is a count of the names before it */
Test(sweep, a_search_passes_none_over_where_names_go)
{
	static struct walk walk;
	char path[BASE_RUNFILE_PATH];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cr_skip_test("no mount namespace to be had");
	cr_assert_eq(mount("none", place_dir, "ramfs", 0, "mode=0700"), 0);
	for (uint64_t i = 1; i <= 900; i++) {
		cr_assert_eq(stream_place_slab(path, stream_place_of(place_dir), i), 0);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	cr_expect_eq(stream_place_slabs(stream_place_of(place_dir), seen_and_gone, &walk), 0);
	cr_expect_eq(walk.seen, 900, "%u", walk.seen);
	umount2(place_dir, MNT_DETACH);
}

/* More names of the living than one sweep looks at: another one goes on behind them */
Test(sweep, what_is_behind_the_living_is_swept_too)
{
	enum { MANY = 50 };
	static struct stream *before[MANY][2], *behind[MANY][2];

	for (int i = 0; i < MANY; i++) {
		ends_open(before[i]);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(stream_hand_over(before[i][k]), 0);
	}
	place_leave_behind(3, 0);
	for (int i = 0; i < MANY; i++) {
		ends_open(behind[i]);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(stream_hand_over(behind[i][k]), 0);
	}
	cr_expect_eq(sweep(0) + sweep(0) + sweep(0), 9);
	cr_expect_eq(sweep(0), 0, "the living stay");
	for (int i = 0; i < MANY; i++) {
		ends_destroy(before[i]);
		ends_destroy(behind[i]);
	}
}

/* --- files of another version --- */

/* What @fn does to each file of a slab in the folder */
static bool each_one(const char *path, void *ctx)
{
	void (**fn)(struct stream_slab_file * at) = ctx;
	struct stream_slab_cells c;

	cr_assert_eq(stream_slab_map(path, &c), 0);
	(*fn)(c.at);
	base_map_destroy(c.at, c.size);
	return false;
}

static void each_file(void (*fn)(struct stream_slab_file *at))
{
	cr_assert_eq(stream_place_slabs(stream_place_of(place_dir), each_one, &fn), 0);
}

static void make_newer(struct stream_slab_file *at)
{
	at->version++;
}

static void make_older(struct stream_slab_file *at)
{
	at->version--;
}

static void (*const versions[])(struct stream_slab_file *at) = { make_newer, make_older };

Test(sweep, what_the_dead_leave_of_another_version)
{
	for (unsigned int i = 0; i < base_array_size(versions); i++) {
		place_leave_behind(3, 0);
		each_file(versions[i]);
		cr_expect_eq(sweep(60 * BASE_NS_PER_S), 0, "it may be about to be made");
		cr_expect_eq(sweep(0), 9, "three files, and the names of six connections");
		cr_expect_eq(place_files(), 0);
	}
}

Test(sweep, another_version_with_a_holder_who_lives)
{
	for (unsigned int i = 0; i < base_array_size(versions); i++) {
		struct stream *s[2];

		ends_open(s);
		cr_assert_eq(stream_hand_over(s[0]), 0);
		each_file(versions[i]);
		cr_expect_eq(sweep(0), 0);
		cr_expect_eq(s[0]->slab->at->swept, 0);
		cr_expect_eq(place_files(), 2);
		ends_destroy(s);
		cr_expect_eq(place_files(), 0);
	}
}

/* Nobody of this process has it any more, but a message has */
Test(sweep, another_version_in_flight)
{
	struct stream *s[2];

	ends_open(s);
	for (int i = 0; i < 2; i++)
		stream_share(s[i], STREAM_SHARE_FLIGHT);
	each_file(make_older);
	ends_destroy(s);
	cr_expect_eq(sweep(0), 0);
	cr_expect_eq(place_files(), 1);
}

/* A head that cannot be says nothing, and a version may have other holders */
Test(sweep, another_version_that_nobody_can_judge)
{
	static const struct {
		size_t at;
		uint32_t value;
	} heads[] = {
		{ offsetof(struct stream_slab_head, magic), 1 },
		{ offsetof(struct stream_slab_head, cells), 0 },
		{ offsetof(struct stream_slab_head, cells), STREAM_CELLS + 1 },
		{ offsetof(struct stream_slab_head, cell_at), UINT32_MAX - 7 },
		{ offsetof(struct stream_slab_head, cell_at), 4 },
		{ offsetof(struct stream_slab_head, cell_size), 0 },
		{ offsetof(struct stream_slab_head, cell_size), UINT32_MAX - 7 },
		{ offsetof(struct stream_slab_head, holder_at), 0 },
		{ offsetof(struct stream_slab_head, holder_at), UINT32_MAX - 7 },
		{ offsetof(struct stream_slab_head, overflow_at), UINT32_MAX - 3 },
		{ offsetof(struct stream_slab_head, overflow_at), 2 },
	};
	struct stream_slab_head *at;
	size_t size;
	char path[BASE_RUNFILE_PATH];

	cr_assert_eq(stream_place_slab(path, stream_place_of(place_dir), 1), 0);
	for (unsigned int i = 0; i < base_array_size(heads); i++) {
		size = stream_file_size(4, STREAM_CHUNK_MIN);
		cr_assert_eq(base_runfile_create(path, size, size, (void **)&at), 0);
		stream_file_init((struct stream_slab_file *)at, 4, STREAM_CHUNK_MIN, 1);
		at->version++;
		at->used = 1;
		*(uint32_t *)(void *)((char *)at + heads[i].at) = heads[i].value;
		cr_expect_eq(sweep(0), 0, "%u", i);
		base_runfile_remove(path);
		base_map_destroy(at, size);
	}
}

/* Beyond the table nobody can tell who lives */
Test(sweep, another_version_with_more_holders)
{
	struct stream *s[2];

	ends_open(s);
	memset(s[0]->state->holder, 0, sizeof(s[0]->state->holder));
	memset(s[1]->state->holder, 0, sizeof(s[1]->state->holder));
	s[0]->state->overflow = 1;
	each_file(make_newer);
	cr_expect_eq(sweep(0), 0);
	s[0]->state->overflow = 0;
	cr_expect_eq(sweep(0), 1);
}
