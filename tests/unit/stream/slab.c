/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that share a file: whose cell is whose, what is given back, and what is not believed.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "stream/place.h"

TestSuite(slab, .init = place_begin, .fini = place_end, .timeout = 120);

#define SOME PLACE_SOME

static const struct stream_slab_file *slab_of(const struct stream *s)
{
	return s->slab->at;
}

/* Everything that came has been read, and everything has left */
static void expect_rest(const struct stream *s)
{
	const struct stream *r = s;
	uint64_t all = ~0ull >> (64 - r->slab->cells);

	cr_expect_eq(r->slab->at->rx_block[r->cell], 0);
	cr_expect_eq(r->slab->at->tx_block[r->cell], 0);
	cr_expect_eq(r->slab->at->rx_free, all, "%#llx", (unsigned long long)r->slab->at->rx_free);
	cr_expect_eq(r->slab->at->tx_free, all, "%#llx", (unsigned long long)r->slab->at->tx_free);
}

/* --- cells --- */

Test(slab, connections_share_one_file)
{
	struct stream *s[2], *more[2];

	ends_open(s);
	ends_open(more);
	cr_expect_eq(place_file_of(s[0]).st_ino, place_file_of(more[1]).st_ino);
	cr_expect_eq(place_file_of(s[0]).st_nlink, 1, "and it has no name but its own");
	cr_expect_eq(place_files(), 1);
	ends_destroy(s);
	place_both_ways(more);
	ends_destroy(more);
	cr_expect_eq(place_files(), 0);
}

Test(slab, a_cell_is_used_again_and_by_one_at_a_time)
{
	struct stream *s[2], *more[2];
	struct stream_state *was;

	ends_open(s);
	ends_open(more);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			cr_expect_neq(s[i]->state, more[k]->state);
	was = s[1]->state;
	ends_destroy(s);
	ends_open(s);
	cr_expect(s[0]->state == was || s[1]->state == was);
	place_both_ways(s);
	place_both_ways(more);
	ends_destroy(s);
	ends_destroy(more);
}

static ino_t one_more(void)
{
	struct stream *s[2];
	ino_t file;

	ends_open(s);
	place_both_ways(s);
	file = place_file_of(s[0]).st_ino;
	ends_destroy(s);
	return file;
}

Test(slab, connections_one_after_another_have_the_same_file)
{
	ino_t file = one_more();

	cr_expect_eq(one_more(), file);
	cr_expect_eq(place_files(), 0, "what is kept goes when it is told to");
}

Test(slab, what_is_kept_takes_little_memory)
{
	enum { MANY = 14 };
	struct stream *s[MANY][2];
	struct stat st;
	char path[BASE_RUNFILE_PATH];

	for (int i = 0; i < MANY; i++) {
		ends_open(s[i]);
		place_send(s[i][0], 0, 200000);
	}
	for (int i = 0; i < MANY; i++)
		place_recv(s[i][1], 0, 200000);
	strcpy(path, place_slab_path(s[MANY - 1][1]));
	for (int i = 0; i < MANY; i++)
		ends_destroy(s[i]);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_lt(st.st_blocks * 512, 280000, "%ld", (long)st.st_blocks * 512);
}

/* Whatever the last connections have left in its head */
Test(slab, what_is_kept_is_as_new)
{
	struct stream *s[2];
	ino_t file;

	ends_open(s);
	file = place_file_of(s[0]).st_ino;
	s[0]->slab->at->rx_free = s[0]->slab->at->tx_free = 0;
	ends_destroy(s);
	ends_open(s);
	cr_expect_eq(place_file_of(s[0]).st_ino, file);
	place_both_ways(s);
	ends_destroy(s);
}

static size_t resident(const struct stream_slab *slab)
{
	unsigned char *pages = malloc(slab->size / 4096);
	size_t sum = 0;

	cr_assert_eq(mincore(slab->at, slab->size, pages), 0);
	for (size_t i = 0; i < slab->size / 4096; i++)
		sum += pages[i] & 1;
	free(pages);
	return sum * 4096;
}

static void expect_lazy(const char *dir)
{
	struct stream *s[2];
	struct stream_slab *slab;

	ends_param.dir = dir;
	ends_open(s);
	place_both_ways(s);
	slab = s[0]->slab;
	cr_expect_geq(slab->size, 1 << 20);
	cr_expect_lt(resident(slab), 200000, "%zu of %zu", resident(slab), slab->size);
	ends_destroy(s);
}

/* Memory that is mostly never touched is not filled because the program's is locked */
Test(slab, with_locked_memory)
{
	if (mlockall(MCL_FUTURE))
		cr_skip_test("only root may lock memory here");
	expect_lazy(place_dir);
	expect_lazy(NULL);
}

/* The socket may live on as plain TCP, and go to a program that looks for its state */
Test(slab, a_kept_file_has_the_name_of_no_socket)
{
	struct stream *s[2];
	int fd[2], err;

	ends_open(s);
	for (int i = 0; i < 2; i++) {
		fd[i] = dup(s[i]->fd);
		cr_assert_geq(fd[i], 0);
	}
	ends_destroy(s);
	for (int i = 0; i < 2; i++) {
		cr_expect_null(place_adopt(fd[i], &err));
		cr_expect_eq(err, -ENOENT, "%d", err);
		close(fd[i]);
	}
}

/* Closed at both ends and not destroyed yet: as what lingers */
Test(slab, what_lingers_leaves_its_file_to_the_next_connection)
{
	struct stream *s[2], *more[2];
	struct stat file;

	ends_open(s);
	file = place_file_of(s[0]);
	for (int i = 0; i < 2; i++)
		stream_close(s[i]);
	ends_open(more);
	cr_expect_eq(place_file_of(more[0]).st_ino, file.st_ino);
	place_both_ways(more);
	ends_destroy(more);
	cr_expect_eq(place_files(), 0, "names that are nobody's go while something lingers, too");
	ends_destroy(s);
}

Test(slab, a_child_leaves_its_parents_kept_file_alone)
{
	ino_t file = one_more();
	pid_t pid;

	pid = ends_fork();
	if (!pid) {
		struct stream *s[2];
		bool same;

		ends_open(s);
		same = place_file_of(s[0]).st_ino == file;
		ends_destroy(s);
		stream_spare_allow(false);
		_exit(same);
	}
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(one_more(), file);
}

/* Whoever else may have it mapped would take the next connection for this one */
Test(slab, a_cell_that_was_shared_is_spent)
{
	struct stream *s[2], *keep[2], *fresh[4][2];
	struct stream_state *was[2];

	ends_open(keep);
	ends_open(s);
	for (int i = 0; i < 2; i++) {
		was[i] = s[i]->state;
		stream_share(s[i], STREAM_SHARE_FORK);
		stream_unshare(s[i], STREAM_SHARE_FORK);
	}
	ends_destroy(s);
	for (int i = 0; i < 4; i++)
		ends_open(fresh[i]);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 2; k++)
			cr_expect_neq(fresh[i / 2][i % 2]->state, was[k]);
	for (int i = 0; i < 4; i++)
		ends_destroy(fresh[i]);
	ends_destroy(keep);
	cr_expect_eq(place_files(), 0);
}

/* So is one that a helper process ends, which nobody has announced */
Test(slab, a_cell_that_is_disowned_is_spent)
{
	struct stream *s[2], *fresh[2][2];
	struct stream_state *was;

	ends_open(s);
	was = s[1]->state;
	stream_disown(s[1]);
	stream_destroy(s[1]);
	cr_expect_eq(was->magic, STREAM_MAGIC, "it is as it was");
	for (int i = 0; i < 2; i++)
		ends_open(fresh[i]);
	for (int i = 0; i < 4; i++)
		cr_expect_neq(fresh[i / 2][i % 2]->state, was);
	for (int i = 0; i < 2; i++)
		ends_destroy(fresh[i]);
}

/* What lies in the file of others' connections could not leave it when the folder is full */
Test(slab, who_is_shared_gets_no_new_neighbours)
{
	struct stream *s[2], *more[2];

	ends_open(s);
	stream_share(s[0], STREAM_SHARE_SPAWN);
	ends_open(more);
	cr_expect_neq(place_file_of(s[0]).st_ino, place_file_of(more[0]).st_ino);
	place_both_ways(s);
	place_both_ways(more);
	stream_unshare(s[0], STREAM_SHARE_SPAWN);
	ends_destroy(s);
	ends_destroy(more);
	cr_expect_eq(place_files(), 0);
}

/* The child has its parent's, and takes none of the cells that its parent takes */
static int make_one(const struct stream_slab_file *parents)
{
	struct stream *s[2];
	bool same;

	ends_open(s);
	place_both_ways(s);
	same = slab_of(s[0]) == parents || slab_of(s[1]) == parents;
	ends_destroy(s);
	stream_spare_allow(false);
	return same;
}

static void fork_and_make(const char *dir)
{
	struct stream *s[2];
	pid_t pid;

	ends_param.dir = dir;
	ends_open(s);
	for (int i = 0; i < 2; i++)
		stream_share(s[i], STREAM_SHARE_FORK);
	pid = ends_fork();
	if (!pid) {
		stream_joined(s[0]);
		stream_joined(s[1]);
		_exit(make_one(slab_of(s[0])));
	}
	cr_expect_eq(place_wait(pid), 0);
	place_both_ways(s);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

Test(slab, a_child_has_cells_of_its_own)
{
	fork_and_make(place_dir);
	fork_and_make(NULL);
}

/* As a process has that sends itself a descriptor: neither waits for the other */
Test(slab, one_connection_twice)
{
	struct stream *s[2], *again;
	uint64_t begin = base_now();
	int err;

	ends_open(s);
	stream_share(s[1], STREAM_SHARE_FLIGHT);
	again = place_adopt(s[1]->fd, &err);
	cr_assert_not_null(again, "%d", err);
	place_send(s[0], 0, SOME);
	place_recv(again, 0, SOME);
	stream_close(s[1]);
	stream_destroy(s[1]);
	place_send(s[0], 0, SOME);
	place_recv(again, 0, SOME);
	s[1] = again;
	ends_destroy(s);
	cr_expect_lt(base_now() - begin, BASE_LOCK_TIMEOUT / 2);
}

static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	int c;

	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

Test(slab, many_connections_need_few_mappings)
{
	enum { MANY = 400 };
	static struct stream *s[MANY][2];
	struct rlimit limit = { 4096, 4096 };
	unsigned int before = mappings();

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < MANY; i++)
		ends_open(s[i]);
	cr_expect_lt(mappings() - before, MANY / 4, "%u more", mappings() - before);
	cr_expect_lt(place_files(), MANY / 4);
	for (int i = 0; i < MANY; i++)
		ends_destroy(s[i]);
	cr_expect_leq(mappings(), before + 20, "%u more", mappings() - before);
	cr_expect_eq(place_files(), 0);
}

/* --- memory for bytes --- */

Test(slab, who_rests_has_none)
{
	struct stream *s[2];

	ends_open(s);
	place_both_ways(s);
	for (int i = 0; i < 2; i++)
		expect_rest(s[i]);
	/* It waits for its reader, and is then given back */
	place_send(s[0], 0, SOME);
	for (int i = 0; i < 1000 && stream_readable(s[1]) < SOME; i++) {
		stream_progress(s[1]);
		usleep(100);
	}
	cr_expect_neq(slab_of(s[1])->rx_block[s[1]->cell], 0);
	place_recv(s[1], 0, SOME);
	expect_rest(s[1]);
	ends_destroy(s);
}

static void fill(struct stream *s[2], size_t len)
{
	place_send(s[0], 0, len);
	for (int i = 0; i < 10000 && stream_readable(s[1]) < len; i++) {
		stream_progress(s[1]);
		usleep(100);
	}
	cr_assert_eq(stream_readable(s[1]), len);
}

/* Blocks that the file of many connections takes: at rest, with @len for each, and after */
static void many_fill(size_t len, blkcnt_t *rest, blkcnt_t *full, blkcnt_t *after)
{
	enum { MANY = 24 };
	struct stream *s[MANY][2];

	for (int i = 0; i < MANY; i++)
		ends_open(s[i]);
	*rest = place_file_of(s[MANY - 1][1]).st_blocks;
	for (int i = 0; i < MANY; i++)
		fill(s[i], len);
	*full = place_file_of(s[MANY - 1][1]).st_blocks;
	for (int i = MANY; i-- > 0;)
		place_recv(s[i][1], 0, len);
	*after = place_file_of(s[MANY - 1][1]).st_blocks;
	for (int i = 0; i < MANY; i++)
		ends_destroy(s[i]);
}

/* What many connections at once have needed: only so much stays as is used again */
Test(slab, what_was_needed_at_once_is_given_back)
{
	enum { LEN = 400000 };
	blkcnt_t rest, full, after;

	many_fill(LEN, &rest, &full, &after);
	cr_expect_gt((full - rest) * 512, 4 * LEN, "%ld", (long)(full - rest));
	cr_expect_lt((after - rest) * 2, full - rest, "%ld of %ld", (long)(after - rest),
		     (long)(full - rest));
}

/* What is held until the connection is open: only the first blocks keep memory for it */
Test(slab, what_was_held_is_given_back)
{
	enum { MANY = 24, LEN = 40000 };
	static char octets[LEN];
	struct iovec iov = { octets, LEN };
	struct stream *s[MANY][2];
	blkcnt_t rest, after;
	int fd[2];

	ends_param.hold = true;
	for (int i = 0; i < MANY; i++) {
		ends_tcp(fd);
		s[i][0] = ends_attach(fd[0], true);
		s[i][1] = ends_attach(fd[1], false);
	}
	rest = place_file_of(s[MANY - 1][0]).st_blocks;
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(stream_send(s[i][0], &iov, 1), LEN);
	for (int i = 0; i < MANY; i++)
		for (int k = 0; k < 10000 && stream_readable(s[i][1]) < LEN; k++) {
			stream_progress(s[i][0]);
			stream_progress(s[i][1]);
		}
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(stream_readable(s[i][1]), LEN);
	after = place_file_of(s[MANY - 1][0]).st_blocks;
	/* As much lies at their peers */
	cr_expect_lt((after - rest) * 512, 5 * MANY * LEN / 4, "%ld", (long)(after - rest) * 512);
	for (int i = 0; i < MANY; i++)
		ends_destroy(s[i]);
}

/* What connections need for each message is not given back and asked for each time */
Test(slab, a_little_stays)
{
	blkcnt_t rest, full, after;

	many_fill(SOME, &rest, &full, &after);
	cr_expect_gt(full, rest);
	cr_expect_eq(after, full, "%ld of %ld", (long)after, (long)full);
}

/* --- rubbish --- */

static void expect_damage(void (*damage)(struct stream *s), const char *name)
{
	struct stream *s[2], *sound[2];
	struct stream_info info;

	ends_open(sound);
	ends_open(s);
	damage(s[1]);
	stream_progress(s[1]);
	stream_send(s[1], &(struct iovec){ "x", 1 }, 1);
	stream_info(s[1], &info);
	cr_expect_eq(info.broken, STREAM_DAMAGED, "%s: %u", name, info.broken);
	ends_destroy(s);
	ends_destroy(sound);
}

static void block_too_big(struct stream *s)
{
	s->slab->at->rx_block[s->cell] = STREAM_CELLS + 1;
}

static void other_block_too_big(struct stream *s)
{
	s->slab->at->tx_block[s->cell] = 255;
}

static void none_is_free(struct stream *s)
{
	s->slab->at->rx_free = 0;
}

Test(slab, a_block_that_cannot_be)
{
	expect_damage(block_too_big, "of bytes that came");
	expect_damage(other_block_too_big, "of bytes that go");
	expect_damage(none_is_free, "none is free");
}

static const struct {
	const char *name;
	size_t at;
	uint32_t value;
} damages[] = {
	{ "magic", offsetof(struct stream_slab_file, magic), 1 },
	{ "version", offsetof(struct stream_slab_file, version), STREAM_VERSION - 1 },
	{ "no cells", offsetof(struct stream_slab_file, cells), 0 },
	{ "cells", offsetof(struct stream_slab_file, cells), STREAM_CELLS + 1 },
	{ "other cells", offsetof(struct stream_slab_file, cells), 1 },
	{ "more cells than there are", offsetof(struct stream_slab_file, cells), 8 },
	{ "chunk", offsetof(struct stream_slab_file, chunk), 8192 },
	{ "no chunk", offsetof(struct stream_slab_file, chunk), 0 },
	{ "odd chunk", offsetof(struct stream_slab_file, chunk), 4097 },
	{ "octets", offsetof(struct stream_slab_file, octets), 4096 },
};

Test(slab, a_head_that_cannot_be_believed)
{
	struct stream *s[2];
	int err;

	ends_open(s);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	for (size_t i = 0; i < base_array_size(damages); i++) {
		uint32_t *at = (uint32_t *)(void *)((char *)slab_of(s[1]) + damages[i].at);
		uint32_t was = *at;

		*at = damages[i].value;
		cr_expect_null(place_adopt_named(s[1]->fd, &err), "%s", damages[i].name);
		cr_expect_eq(err, -EPROTO, "%s: %d", damages[i].name, err);
		*at = was;
	}
	ends_destroy(s);
}

/* One that has been closed for good is none, also while its cell still has its cookie */
Test(slab, one_that_is_closed_is_not_found)
{
	struct stream *s[2];
	char path[128], kept[128];
	int err;

	ends_open(s);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	strcpy(path, place_path(s[1]->fd));
	snprintf(kept, sizeof(kept), "%s/kept", place_dir);
	cr_assert_eq(link(path, kept), 0);
	stream_close(s[1]);
	cr_assert_eq(link(kept, path), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EPROTO, "%d", err);
	ends_destroy(s);
}
