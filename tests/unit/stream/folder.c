/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What tests of states and of processes that share them use.
 */
#include "tests/unit/stream/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sockutil.h"
#include "stream/place.h"

#define TURNS 20000

char place_dir[64];

void place_begin(void)
{
	strcpy(place_dir, "/dev/shm/warpsock-test-XXXXXX");
	cr_assert_not_null(mkdtemp(place_dir));
	ends_param.dir = place_dir;
}

bool place_none_stays(struct stream_place place, const void *ctx)
{
	(void)place;
	(void)ctx;
	return false;
}

static unsigned int each_file(bool remove_it)
{
	DIR *d = opendir(place_dir);
	struct dirent *entry;
	unsigned int n = 0;
	bool shared;

	while (d && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		shared = !strcmp(entry->d_name, "promised-1");
		n += !shared;
		if (remove_it)
			unlinkat(dirfd(d), entry->d_name, 0);
	}
	if (d)
		closedir(d);
	return n;
}

unsigned int place_files(void)
{
	stream_spare_allow(false);
	stream_spare_allow(true);
	return each_file(false);
}

void place_end(void)
{
	each_file(true);
	rmdir(place_dir);
}

const char *place_path(int fd)
{
	static char path[BASE_RUNFILE_PATH];
	uint64_t cookie;

	cr_assert_eq(base_sock_cookie(fd, &cookie), 0);
	cr_assert_eq(stream_place_path(path, stream_place_of(place_dir), cookie), 0);
	return path;
}

const char *place_slab_path(const struct stream *s)
{
	static char path[BASE_RUNFILE_PATH];
	uint64_t name = s->slab->at->name;

	cr_assert_eq(stream_place_slab(path, stream_place_of(place_dir), name), 0);
	return path;
}

struct stat place_file_of(const struct stream *s)
{
	struct stat st;

	cr_assert_eq(stat(place_slab_path(s), &st), 0);
	return st;
}

void place_both_ways(struct stream *s[2])
{
	place_send(s[0], 0, PLACE_SOME);
	place_recv(s[1], 0, PLACE_SOME);
	place_send(s[1], 0, PLACE_SOME);
	place_recv(s[0], 0, PLACE_SOME);
}

static struct stream *adopt(int fd, bool search, int *err)
{
	struct stream_param param = ends_param;
	struct stream *s = NULL;

	param.search = search;
	*err = stream_adopt(fd, &param, &s);
	return s;
}

struct stream *place_adopt(int fd, int *err)
{
	return adopt(fd, true, err);
}

struct stream *place_adopt_named(int fd, int *err)
{
	return adopt(fd, false, err);
}

void place_fd_send(int channel, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char octet = 1;
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	cr_assert_eq(sendmsg(channel, &m, 0), 1);
}

int place_fd_recv(int channel)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char octet;
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(channel, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void rest_a_while(struct stream *s)
{
	struct pollfd p = { .fd = s->fd, .events = stream_wait_events(s, STREAM_READABLE) };

	poll(&p, 1, 1);
	stream_progress(s);
}

void place_send(struct stream *s, uint64_t from, size_t len)
{
	uint8_t octets[1000];

	for (int i = 0; len && i < TURNS; i++) {
		struct iovec iov = { octets, base_min(len, sizeof(octets)) };
		ssize_t n;

		for (size_t j = 0; j < iov.iov_len; j++)
			octets[j] = ends_octet(from + j);
		n = stream_send(s, &iov, 1);
		if (n == -EAGAIN) {
			rest_a_while(s);
			continue;
		}
		cr_assert_gt(n, 0, "send: %zd", n);
		from += (uint64_t)n;
		len -= (size_t)n;
	}
	cr_assert_eq(len, 0, "the octets do not leave");
}

void place_recv(struct stream *s, uint64_t from, size_t len)
{
	uint8_t octets[1000];

	for (int i = 0; len && i < TURNS; i++) {
		struct iovec iov = { octets, base_min(len, sizeof(octets)) };
		ssize_t n = stream_recv(s, &iov, 1, 0);

		if (n == -EAGAIN) {
			rest_a_while(s);
			continue;
		}
		cr_assert_gt(n, 0, "recv: %zd", n);
		for (ssize_t j = 0; j < n; j++)
			cr_assert_eq(octets[j], ends_octet(from + (uint64_t)j));
		from += (uint64_t)n;
		len -= (size_t)n;
	}
	cr_assert_eq(len, 0, "the octets do not come");
}

ssize_t place_end_of(struct stream *s)
{
	struct iovec iov = { &(char){ 0 }, 1 };
	ssize_t n = -EAGAIN;

	for (int i = 0; i < TURNS && n == -EAGAIN; i++) {
		n = stream_recv(s, &iov, 1, 0);
		if (n == -EAGAIN)
			rest_a_while(s);
	}
	return n;
}

int place_wait(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void place_leave_behind(int n, size_t len)
{
	pid_t pid;

	pid = ends_fork();
	if (!pid) {
		struct stream *s[2];

		for (int i = 0; i < n; i++) {
			ends_open(s);
			for (int k = 0; k < 2; k++) {
				stream_hand_over(s[k]);
				place_send(s[k], 0, len);
			}
		}
		kill(getpid(), SIGKILL);
	}
	cr_assert_eq(place_wait(pid), -SIGKILL);
}

bool place_small(const char *options)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", place_dir, "tmpfs", 0, options);
}

void place_fill(size_t len)
{
	static const char octets[4096];
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "%s/filler", place_dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	cr_assert_geq(fd, 0);
	for (size_t sum = 0; sum < len && write(fd, octets, sizeof(octets)) > 0;)
		sum += sizeof(octets);
	close(fd);
}
