/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a connection is that begins behind a filter that leaves less than start-up needs, and what
 * one goes by that had begun before. By the program's argument for Warpsock's mode:
 *
 *	on      new ones are refused
 *	auto    new ones are plain TCP, also where both ends could otherwise speak DDP
 */
#include "tests/e2e/programs/calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static bool on;

#define KILLED(nr)                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static bool confine(void)
{
	static struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILLED(SYS_sendmsg),
		KILLED(SYS_recvmsg),
		KILLED(SYS_getsockopt),
		KILLED(SYS_setsockopt),
		KILLED(SYS_getsockname),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(f) / sizeof(f[0]), f };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool run_in_child(bool (*run)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(run() ? 0 : 1);
	need(waitpid(pid, &status, 0) == pid && status == 0);
	return true;
}

static int client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (!connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)))
		return fd;
	close(fd);
	return -1;
}

static bool both_confined(void)
{
	char buf[4] = "";
	int a, b;

	need(confine());
	a = client();
	need(on ? a < 0 && errno == EOPNOTSUPP : a >= 0);
	if (on)
		return true;
	b = accept(lfd, NULL, NULL);
	need(b >= 0 && write(a, "abc", 3) == 3 && read(b, buf, 3) == 3 && !memcmp(buf, "abc", 3));
	need(write(b, "xyz", 3) == 3 && read(a, buf, 3) == 3 && !memcmp(buf, "xyz", 3));
	need(!close(a) && read(b, buf, 1) == 0 && !close(b));
	return true;
}

static bool new_ones(void)
{
	return run_in_child(both_confined);
}

static bool accepts_confined(void)
{
	int fd;

	need(confine());
	fd = accept(lfd, NULL, NULL);
	need(fd < 0 && errno == ECONNABORTED);
	return true;
}

/* The client is free, and hears of it */
static bool accepted(void)
{
	char c;
	pid_t pid;
	int fd, status;

	if (!on)
		return true;
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(accepts_confined() ? 0 : 1);
	fd = client();
	need(fd < 0 || read(fd, &c, 1) <= 0);
	need(waitpid(pid, &status, 0) == pid && status == 0);
	return true;
}

static bool waits_as_before(void)
{
	struct timeval tv = { 0, 200000 };
	int fd[2];
	double begin;
	char c;

	need(pair(fd) && !setsockopt(fd[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	need(confine());
	begin = now();
	need(read(fd[1], &c, 1) < 0 && errno == EAGAIN && now() - begin > 0.19);
	need(recv(fd[1], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	need(write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	done(fd);
	return true;
}

static bool time_out(void)
{
	return run_in_child(waits_as_before);
}

/* What the program sets behind the filter, fcntl() being left to it, counts */
static bool flag_changes(void)
{
	int fd[2], yes = 1, no = 0;
	char c;

	need(pair(fd) && confine());
	need(!(fcntl(fd[1], F_GETFL) & O_NONBLOCK) && nonblock(fd[1]));
	need(fcntl(fd[1], F_GETFL) & O_NONBLOCK);
	need(read(fd[1], &c, 1) < 0 && errno == EAGAIN);
	need(!ioctl(fd[1], FIONBIO, &no) && !(fcntl(fd[1], F_GETFL) & O_NONBLOCK));
	need(!ioctl(fd[0], FIONBIO, &yes) && fcntl(fd[0], F_GETFL) & O_NONBLOCK);
	done(fd);
	return true;
}

static bool flags(void)
{
	return run_in_child(flag_changes);
}

int main(int argc, char **argv)
{
	static const struct call_case cases[] = {
		{ "new connections", new_ones },
		{ "accept()", accepted },
		{ "a time-out from before the filter", time_out },
		{ "O_NONBLOCK behind the filter", flags },
	};

	on = argc > 1 && !strcmp(argv[1], "on");
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
