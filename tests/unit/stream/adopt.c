/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that come to another process by their socket's cookie: what makes that possible, and what
 * is not believed.
 */
#include "tests/unit/stream/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

TestSuite(adopt, .init = place_begin, .fini = place_end, .timeout = 120);

#define SOME 20000

/* The receiver: reads what its sender took in and did not read, and what comes; answers; closes */
static int receive_and_answer(int channel)
{
	int err, fd = place_fd_recv(channel);
	struct stream *s = fd < 0 ? NULL : place_adopt(fd, &err);

	if (!s)
		return 1;
	place_recv(s, 0, 2 * SOME);
	place_send(s, 0, SOME);
	if (read(channel, &(char){ 0 }, 1) != 1) /* the other one has closed */
		return 2;
	if (!stream_alone(s))
		return 3;
	while (stream_close(s) == -EAGAIN && stream_close_more(s, &(bool){ false }) == -EAGAIN)
		usleep(100);
	return 0;
}

Test(adopt, a_descriptor_that_was_sent)
{
	struct stream *s[2];
	int channel[2];
	pid_t pid;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	pid = fork();
	if (!pid)
		_exit(receive_and_answer(channel[1]));
	ends_open(s);
	cr_assert_eq(place_files(), 1);
	place_send(s[0], 0, SOME);
	for (int i = 0; i < 1000 && stream_readable(s[1]) < SOME; i++) {
		stream_progress(s[1]);
		usleep(100);
	}
	cr_assert_eq(stream_readable(s[1]), SOME);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	stream_share(s[1], STREAM_SHARE_FLIGHT);
	place_fd_send(channel[0], s[1]->fd);
	place_send(s[0], SOME, SOME);
	place_recv(s[0], 0, SOME);
	cr_expect_not(stream_alone(s[1]));
	cr_expect_eq(stream_close(s[1]), 0, "it is the other's to end");
	cr_expect_eq(place_files(), 2);
	cr_assert_eq(write(channel[0], "", 1), 1);
	cr_expect_eq(place_end_of(s[0]), 0);
	/* The peer's FIN may come a little later than its word */
	cr_expect_leq(stream_close(s[0]), 0);
	cr_expect_eq(place_wait(pid), 0);
	cr_expect_eq(place_files(), 0);
	ends_destroy(s);
}

/* A process that knows nothing of the stream, as one that has executed a program */
static int begin_anew(int fd)
{
	int err;
	struct stream *s = place_adopt(fd, &err);

	if (!s)
		return 1;
	if (strcmp(stream_exec_record(s), "kept"))
		return 2;
	place_recv(s, 0, SOME);
	place_send(s, 0, SOME);
	return 0; /* by dying, as it were */
}

Test(adopt, a_program_that_was_executed)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	strcpy(stream_exec_record(s[1]), "kept");
	stream_share(s[1], STREAM_SHARE_SPAWN);
	pid = fork();
	if (!pid)
		_exit(begin_anew(s[1]->fd));
	stream_named(s[1], (uint32_t)pid);
	place_send(s[0], 0, SOME);
	place_recv(s[0], 0, SOME);
	cr_expect_eq(place_wait(pid), 0);
	cr_expect(stream_alone(s[1]));
	place_send(s[1], 0, SOME);
	place_recv(s[0], 0, SOME);
	ends_destroy(s);
	cr_expect_eq(place_files(), 0);
}

/* Start-up too: it was accepted by one and is served by the other */
Test(adopt, before_it_has_started)
{
	struct stream *s[2], *was;
	int fd[2], err;

	ends_tcp(fd);
	s[0] = ends_attach(fd[0], true);
	s[1] = was = ends_attach(fd[1], false);
	stream_progress(s[1]);
	/* As another program would, which knows nothing of it */
	s[1] = place_adopt(fd[1], &err);
	cr_assert_not_null(s[1], "%d", err);
	for (int i = 0; i < 1000 && (stream_progress(s[0]) | stream_progress(s[1])); i++)
		usleep(100);
	place_send(s[0], 0, SOME);
	place_recv(s[1], 0, SOME);
	ends_destroy(s);
	stream_destroy(was);
	cr_expect_eq(place_files(), 0);
}

/* As a worker thread that comes late to what its program has closed */
static void come_late(struct stream *s, pid_t pid)
{
	stream_named(s, (uint32_t)pid);
	cr_assert_leq(stream_close(s), 0);
	stream_set_fd(s, -1);
	for (int i = 0; i < 10; i++)
		stream_progress(s);
}

/* The others go on as if it had not come */
Test(adopt, a_process_that_has_closed_it)
{
	struct stream *s[2];
	pid_t pid;

	ends_open(s);
	strcpy(stream_exec_record(s[1]), "kept");
	stream_share(s[1], STREAM_SHARE_SPAWN);
	pid = fork();
	if (!pid)
		_exit(begin_anew(s[1]->fd));
	come_late(s[1], pid);
	place_send(s[0], 0, SOME);
	place_recv(s[0], 0, SOME);
	cr_expect_eq(place_wait(pid), 0);
	ends_destroy(s);
}

/* The same of one that has not started */
Test(adopt, a_process_that_has_closed_it_at_once)
{
	struct stream *s[2];
	int fd[2];
	pid_t pid;

	ends_tcp(fd);
	s[0] = ends_attach(fd[0], true);
	s[1] = ends_attach(fd[1], false);
	strcpy(stream_exec_record(s[1]), "kept");
	stream_share(s[1], STREAM_SHARE_SPAWN);
	pid = fork();
	if (!pid)
		_exit(begin_anew(fd[1]));
	stream_progress(s[0]);
	come_late(s[1], pid);
	place_send(s[0], 0, SOME);
	place_recv(s[0], 0, SOME);
	cr_expect_eq(place_wait(pid), 0);
	ends_destroy(s);
}

struct damage {
	const char *name;
	size_t at;
	uint32_t value;
	int expect;
};

#define AT(member) offsetof(struct stream_state, member)

static const struct damage damages[] = {
	{ "magic", AT(magic), 1, -EPROTO },
	{ "version", AT(version), STREAM_VERSION - 1, -EPROTO },
	{ "size", AT(size), sizeof(struct stream_state) - 8, -EPROTO },
	{ "octets", AT(octets), 4096, -EPROTO },
	{ "cookie", AT(cookie), 1, -EPROTO },
	{ "ring too small", AT(made.ring), STREAM_RING_MIN / 2, -EPROTO },
	{ "ring too big", AT(made.ring), 2 * STREAM_RING_MAX, -EPROTO },
	{ "ring of a strange size", AT(made.ring), STREAM_RING - 4096, -EPROTO },
	{ "ring of another size", AT(made.ring), 2 * STREAM_RING, -EPROTO },
	{ "chunk", AT(made.chunk), 4096, -EPROTO },
	{ "no chunk", AT(made.chunk), 0, -EPROTO },
	{ "no credits", AT(made.credits), 0, -EPROTO },
	{ "credits", AT(made.credits), 0x10000, -EPROTO },
	{ "features", AT(made.offered), ~0u, -EPROTO },
	{ "provider", AT(made.provider), 0x42424242, -ENODEV },
	{ "owner", AT(owner), 1, -EXDEV },
};

Test(adopt, what_cannot_be_believed)
{
	struct stream *s[2];
	int err;

	ends_open(s);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		const struct damage *d = &damages[i];
		uint32_t *at = (uint32_t *)((char *)s[1]->state + d->at);
		uint32_t was = *at;

		*at = d->value;
		cr_expect_null(place_adopt_named(s[1]->fd, &err), "%s", d->name);
		cr_expect_eq(err, d->expect, "%s: %d", d->name, err);
		*at = was;
	}
	memset(s[1]->state->made.provider, 'x', STREAM_PROVIDER_MAX);
	cr_expect_null(place_adopt_named(s[1]->fd, &err), "a name without an end");
	cr_expect_eq(err, -EPROTO);
	strcpy(s[1]->state->made.provider, "soft");
	cr_assert_eq(truncate(place_path(s[1]->fd), (off_t)s[1]->slab->size + 4096), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err), "a longer file");
	cr_expect_eq(err, -EPROTO);
	ends_destroy(s);
}

Test(adopt, no_file_of_another_kind)
{
	struct stream *s[2];
	char path[256];
	int err;

	ends_open(s);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	strcpy(path, place_path(s[1]->fd));
	cr_assert_eq(chmod(path, 0640), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EACCES, "others may read it: %d", err);
	cr_assert_eq(chmod(path, 0), 0);
	cr_assert_eq(unlink(path), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -ENOENT, "there is none: %d", err);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EPROTO, "a symbolic link: %d", err);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EPROTO, "a pipe: %d", err);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EPROTO, "a folder: %d", err);
	cr_assert_eq(rmdir(path), 0);
	cr_assert_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EPROTO, "an empty file: %d", err);
	ends_destroy(s);
}

Test(adopt, not_of_another_user)
{
	struct stream *s[2];
	int err;

	if (geteuid())
		cr_skip_test("to give a file away is for the superuser");
	ends_open(s);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	cr_assert_eq(chown(place_path(s[1]->fd), 65534, 65534), 0);
	cr_expect_null(place_adopt_named(s[1]->fd, &err));
	cr_expect_eq(err, -EACCES);
	cr_assert_eq(stream_hand_over(s[1]), 0);
	cr_assert_eq(seteuid(65534), 0);
	cr_expect_eq(stream_hand_over(s[1]), -EACCES);
	cr_assert_eq(seteuid(0), 0);
	ends_destroy(s);
}

/* --- folders --- */

/* The stream works, and is a stream of this process and its children alone */
static void expect_unnamed(const char *why)
{
	struct stream *s[2];
	int err;

	ends_open(s);
	cr_expect_eq(stream_hand_over(s[0]), -EOPNOTSUPP, "%s", why);
	cr_expect_null(place_adopt(s[0]->fd, &err), "%s", why);
	cr_expect_eq(err, -ENOENT, "%s: %d", why, err);
	place_send(s[0], 0, SOME);
	place_recv(s[1], 0, SOME);
	ends_destroy(s);
}

Test(adopt, folder_of_others)
{
	cr_assert_eq(chmod(place_dir, 0750), 0);
	expect_unnamed("others may look into it");
	cr_assert_eq(chmod(place_dir, 0700), 0);
	if (!geteuid()) {
		cr_assert_eq(chown(place_dir, 65534, 65534), 0);
		expect_unnamed("it is another's");
	}
	cr_expect_eq(place_files(), 0);
}

Test(adopt, folder_that_is_none)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/link", place_dir);
	cr_assert_eq(symlink(place_dir, path), 0);
	ends_param.dir = path;
	expect_unnamed("a symbolic link");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	expect_unnamed("a file");
	ends_param.dir = "/proc/self/nothing/here";
	expect_unnamed("it cannot be made");
	ends_param.dir = "/proc/self/fd";
	expect_unnamed("no memory is behind it");
	ends_param.dir = NULL;
	expect_unnamed("none is wanted");
}

/* It has nothing but the page that all processes share */
static bool folder_remove(const char *path)
{
	char page[96];

	snprintf(page, sizeof(page), "%s/promised-1", path);
	return !unlink(page) && !rmdir(path);
}

Test(adopt, folder_is_made)
{
	struct stream *s[2];
	char path[80];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sub", place_dir);
	ends_param.dir = path;
	umask(0777);
	ends_open(s);
	cr_expect_eq(stream_hand_over(s[0]), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0700);
	ends_destroy(s);
	/* It goes meanwhile */
	cr_assert(folder_remove(path));
	ends_open(s);
	cr_expect_eq(stream_hand_over(s[0]), 0);
	ends_destroy(s);
	cr_assert(folder_remove(path), "it is empty again");
}

Test(adopt, file_has_its_mode_whatever_the_umask)
{
	struct stream *s[2];
	int err;

	umask(0);
	ends_open(s);
	for (int i = 0; i < 2; i++) {
		struct stat st;

		cr_assert_eq(stream_hand_over(s[i]), 0);
		cr_assert_eq(stat(place_path(s[i]->fd), &st), 0);
		cr_expect_eq(st.st_mode, S_IFREG | 0600);
		cr_expect_eq(st.st_uid, geteuid());
	}
	ends_destroy(s);
	umask(0777);
	ends_open(s);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(stream_hand_over(s[i]), 0);
	if (!geteuid()) {
		/* To whom modes mean something */
		for (int i = 0; i < 2; i++)
			cr_assert_eq(chown(place_path(s[i]->fd), 65534, 65534), 0);
		cr_assert_eq(chown(place_dir, 65534, 65534), 0);
		cr_assert_eq(seteuid(65534), 0);
	}
	stream_share(s[1], STREAM_SHARE_SPAWN);
	cr_assert_not_null(place_adopt(s[1]->fd, &err), "%d", err);
	cr_assert_eq(seteuid(0), 0);
}

/* --- no room --- */

Test(adopt, file_size_limit)
{
	struct rlimit limit = { 65536, RLIM_INFINITY };

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	expect_unnamed("it would be SIGXFSZ");
	cr_expect_eq(place_files(), 0);
}

Test(adopt, full_folder)
{
	if (!place_small("size=64k,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	expect_unnamed("no room");
	cr_expect_eq(place_files(), 0);
	umount2(place_dir, MNT_DETACH);
}

/* Octets until one end or the other says that it is over */
static int send_until_the_end(struct stream *s[2])
{
	static char octets[65536];
	struct iovec iov = { octets, sizeof(octets) };
	ssize_t n = 0;

	for (int i = 0; i < 1000 && (n >= 0 || n == -EAGAIN); i++) {
		n = stream_send(s[0], &iov, 1);
		stream_progress(s[1]);
	}
	return (int)n;
}

#define MANY 200000

/* What they need then, they have without a name */
Test(adopt, folder_that_fills_up)
{
	struct stream *s[2], *other[2];

	if (!place_small("size=16m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	ends_open(other);
	place_send(other[0], 0, SOME);
	for (int i = 0; i < 1000 && stream_readable(other[1]) < SOME; i++)
		stream_progress(other[1]);
	ends_open(s);
	place_fill(SIZE_MAX);
	place_send(s[0], 0, MANY);
	place_recv(s[1], 0, MANY);
	place_send(s[1], 0, MANY);
	place_recv(s[0], 0, MANY);
	place_recv(other[1], 0, SOME);
	place_send(other[0], SOME, MANY);
	place_recv(other[1], SOME, MANY);
	cr_expect_eq(stream_hand_over(s[0]), -EOPNOTSUPP, "no other process finds it");
	cr_expect_eq(place_files(), 1, "the filler");
	ends_destroy(s);
	ends_destroy(other);
	umount2(place_dir, MNT_DETACH);
}

static unsigned long folder_free(void)
{
	struct statfs fs;

	cr_assert_eq(statfs(place_dir, &fs), 0);
	return fs.f_bavail;
}

/* One half is for other programs */
Test(adopt, folder_of_which_half_is_used)
{
	const struct timespec pause = { 0, 20000000 };
	struct stream *s[2], *late[2];
	unsigned long left;

	if (!place_small("size=16m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	ends_open(s);
	place_fill(9 << 20);
	nanosleep(&pause, NULL);
	left = folder_free();
	ends_open(late);
	cr_expect_eq(stream_hand_over(late[0]), -EOPNOTSUPP, "it has no name");
	place_send(s[0], 0, MANY);
	place_send(late[0], 0, MANY);
	cr_expect_geq(folder_free(), left);
	place_recv(s[1], 0, MANY);
	place_recv(late[1], 0, MANY);
	ends_destroy(s);
	ends_destroy(late);
	umount2(place_dir, MNT_DETACH);
}

/* What connections may come to need together is at most one half */
Test(adopt, folder_with_room_for_few)
{
	struct stream *s[8][2];
	unsigned int named = 0;

	if (!place_small("size=8m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	for (int i = 0; i < 8; i++)
		ends_open(s[i]);
	for (int i = 0; i < 16; i++)
		named += stream_hand_over(s[i / 2][i % 2]) == 0;
	cr_expect(named >= 2 && named <= 8, "%u", named);
	for (int i = 0; i < 8; i++)
		place_send(s[i][0], 0, MANY);
	for (int i = 0; i < 8; i++) {
		place_recv(s[i][1], 0, MANY);
		ends_destroy(s[i]);
	}
	umount2(place_dir, MNT_DETACH);
}

/*
 * Another process may find them by now: who needs memory is reset, and touches none that it has
 * not; the others go on
 */
Test(adopt, folder_that_fills_up_where_others_may_come)
{
	struct stream *s[2], *other[2];
	int err;

	if (!place_small("size=16m,mode=0700"))
		cr_skip_test("no mount namespace to be had");
	ends_open(other);
	place_send(other[0], 0, SOME);
	for (int i = 0; i < 1000 && stream_readable(other[1]) < SOME; i++)
		stream_progress(other[1]);
	ends_open(s);
	cr_assert_eq(stream_hand_over(s[0]), 0);
	place_fill(SIZE_MAX);
	err = send_until_the_end(s);
	cr_expect_eq(err, -ECONNRESET, "%d", err);
	place_recv(other[1], 0, SOME);
	ends_destroy(s);
	ends_destroy(other);
	umount2(place_dir, MNT_DETACH);
}

Test(adopt, no_descriptor_is_left)
{
	struct rlimit limit = { 0, 1024 };
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	s = ends_attach(fd[0], true);
	cr_expect_eq(stream_hand_over(s), -EOPNOTSUPP);
	stream_destroy(s);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* --- names --- */

/* Who connects again has the same socket, and so the same cookie */
static struct stream *attach_again(int fd, struct stream *older)
{
	struct stream_param param = ends_param;
	struct stream *s;

	param.initiator = true;
	param.older = older;
	cr_assert_eq(stream_attach(fd, &param, &s), 0);
	return s;
}

Test(adopt, a_socket_that_connects_again)
{
	struct stream *old, *fresh, *found;
	int fd[2], err;

	for (int named = 0; named < 2; named++) {
		ends_tcp(fd);
		old = ends_attach(fd[0], true);
		if (named)
			cr_assert_eq(stream_hand_over(old), 0);
		fresh = attach_again(fd[0], named ? NULL : old);
		if (named)
			cr_assert_eq(stream_hand_over(fresh), 0);
		strcpy(stream_exec_record(fresh), "fresh");
		stream_destroy(old);
		found = place_adopt(fd[0], &err);
		cr_assert_not_null(found, "%d: %d", named, err);
		cr_expect_str_eq(stream_exec_record(found), "fresh");
		stream_destroy(found);
		stream_destroy(fresh);
		cr_expect_eq(place_files(), 0);
	}
}

/* Where others still have the older one, which is no use to who finds the socket */
Test(adopt, a_socket_that_connects_again_and_others_have_it)
{
	struct stream *old, *fresh, *found;
	int fd[2], err;

	ends_tcp(fd);
	old = ends_attach(fd[0], true);
	fresh = attach_again(fd[0], old);
	stream_share(old, STREAM_SHARE_FLIGHT);
	strcpy(stream_exec_record(fresh), "fresh");
	found = place_adopt(fd[0], &err);
	cr_assert_not_null(found, "%d", err);
	cr_expect_str_eq(stream_exec_record(found), "fresh");
}

Test(adopt, a_name_that_is_taken)
{
	struct stream *s;
	int fd[2];

	ends_tcp(fd);
	cr_assert_eq(close(open(place_path(fd[0]), O_CREAT | O_WRONLY, 0600)), 0);
	s = ends_attach(fd[0], true);
	cr_expect_eq(stream_hand_over(s), 0);
	stream_destroy(s);
	cr_expect_eq(place_files(), 0);
}
