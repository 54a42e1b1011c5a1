/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that share a stream, and what counts when one of them dies.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "stream/place.h"

/* So many seconds later than it is, for files whose time nobody sets: in place of base/clock.c */
static uint64_t later;

uint64_t base_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	now.tv_sec += clock == CLOCK_REALTIME ? (time_t)later : 0;
	return (uint64_t)now.tv_sec * BASE_NS_PER_S + (uint64_t)now.tv_nsec;
}

TestSuite(holders, .init = place_begin, .fini = place_end, .timeout = 120);

/* A child that has the stream and does nothing */
static pid_t sleeper(struct stream *s)
{
	int ready[2];
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	stream_share(s, STREAM_SHARE_FORK);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stream_joined(s);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &(char){ 0 }, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* A child that has it, and that has come to @what by the signal; nobody has waited for it */
static pid_t struck(struct stream *s, int signal, int what)
{
	pid_t pid = sleeper(s);
	siginfo_t info;

	cr_assert_eq(kill(pid, signal), 0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, what | WNOWAIT), 0);
	return pid;
}

static void put_down(pid_t pid)
{
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(place_wait(pid), -SIGKILL);
}

static bool is_last(struct stream *s)
{
	struct stream_stats stats;

	stream_stats(s, &stats);
	return stats.last;
}

static void end_well(struct stream *s[2])
{
	bool safe;

	cr_expect_leq(stream_close(s[1]), 0);
	cr_expect(is_last(s[1]));
	cr_expect(base_load(&s[1]->state->ends) & STREAM_SAID, "DISCONNECT is said");
	cr_expect_eq(place_end_of(s[0]), 0);
	cr_expect_leq(stream_close(s[0]), 0);
	for (int i = 0; i < 1000 && stream_close_more(s[1], &safe); i++)
		usleep(100);
	cr_expect_eq(place_files(), 0);
	ends_destroy(s);
}

Test(holders, the_last_one_ends_it)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	cr_expect(stream_alone(s[1]));
	cr_expect_not(stream_shared(s[1]));
	pid = sleeper(s[1]);
	cr_expect_not(stream_alone(s[1]));
	cr_expect(stream_shared(s[1]));
	cr_expect_eq(stream_close(s[1]), 0, "the child has it");
	cr_expect_not(is_last(s[1]));
	cr_expect_eq(place_files(), 1);
	put_down(pid);
	ends_destroy(s);
}

Test(holders, who_was_killed_does_not_count)
{
	struct stream *s[2];

	ends_open(s);
	put_down(sleeper(s[1]));
	cr_expect(stream_alone(s[1]));
	cr_expect_not(stream_shared(s[1]));
	end_well(s);
}

/* It goes on some day */
Test(holders, who_is_stopped_counts)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	pid = struck(s[1], SIGSTOP, WSTOPPED);
	cr_expect_not(stream_alone(s[1]));
	put_down(pid);
	cr_expect(stream_alone(s[1]));
	end_well(s);
}

/* Dead, and nobody has waited for it */
Test(holders, a_zombie_does_not_count)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	pid = struck(s[1], SIGKILL, WEXITED);
	cr_expect(stream_alone(s[1]));
	cr_assert_eq(place_wait(pid), -SIGKILL);
	end_well(s);
}

/* The number of one who died is another process's by now */
Test(holders, a_later_process_of_the_number_does_not_count)
{
	struct stream *s[2];
	struct stream_holder *h;
	uint64_t now;
	pid_t pid;

	ends_open(s);
	pid = sleeper(s[1]);
	h = &s[1]->state->holder[1];
	cr_assert_eq((uint32_t)h->who, (uint32_t)pid);
	now = h->since;
	h->since = now - 10 * BASE_NS_PER_S;
	cr_expect(stream_alone(s[1]), "it was started later");
	put_down(pid);
	end_well(s);
}

Test(holders, who_is_to_come_counts)
{
	static const enum stream_share ways[] = { STREAM_SHARE_FORK, STREAM_SHARE_SPAWN,
						  STREAM_SHARE_FLIGHT };
	struct stream *s[2];

	ends_open(s);
	for (int i = 0; i < 3; i++) {
		stream_share(s[1], ways[i]);
		cr_expect_not(stream_alone(s[1]), "%d", i);
		stream_unshare(s[1], ways[i]);
		cr_expect(stream_alone(s[1]), "%d", i);
		cr_expect_not(stream_shared(s[1]), "%d", i);
	}
	end_well(s);
}

/* A child that never came counts until it is named, or for some seconds */
Test(holders, who_never_comes_is_named)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	stream_share(s[1], STREAM_SHARE_SPAWN);
	pid = fork();
	if (!pid)
		_exit(0);
	stream_named(s[1], (uint32_t)pid);
	stream_named(s[1], (uint32_t)pid);
	cr_assert_eq(place_wait(pid), 0);
	cr_expect(stream_alone(s[1]));
	stream_share(s[1], STREAM_SHARE_FORK);
	cr_expect_not(stream_alone(s[1]));
	s[1]->state->holder[1].since -= 20 * BASE_NS_PER_S;
	cr_expect(stream_alone(s[1]));
	end_well(s);
}

/* Each of its instructions from the stop it is in to the next one; how many */
static unsigned int each_step(pid_t pid, struct stream *s)
{
	unsigned int n = 0;
	int status;

	do {
		cr_assert_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_not(stream_alone(s), "after %u instructions", n);
		n++;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	return n;
}

/* A child that was started after its place was made is no other process for that, at no moment */
Test(holders, who_claims_a_place_counts_all_the_time)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	stream_share(s[1], STREAM_SHARE_FORK);
	s[1]->state->holder[1].since -= BASE_NS_PER_S;
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME);
		raise(SIGSTOP);
		stream_joined(s[1]);
		raise(SIGSTOP);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_gt(each_step(pid, s[1]), 100);
	put_down(pid);
	end_well(s);
}

/* Named by its parent before it says so itself, or after: one place */
Test(holders, a_child_has_one_place)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	pid = sleeper(s[1]);
	stream_named(s[1], (uint32_t)pid);
	cr_expect_eq(s[1]->state->holders, 2);
	put_down(pid);
	cr_expect(stream_alone(s[1]));
	cr_expect_eq(s[1]->state->holders, 1);
	end_well(s);
}

Test(holders, places_of_the_dead_are_taken)
{
	struct stream *s[2];
	pid_t pid[STREAM_HOLDERS];

	ends_open(s);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < STREAM_HOLDERS; i++)
			pid[i] = sleeper(s[1]);
		cr_expect_eq(s[1]->state->overflow, 0, "round %d", round);
		for (int i = 1; i < STREAM_HOLDERS; i++)
			put_down(pid[i]);
	}
	end_well(s);
}

/* More processes than there are places; they count as long as they say so themselves */
Test(holders, overflow)
{
	struct stream *s[2];
	pid_t pid[STREAM_HOLDERS + 2];
	int go[2];

	ends_open(s);
	cr_assert_eq(pipe(go), 0);
	for (int i = 0; i < STREAM_HOLDERS + 2; i++) {
		stream_share(s[1], STREAM_SHARE_FORK);
		pid[i] = fork();
		if (!pid[i]) {
			stream_joined(s[1]);
			close(go[1]);
			if (read(go[0], &(char){ 0 }, 1))
				_exit(1);
			_exit(stream_close(s[1]) != 0);
		}
	}
	cr_expect_eq(s[1]->state->overflow, 3);
	cr_expect_not(stream_alone(s[1]));
	close(go[1]);
	for (int i = 0; i < STREAM_HOLDERS + 2; i++)
		cr_expect_eq(place_wait(pid[i]), 0);
	cr_expect(stream_alone(s[1]));
	end_well(s);
}

/* Two close at once, again and again: one of them says DISCONNECT, and one only is the last */
Test(holders, two_close_at_once)
{
	for (int i = 0; i < 200; i++) {
		struct stream *s[2];
		int go[2];
		pid_t pid;
		bool last;

		ends_open(s);
		cr_assert_eq(pipe(go), 0);
		stream_share(s[1], STREAM_SHARE_FORK);
		pid = fork();
		if (!pid) {
			stream_joined(s[1]);
			if (write(go[1], "", 1) != 1)
				_exit(2);
			stream_close(s[1]);
			_exit(is_last(s[1]));
		}
		cr_assert_eq(read(go[0], &(char){ 0 }, 1), 1);
		stream_close(s[1]);
		last = is_last(s[1]);
		cr_expect_eq(place_wait(pid), !last, "round %d", i);
		cr_expect_eq(place_end_of(s[0]), 0, "round %d", i);
		ends_destroy(s);
		close(go[0]);
		close(go[1]);
	}
	cr_expect_eq(place_files(), 0);
}

/* --- locks --- */

Test(holders, death_inside_a_lock_ends_that_connection)
{
	struct stream *s[2], *other[2];
	pid_t pid;

	ends_open(s);
	ends_open(other);
	stream_share(s[1], STREAM_SHARE_FORK);
	stream_share(other[1], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid) {
		stream_joined(s[1]);
		stream_joined(other[1]);
		stream_tx_lock(s[1]);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(place_wait(pid), -SIGKILL);
	cr_expect_eq(stream_send(s[1], &(struct iovec){ "x", 1 }, 1), -ECONNRESET);
	cr_expect_eq(place_end_of(s[0]), -ECONNRESET);
	place_send(other[1], 0, 10000);
	place_recv(other[0], 0, 10000);
	ends_destroy(s);
	ends_destroy(other);
}

/* What it had booked has never left, and nobody grants room for it */
Test(holders, a_death_in_sending_is_found_by_who_waits_for_room)
{
	struct stream *s[2];
	struct stream_state *st;
	pid_t pid;

	ends_open(s);
	st = s[1]->state;
	stream_share(s[1], STREAM_SHARE_FORK);
	pid = fork();
	if (!pid) {
		stream_joined(s[1]);
		stream_tx_lock(s[1]);
		base_store(&st->tx.placed, base_load(&st->rx.window));
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(place_wait(pid), -SIGKILL);
	cr_expect_not(stream_levels(s[1], NULL) & STREAM_WRITABLE);
	stream_progress(s[1]);
	cr_expect(stream_levels(s[1], NULL) & STREAM_WRITABLE);
	cr_expect_eq(place_end_of(s[0]), -ECONNRESET);
	ends_destroy(s);
}

/* --- what is left behind --- */

/* Of three connections: six names in three files, each of which has one of its own */
#define LEFT 9

Test(holders, what_the_dead_leave_is_swept)
{
	struct stream *s[2];
	char path[BASE_RUNFILE_PATH];

	place_leave_behind(3, 0);
	ends_open(s);
	cr_expect_eq(place_files(), 1, "who makes a file clears the folder first");
	place_leave_behind(3, 0);
	cr_expect_eq(place_files(), 1 + LEFT);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 60 * BASE_NS_PER_S), LEFT,
		     "new or old");
	cr_expect_eq(place_files(), 1, "the living stay");
	/* What is none of ours, and what was begun and not finished */
	snprintf(path, sizeof(path), "%s/readme", place_dir);
	fclose(fopen(path, "w"));
	snprintf(path, sizeof(path), "%s/0123456789abcdef", place_dir);
	fclose(fopen(path, "w"));
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 60 * BASE_NS_PER_S), 0,
		     "it may be about to be made");
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 1);
	cr_expect_eq(place_files(), 2);
	ends_destroy(s);
}

/* The name of a connection that nobody has yet: its maker is about to */
Test(holders, what_the_living_are_about_to_make_stays)
{
	struct stream *s[2];

	ends_open(s);
	cr_assert_eq(stream_hand_over(s[0]), 0);
	memset(s[0]->state->holder, 0, sizeof(s[0]->state->holder));
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 60 * BASE_NS_PER_S), 0);
	cr_expect_eq(place_files(), 2);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 1, "but not for ever");
}

/* A process that is killed has the file that it keeps for its next connection, too */
Test(holders, what_was_kept_is_swept)
{
	pid_t pid = fork();
	struct stream *s[2];

	if (!pid) {
		ends_open(s);
		ends_destroy(s);
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(place_wait(pid), -SIGKILL);
	cr_expect_eq(place_files(), 1);
	ends_open(s);
	ends_destroy(s);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 60 * BASE_NS_PER_S), 0,
		     "its own stays");
	cr_expect_eq(place_files(), 0);
}

/* Makes both ends of a connection, gives them away, and is killed */
static void make_and_die(int channel)
{
	struct stream *s[2];

	ends_open(s);
	for (int i = 0; i < 2; i++) {
		stream_hand_over(s[i]);
		stream_share(s[i], STREAM_SHARE_FLIGHT);
		place_fd_send(channel, s[i]->fd);
	}
	/* Until they have come */
	if (read(channel, &(char){ 0 }, 1) == 1)
		kill(getpid(), SIGKILL);
}

Test(holders, the_last_one_removes_the_file_of_a_maker_that_was_killed)
{
	struct stream *s[2];
	int channel[2];
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	pid = fork();
	if (!pid)
		make_and_die(channel[1]);
	for (int i = 0; i < 2; i++) {
		int err, fd = place_fd_recv(channel[0]);

		s[i] = place_adopt(fd, &err);
		cr_assert_not_null(s[i], "%d", err);
	}
	cr_assert_eq(write(channel[0], "", 1), 1);
	cr_assert_eq(place_wait(pid), -SIGKILL);
	cr_expect_eq(place_files(), 3, "two connections, and the file");
	place_send(s[0], 0, 100);
	place_recv(s[1], 0, 100);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

/* Without room it looks again, and then there is some */
Test(holders, what_the_dead_leave_is_swept_for_room)
{
	static const char filler[3400 << 10];
	char path[BASE_RUNFILE_PATH];
	struct stream *s[2], *late[2];
	int fd;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cr_skip_test("no mount namespace to be had");
	cr_assert_eq(mount("none", place_dir, "tmpfs", 0, "size=8m,mode=0700"), 0);
	snprintf(path, sizeof(path), "%s/filler", place_dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(write(fd, filler, sizeof(filler)), sizeof(filler));
	close(fd);
	ends_open(s);
	place_leave_behind(2, 200000);
	nanosleep(&(struct timespec){ 1, 100000000 }, NULL);
	ends_open(late);
	cr_expect_eq(stream_hand_over(late[0]), 0, "it has a name");
	ends_destroy(s);
	ends_destroy(late);
	umount2(place_dir, MNT_DETACH);
}

Test(holders, a_sweep_is_bounded)
{
	place_leave_behind(80, 0);
	cr_expect_eq(place_files(), 240);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 128);
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 112);
	cr_expect_eq(place_files(), 0);
}

Test(holders, another_layout_is_left_alone)
{
	struct stream *s[2];

	ends_open(s);
	cr_assert_eq(stream_hand_over(s[0]), 0);
	s[0]->state->version++;
	memset(s[0]->state->holder, 0, sizeof(s[0]->state->holder));
	cr_expect_eq(stream_place_sweep(stream_place_of(place_dir), 0), 0);
	cr_expect_eq(place_files(), 2);
	ends_destroy(s);
}

/* --- who sweeps, and when --- */

Test(holders, who_begins_sweeps)
{
	struct stream *s[2];

	place_leave_behind(3, 0);
	ends_open(s);
	cr_expect_eq(place_files(), 1, "%u files", place_files());
	ends_destroy(s);
}

/* To look through a folder is not for each connection */
Test(holders, it_sweeps_once)
{
	struct stream *s[2], *other[2];

	ends_open(s);
	place_leave_behind(3, 0);
	later = 60;
	ends_open(other);
	cr_expect_eq(place_files(), 1 + LEFT, "%u files", place_files());
	ends_destroy(s);
	ends_destroy(other);
}

/* Nor for who only goes on with one: the program that it executes is often a short one */
Test(holders, who_takes_over_does_not_sweep)
{
	struct stream *s[2];
	int channel[2];
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	later = 60;
	pid = fork();
	if (!pid) {
		int err, fd = place_fd_recv(channel[1]);

		_exit(fd < 0 || !place_adopt(fd, &err) || place_files() != 1 + LEFT);
	}
	ends_open(s);
	place_leave_behind(3, 0);
	stream_share(s[1], STREAM_SHARE_FLIGHT);
	place_fd_send(channel[0], s[1]->fd);
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(place_files(), 1 + LEFT, "%u files", place_files());
	ends_destroy(s);
}
