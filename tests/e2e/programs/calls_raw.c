/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of stream sockets to a program that makes its calls by syscall(). As
 * calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static bool octets(void)
{
	char a[4] = "", b[4] = "";
	struct iovec in[2] = { { a, 2 }, { b, 2 } }, out[2] = { { "ab", 2 }, { "cd", 2 } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 2 };
	int fd[2];

	need(pair(fd));
	need(syscall(SYS_write, fd[0], "wxyz", 4) == 4);
	need(syscall(SYS_read, fd[1], a, 2) == 2 &&
	     syscall(SYS_recvfrom, fd[1], b, 2, 0, 0, 0) == 2);
	need(!strcmp(a, "wx") && !strcmp(b, "yz"));
	need(syscall(SYS_writev, fd[1], out, 2) == 4 && syscall(SYS_readv, fd[0], in, 2) == 4);
	need(!strcmp(a, "ab") && !strcmp(b, "cd"));
	need(syscall(SYS_sendto, fd[0], "1234", 4, MSG_NOSIGNAL, 0, 0) == 4);
	need(syscall(SYS_recvmsg, fd[1], &msg, 0) == 4 && !strcmp(a, "12") && !strcmp(b, "34"));
	msg.msg_iov = out;
	need(syscall(SYS_sendmsg, fd[1], &msg, 0) == 4);
	need(syscall(SYS_preadv2, fd[0], in, 2, -1L, -1L, 0) == 4 && !strcmp(a, "ab"));
	need(syscall(SYS_recvfrom, fd[0], a, 1, MSG_DONTWAIT, 0, 0) < 0 && errno == EAGAIN);
	need(syscall(SYS_read, -1, a, 1) < 0 && errno == EBADF);
	done(fd);
	return true;
}

static bool waiting(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 8 };
	struct timespec no = { 0, 0 };
	struct {
		const sigset_t *set;
		size_t size;
	} mask = { NULL, _NSIG / 8 };
	struct pollfd p;
	fd_set set;
	int fd[2], epfd = (int)syscall(SYS_epoll_create1, 0);

	need(pair(fd) && !syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, fd[1], &event));
	p = (struct pollfd){ .fd = fd[1], .events = POLLIN };
	need(syscall(SYS_poll, &p, 1, 0) == 0 && syscall(SYS_epoll_wait, epfd, &event, 1, 0) == 0);
	need(syscall(SYS_write, fd[0], "x", 1) == 1 && syscall(SYS_poll, &p, 1, 1000) == 1);
	need(syscall(SYS_ppoll, &p, 1, &no, NULL, 0) == 1 && p.revents == POLLIN);
	FD_ZERO(&set);
	FD_SET(fd[1], &set);
	need(syscall(SYS_select, fd[1] + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(fd[1], &set));
	need(syscall(SYS_pselect6, fd[1] + 1, &set, NULL, NULL, &no, &mask) == 1);
	need(syscall(SYS_epoll_wait, epfd, &event, 1, 1000) == 1 && event.data.u64 == 8);
	need(syscall(SYS_epoll_pwait, epfd, &event, 1, 1000, NULL, 0) == 1 && event.data.u64 == 8);
	syscall(SYS_close, epfd);
	done(fd);
	return true;
}

static bool descriptors(void)
{
	int fd[2], n = 0, more;
	socklen_t len = sizeof(n);
	char c;

	need(pair(fd));
	more = (int)syscall(SYS_dup, fd[0]);
	need(more >= 0 && syscall(SYS_dup3, more, 77, O_CLOEXEC) == 77);
	need(syscall(SYS_fcntl, 77, F_GETFD) == FD_CLOEXEC && !syscall(SYS_close, fd[0]));
	need(syscall(SYS_fcntl, more, F_DUPFD, 90) == 90 && !syscall(SYS_close, 90));
	need(!syscall(SYS_getsockopt, 77, SOL_SOCKET, SO_ERROR, &n, &len) && n == 0);
	need(syscall(SYS_write, fd[1], "x", 1) == 1 && ready(77, POLLIN, 1000));
	need(!syscall(SYS_ioctl, 77, FIONREAD, &n) && n == 1);
	need(!syscall(SYS_close, more) && read(77, &c, 1) == 1 && write(77, "y", 1) == 1);
	need(!syscall(SYS_shutdown, fd[1], SHUT_WR) && read(77, &c, 1) == 0);
	need(!syscall(SYS_close_range, 77, 77, 0) && read(fd[1], &c, 1) == 1);
	need(read(fd[1], &c, 1) == 0);
	close(fd[1]);
	return true;
}

static bool connecting(void)
{
	int fd[2] = { (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), -1 };
	char c;

	need(!syscall(SYS_connect, fd[0], &laddr, sizeof(laddr)));
	fd[1] = (int)syscall(SYS_accept4, lfd, NULL, NULL, SOCK_CLOEXEC);
	need(fd[1] >= 0 && write(fd[0], "x", 1) == 1 && read(fd[1], &c, 1) == 1);
	done(fd);
	return true;
}

/* What was accepted arrives also when the process ends by the bare call */
static bool leaving(void)
{
	static char data[100000];
	int fd, status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		fd = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
		syscall(SYS_connect, fd, &laddr, sizeof(laddr));
		syscall(SYS_write, fd, data, sizeof(data));
		syscall(SYS_exit_group, 0);
	}
	fd = accept(lfd, NULL, NULL);
	usleep(50000);
	need(fd >= 0 && drain(fd, sizeof(data)) && read(fd, data, 1) == 0);
	need(waitpid(pid, &status, 0) == pid && !status);
	close(fd);
	return true;
}

/* The parent's copy is closed before the child does anything */
static bool goes_on_in_child(long (*make)(void))
{
	int fd[2], go[2], status;
	char c = 0;
	long pid;

	need(pair(fd) && !pipe(go));
	fflush(stdout);
	pid = make();
	if (!pid) {
		close(fd[1]);
		close(go[1]);
		syscall(SYS_exit_group, !(read(go[0], &c, 1) == 0 && read(fd[0], &c, 1) == 1 &&
					  c == 'q' && write(fd[0], "answer", 6) == 6));
	}
	close(fd[0]);
	close(go[0]);
	need(pid > 0 && write(fd[1], "q", 1) == 1);
	close(go[1]);
	need(drain(fd[1], 6) && read(fd[1], &c, 1) == 0);
	need(waitpid((pid_t)pid, &status, 0) == pid && !status);
	close(fd[1]);
	return true;
}

static long by_fork(void)
{
	return syscall(SYS_fork);
}

static long by_clone(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* As programs do that want to be alone; who may not gets a fork */
static long with_namespaces(void)
{
	long flags = geteuid() ? 0 : CLONE_NEWIPC | CLONE_NEWNET;

	return syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

static long by_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return syscall(SYS_clone3, &args, sizeof(args));
}

static bool forking(void)
{
	return goes_on_in_child(by_fork) && goes_on_in_child(by_clone) &&
	       goes_on_in_child(with_namespaces) && goes_on_in_child(by_clone3);
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "octets", octets },		{ "waiting", waiting },
		{ "descriptors", descriptors }, { "connecting", connecting },
		{ "leaving", leaving },		{ "forking", forking },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
