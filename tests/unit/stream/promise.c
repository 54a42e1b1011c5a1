/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The number of bytes that connections with a name may come to need.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stream/place.h"

TestSuite(promise, .init = place_begin, .fini = place_end, .timeout = 60);

static uint64_t *number(void)
{
	uint64_t *octets = NULL;

	cr_assert_eq(stream_promises(stream_place_of(place_dir), &octets), 0);
	return octets;
}

static uint64_t one(const struct stream *s)
{
	return stream_file_size(1, s->slab->chunk);
}

Test(promise, is_kept_by_both_ends_and_taken_back)
{
	struct stream *s[2];
	uint64_t size;

	ends_open(s);
	size = one(s[0]);
	cr_expect_eq(*number(), 2 * size);
	stream_close(s[0]);
	cr_expect_eq(*number(), size);
	ends_destroy(s);
	cr_expect_eq(*number(), 0);
	/* By a kept file it is the same */
	ends_open(s);
	cr_expect_eq(*number(), 2 * size);
	ends_destroy(s);
	cr_expect_eq(*number(), 0);
}

/* Whoever has it last, and whoever made it */
Test(promise, ends_with_the_last_of_several_processes)
{
	struct stream *s[2];
	uint64_t size;
	int go[2];
	pid_t pid;

	cr_assert_eq(pipe(go), 0);
	ends_open(s);
	size = one(s[0]);
	stream_share(s[1], STREAM_SHARE_FORK);
	pid = ends_fork();
	if (!pid) {
		stream_joined(s[1]);
		if (read(go[0], &(char){ 0 }, 1) != 1)
			_exit(1);
		stream_close(s[1]);
		_exit(0);
	}
	ends_destroy(s);
	cr_expect_eq(*number(), size, "the child has one end");
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(*number(), 0);
}

Test(promise, of_the_dead_is_counted_no_more)
{
	struct stream *s[2];

	ends_open(s);
	place_leave_behind(3, 0);
	cr_expect_eq(*number(), 8 * one(s[0]));
	cr_expect(stream_promises_count(stream_place_of(place_dir)));
	cr_expect_eq(*number(), 2 * one(s[0]));
	cr_expect_not(stream_promises_count(stream_place_of(place_dir)), "not all the time");
	ends_destroy(s);
	cr_expect_eq(*number(), 0);
}

/* Nobody who counts anew finds it, so it is counted no more */
Test(promise, of_what_has_lost_its_name_is_counted_no_more)
{
	struct stream *s[2], *more[2];

	ends_open(s);
	stream_names_drop(place_none_stays, NULL);
	cr_expect_eq(*number(), 0);
	ends_open(more);
	cr_expect_eq(*number(), 2 * one(more[0]));
	ends_destroy(s);
	cr_expect_eq(*number(), 2 * one(more[0]));
	ends_destroy(more);
	cr_expect_eq(*number(), 0);
}

/* What the dead have left there is no reason against a kept file either */
Test(promise, a_kept_file_is_counted_anew)
{
	struct stream *s[2];

	ends_open(s);
	ends_destroy(s);
	*number() = UINT64_MAX / 2;
	ends_open(s);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(stream_hand_over(s[i]), 0);
	cr_expect_eq(*number(), 2 * one(s[0]));
	ends_destroy(s);
}

/* A file server becomes each of its users for a while */
Test(promise, of_many_users)
{
	enum { USERS = 300 };
	struct stream_place place = stream_place_of(place_dir);
	uint64_t *octets[2];

	for (uid_t round = 0; round < 2; round++) {
		for (place.user = 1; place.user <= USERS; place.user++) {
			cr_assert_eq(stream_promises(place, &octets[round]), 0, "%u", place.user);
			if (place.user == USERS)
				break;
		}
	}
	cr_expect_eq(octets[0], octets[1], "it is known");
	stream_promises_forget(place);
	cr_assert_eq(stream_promises(place, &octets[1]), 0);
	cr_expect_neq(octets[0], octets[1]);
}

/* Too much, or too little: connections work, and the number is right again soon */
Test(promise, whatever_others_write)
{
	static const uint64_t numbers[] = { UINT64_MAX, UINT64_MAX / 2, 1, 0 };
	struct stream *s[2], *more[2];
	uint64_t size;

	for (unsigned int i = 0; i < base_array_size(numbers); i++) {
		ends_open(s);
		size = one(s[0]);
		*number() = numbers[i];
		ends_open(more);
		place_both_ways(s);
		place_both_ways(more);
		ends_destroy(more);
		nanosleep(&(struct timespec){ 1, 100000000 }, NULL);
		cr_expect(stream_promises_count(stream_place_of(place_dir)));
		cr_expect_eq(*number(), 2 * size, "%u", i);
		ends_destroy(s);
	}
}

/* Its folder is made anew, and with it the number */
Test(promise, goes_with_its_folder)
{
	struct stream *s[2];
	uint64_t *was = NULL;
	char path[96];

	snprintf(path, sizeof(path), "%s/promised-1", place_dir);
	ends_open(s);
	was = number();
	ends_destroy(s);
	place_files();
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(rmdir(place_dir), 0);
	ends_open(s);
	cr_expect_neq(number(), was);
	cr_expect_eq(*number(), 2 * one(s[0]));
	ends_destroy(s);
}

/* --- what it is for --- */

/* Connections of this process, or of a child that goes on with them: how many have a name */
static unsigned int named_of(int pairs, int channel)
{
	struct stream *s[2];
	unsigned int named = 0;

	for (int i = 0; i < pairs; i++) {
		ends_open(s);
		for (int k = 0; k < 2; k++)
			named += stream_hand_over(s[k]) == 0;
	}
	if (channel < 0)
		return named;
	if (write(channel, &named, sizeof(named)) == sizeof(named))
		pause();
	_exit(1);
}

static pid_t named_by_another(int pairs, unsigned int *named)
{
	int two[2];
	pid_t pid;

	cr_assert_eq(pipe(two), 0);
	pid = ends_fork();
	if (!pid)
		named_of(pairs, two[1]);
	cr_assert_eq(read(two[0], named, sizeof(*named)), sizeof(*named));
	close(two[0]);
	close(two[1]);
	return pid;
}

/* So it is for all processes of the user together, until they end */
Test(promise, room_for_few_of_all_processes)
{
	unsigned int one, other, third, fourth;
	pid_t pid[2];

	if (!place_small("size=16m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	pid[0] = named_by_another(3, &one);
	cr_expect_eq(one, 6);
	pid[1] = named_by_another(16, &other);
	cr_expect(other >= 2 && one + other <= 16, "%u", other);
	third = named_of(2, -1);
	cr_expect_eq(third, 0, "%u", third);
	for (int i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		cr_expect_eq(place_wait(pid[i]), -SIGKILL);
	}
	nanosleep(&(struct timespec){ 1, 100000000 }, NULL);
	fourth = named_of(2, -1);
	cr_expect_eq(fourth, 4, "the dead need nothing: %u", fourth);
	umount2(place_dir, MNT_DETACH);
}

/* --- several users --- */

/* /dev/shm is small, for this process and its children, and each user has the folder of its own */
static bool shm_small(const char *size)
{
	ends_param.dir = "";
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/dev/shm", "tmpfs", 0, size);
}

/* All that a connection takes of which nobody has read a byte */
static uint64_t fill(struct stream *from, struct stream *to)
{
	static uint8_t octets[16384];
	struct iovec iov = { octets, sizeof(octets) };
	uint64_t sum = 0;
	ssize_t n;

	for (int idle = 0; idle < 50; idle++) {
		for (size_t i = 0; i < sizeof(octets); i++)
			octets[i] = ends_octet(sum + i);
		while ((n = stream_send(from, &iov, 1)) > 0) {
			sum += (uint64_t)n;
			idle = 0;
			for (size_t i = 0; i < sizeof(octets); i++)
				octets[i] = ends_octet(sum + i);
		}
		cr_assert_eq(n, -EAGAIN, "send: %zd behind %llu bytes", n, (unsigned long long)sum);
		stream_progress(to);
		usleep(100);
	}
	return sum;
}

enum { PAIRS = 12, USERS = 3 };

/*
 * A user's process: how many connections have a name, where others may come to them. When it is
 * told so, all that they were promised is used
 */
static void one_of_users(uid_t user, int say, int go)
{
	struct stream *s[PAIRS][2];
	uint64_t sum[PAIRS][2];
	unsigned int named = 0;

	alarm(50);
	cr_assert(!user || !setuid(user));
	for (int i = 0; i < PAIRS; i++) {
		ends_open(s[i]);
		for (int k = 0; k < 2; k++)
			named += stream_hand_over(s[i][k]) == 0;
	}
	cr_assert_eq(write(say, &named, sizeof(named)), sizeof(named));
	cr_assert_eq(read(go, &(char){ 0 }, 1), 1);
	for (int i = 0; i < PAIRS; i++)
		for (int k = 0; k < 2; k++)
			sum[i][k] = fill(s[i][k], s[i][!k]);
	for (int i = 0; i < PAIRS; i++)
		for (int k = 0; k < 2; k++)
			place_recv(s[i][!k], 0, sum[i][k]);
	cr_assert_eq(write(say, &named, sizeof(named)), sizeof(named));
	pause();
}

/* They come one after the other, and what one is promised another may not use up */
Test(promise, room_of_several_users)
{
	static const uid_t user[USERS] = { 0, 65533, 65534 };
	unsigned int named[USERS], sum = 0, again;
	int say[USERS][2], go[USERS][2];
	pid_t pid[USERS];

	if (geteuid() || !shm_small("size=16m,mode=1777"))
		cr_skip_test("no mount namespace to be had, or no other user");
	for (int i = 0; i < USERS; i++) {
		cr_assert(!pipe(say[i]) && !pipe(go[i]));
		pid[i] = ends_fork();
		if (!pid[i])
			one_of_users(user[i], say[i][1], go[i][0]);
		close(say[i][1]);
		cr_assert_eq(read(say[i][0], &named[i], sizeof(*named)), sizeof(*named));
		sum += named[i];
	}
	cr_expect(named[0] > named[1] && named[1] > named[2] && named[2], "%u %u %u", named[0],
		  named[1], named[2]);
	cr_expect_leq(sum * stream_file_size(1, STREAM_RING / (STREAM_CHUNKS - 1)), 16ul << 20);
	for (int i = 0; i < USERS; i++)
		cr_assert_eq(write(go[i][1], "", 1), 1);
	for (int i = 0; i < USERS; i++)
		cr_expect_eq(read(say[i][0], &again, sizeof(again)), sizeof(again),
			     "user %u lost bytes", user[i]);
	for (int i = 0; i < USERS; i++) {
		kill(pid[i], SIGKILL);
		cr_expect_eq(place_wait(pid[i]), -SIGKILL);
	}
	umount2("/dev/shm", MNT_DETACH);
}

static void others_file(const char *name)
{
	char path[96];
	int fd;

	mkdir("/dev/shm/warpsock-65533", 0700);
	snprintf(path, sizeof(path), "/dev/shm/warpsock-65533/%s", name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert(fd >= 0 && !chown("/dev/shm/warpsock-65533", 65533, 65533));
	close(fd);
}

/* A user who has had connections, and has none now */
Test(promise, a_folder_without_states_takes_no_share)
{
	unsigned int alone, beside;
	pid_t pid;

	if (geteuid() || !shm_small("size=16m,mode=1777"))
		cr_skip_test("no mount namespace to be had, or no other user");
	others_file("promised-1");
	others_file("leases-1");
	pid = named_by_another(PAIRS, &alone);
	kill(pid, SIGKILL);
	cr_expect_eq(place_wait(pid), -SIGKILL);
	others_file("s0000000000000001");
	nanosleep(&(struct timespec){ 1, 100000000 }, NULL);
	pid = named_by_another(PAIRS, &beside);
	cr_expect(beside && alone >= 2 * beside, "%u, %u", alone, beside);
	kill(pid, SIGKILL);
	cr_expect_eq(place_wait(pid), -SIGKILL);
	umount2("/dev/shm", MNT_DETACH);
}

/* A server that forks for each connection has none itself, and its children need as much */
Test(promise, room_for_few_of_children)
{
	enum { MOST = 16 };
	struct stream *s[2];
	unsigned int named = 0;
	pid_t pid[MOST];

	if (!place_small("size=16m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	for (int i = 0; i < MOST; i++) {
		ends_open(s);
		for (int k = 0; k < 2; k++) {
			named += stream_hand_over(s[k]) == 0;
			stream_share(s[k], STREAM_SHARE_FORK);
		}
		pid[i] = ends_fork();
		if (!pid[i]) {
			for (int k = 0; k < 2; k++)
				stream_joined(s[k]);
			pause();
		}
		for (int k = 0; k < 2; k++)
			stream_named(s[k], (uint32_t)pid[i]);
		ends_destroy(s);
	}
	cr_expect(named >= 2 && named <= 16, "%u", named);
	for (int i = 0; i < MOST; i++) {
		kill(pid[i], SIGKILL);
		cr_expect_eq(place_wait(pid[i]), -SIGKILL);
	}
	umount2(place_dir, MNT_DETACH);
}

static size_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * 4096;
}

#define SOME 20000
#define MANY 200000

/*
 * What is promised and cannot be had lies elsewhere, also in a process that may not have a byte
 * more of address space
 */
Test(promise, room_without_address_space)
{
	struct stream *s[2];
	struct rlimit limit, none;

	if (!place_small("size=16m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	ends_open(s);
	place_send(s[0], 0, SOME);
	for (int i = 0; i < 1000 && stream_readable(s[1]) < SOME; i++)
		stream_progress(s[1]);
	place_fill(SIZE_MAX);
	cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){ address_space(), limit.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	place_send(s[0], SOME, MANY);
	place_recv(s[1], 0, SOME + MANY);
	place_send(s[1], 0, MANY);
	place_recv(s[0], 0, MANY);
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ends_destroy(s);
	umount2(place_dir, MNT_DETACH);
}

/* A few MiB of address space are not for connections */
Test(promise, the_last_of_address_space_is_the_program_s)
{
	struct stream_param param = ends_param;
	struct rlimit limit, little;
	struct stream *s;
	int fd[2], err;

	ends_tcp(fd);
	cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
	little = (struct rlimit){ address_space() + (6 << 20), limit.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_AS, &little), 0);
	err = stream_attach(fd[0], &param, &s);
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	cr_expect_eq(err, -ENOMEM, "%d", err);
	cr_assert_eq(stream_attach(fd[0], &param, &s), 0);
	stream_destroy(s);
	close(fd[0]);
	close(fd[1]);
}
