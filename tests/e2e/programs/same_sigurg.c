/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is told of urgent data: poll(), select(), epoll sets, and the owner of the descriptor.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/e2e/programs/same_urgent.h"

/* --- poll(), select(), epoll --- */

static void polled(int fd[2])
{
	struct pollfd p = { .fd = fd[1], .events = POLLPRI };
	struct timeval tv = { 5, 0 };
	fd_set in, except;

	R(poll(&p, 1, 0));
	same_later(20, send_urgent, &fd[0]);
	R(poll(&p, 1, 5000));
	same_say("%#x", (unsigned int)p.revents);
	FD_ZERO(&in);
	FD_ZERO(&except);
	FD_SET(fd[1], &in);
	FD_SET(fd[1], &except);
	R(select(fd[1] + 1, &in, NULL, &except, &tv));
	same_say("in %d, except %d", FD_ISSET(fd[1], &in), FD_ISSET(fd[1], &except));
	oob(fd[1], 0);
	tv = (struct timeval){ 0, 0 };
	FD_SET(fd[1], &except);
	R(select(fd[1] + 1, NULL, NULL, &except, &tv));
	same_join();
	same_later(20, send_urgent, &fd[0]);
	tv = (struct timeval){ 5, 0 };
	FD_SET(fd[1], &except);
	R(select(fd[1] + 1, NULL, NULL, &except, &tv));
	same_say("except %d", FD_ISSET(fd[1], &except));
}

static void told(int ep)
{
	struct epoll_event e = { 0 };
	int n = epoll_wait(ep, &e, 1, 0);

	same_say("epoll: %d%s%s%s", n, e.events & EPOLLIN ? " in" : "",
		 e.events & EPOLLPRI ? " pri" : "", e.events & EPOLLRDHUP ? " rdhup" : "");
}

static void set_by(int fd[2], uint32_t events)
{
	struct epoll_event e = { .events = events };
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &e);
	told(ep);
	put(fd[0], "a", 0);
	told(ep);
	put(fd[0], "u", MSG_OOB);
	told(ep);
	told(ep);
	epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], &e);
	told(ep);
	get(fd[1], 8, 0);
	told(ep);
	oob(fd[1], 0);
	told(ep);
	put(fd[0], "v", MSG_OOB);
	told(ep);
	put(fd[0], "b", 0);
	told(ep);
	epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], &e);
	told(ep);
	close(ep);
}

static void level_set(int fd[2])
{
	set_by(fd, EPOLLIN | EPOLLPRI);
}

static void level_pri(int fd[2])
{
	set_by(fd, EPOLLPRI);
}

static void edge_set(int fd[2])
{
	set_by(fd, EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET);
}

static void edge_pri(int fd[2])
{
	set_by(fd, EPOLLPRI | EPOLLET);
}

static void oneshot(int fd[2])
{
	set_by(fd, EPOLLPRI | EPOLLONESHOT);
}

static void epoll_waits(int fd[2])
{
	struct epoll_event e = { .events = EPOLLPRI | EPOLLET };
	int ep = epoll_create1(0);

	epoll_ctl(ep, EPOLL_CTL_ADD, fd[1], &e);
	same_later(20, send_urgent, &fd[0]);
	R(epoll_wait(ep, &e, 1, 5000));
	same_say("%#x", e.events);
	oob(fd[1], 0);
	R(epoll_wait(ep, &e, 1, 0));
}

/* --- SIGURG --- */

static volatile sig_atomic_t urgs;
static int taken_from = -1;

static void on_urg(int number)
{
	urgs++;
	if (taken_from >= 0) {
		char c = '-';
		long got = recv(taken_from, &c, 1, MSG_OOB);

		printf("in the handler: %ld '%c'\n", got, c);
	}
}

static void catch_urg(int flags)
{
	struct sigaction action = { .sa_handler = on_urg, .sa_flags = flags };

	sigaction(SIGURG, &action, NULL);
}

/* Without a call of any kind meanwhile: Linux needs none */
static void compute(int ms)
{
	double end = same_now() + 30, until = same_now() + ms / 1000.0;

	while ((!urgs && same_now() < end) || same_now() < until)
		;
}

static void signal_owner(int fd[2])
{
	catch_urg(0);
	put(fd[0], "a", MSG_OOB);
	same_say("%d", urgs);
	R(fcntl(fd[1], F_SETOWN, getpid()));
	same_say(fcntl(fd[1], F_GETOWN) == getpid() ? "ours" : "not ours");
	same_sleep(50);
	same_say("%d", urgs);
	put(fd[0], "b", MSG_OOB);
	compute(0);
	same_say("%d", urgs);
	oob(fd[1], 0);
	urgs = 0;
	R(ioctl(fd[1], FIOSETOWN, &(int){ 0 }));
	put(fd[0], "c", MSG_OOB);
	same_sleep(20);
	oob(fd[1], 0);
	same_say("%d", urgs);
	R(ioctl(fd[1], SIOCSPGRP, &(int){ getpid() }));
	same_later(20, send_urgent, &fd[0]);
	compute(0);
	same_say("%d", urgs);
	oob(fd[1], 0);
}

static void signal_thread(int fd[2])
{
	struct f_owner_ex owner = { F_OWNER_TID, gettid() };

	catch_urg(0);
	R(fcntl(fd[1], F_SETOWN_EX, &owner));
	same_later(20, send_urgent, &fd[0]);
	compute(0);
	same_say("%d", urgs);
	oob(fd[1], 0);
}

static pid_t member(int fd, pid_t group)
{
	pid_t child = fork();

	if (!child) {
		close(fd);
		compute(0);
		_exit(urgs == 1 ? 7 : 8);
	}
	setpgid(child, group);
	return child;
}

static void signal_group(int fd[2])
{
	int status[2] = { -1, -1 };
	pid_t first, then;

	catch_urg(0);
	first = member(fd[1], 0);
	then = member(fd[1], first);
	R(fcntl(fd[1], F_SETOWN, -first) * 0);
	same_sleep(20);
	put(fd[0], "u", MSG_OOB);
	waitpid(first, &status[0], 0);
	waitpid(then, &status[1], 0);
	same_say("%d and %d, here %d", WEXITSTATUS(status[0]), WEXITSTATUS(status[1]), urgs);
}

/* A read that waits on the same socket ends with EINTR, before the octet is passed over */
static void signal_in_read(int fd[2])
{
	char buf[8];

	catch_urg(0);
	R(fcntl(fd[1], F_SETOWN, getpid()));
	for (int i = 0; i < 5; i++) {
		same_later(20, send_urgent, &fd[0]);
		R(recv(fd[1], buf, 8, 0));
		oob(fd[1], 0);
		same_join();
	}
}

static void signal_restarts(int fd[2])
{
	char buf[8] = "";

	catch_urg(SA_RESTART);
	taken_from = fd[1];
	R(fcntl(fd[1], F_SETOWN, getpid()));
	same_later(20, send_both, &fd[0]);
	R(recv(fd[1], buf, 8, 0));
	SHOW(buf, 3);
	same_say("%d", urgs);
}

static void signal_in_poll(int fd[2])
{
	struct pollfd p = { .fd = fd[1], .events = POLLRDHUP };

	catch_urg(0);
	R(fcntl(fd[1], F_SETOWN, getpid()));
	same_later(20, send_urgent, &fd[0]);
	R(poll(&p, 1, 5000));
	oob(fd[1], 0);
}

/* As ftp's server: it writes to another connection, and does not read this one */
static void signal_in_write(int fd[2])
{
	static char big[1 << 20];
	int data[2];
	ssize_t n;

	same_pair(data);
	catch_urg(0);
	R(fcntl(fd[1], F_SETOWN, getpid()));
	same_later(100, send_urgent, &fd[0]);
	do {
		n = write(data[0], big, sizeof(big));
	} while (n == sizeof(big));
	same_say(n < 0 && errno != EINTR ? "write: %s" : "interrupted", strerror(errno));
	same_say("%d", urgs);
	oob(fd[1], 0);
}

static void signal_before_connect(int fd[2])
{
	int s = socket(AF_INET, SOCK_STREAM, 0), a;

	catch_urg(0);
	R(fcntl(s, F_SETOWN, getpid()));
	R(connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	a = accept(same_listener, NULL, NULL);
	put(s, "x", 0);
	same_wait(a, POLLIN);
	get(a, 1, 0);
	put(a, "y", 0);
	same_wait(s, POLLIN);
	get(s, 1, 0);
	same_later(20, send_urgent, &a);
	compute(0);
	same_say("%d", urgs);
	oob(s, 0);
}

/* A filter that lets the process have no thread; a child sends, which has its own life */
static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	R(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	R(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void signal_without_thread(int fd[2])
{
	double end;
	pid_t child;

	catch_urg(0);
	fflush(stdout);
	child = fork();
	if (!child) {
		same_sleep(50);
		send(fd[0], "u", 1, MSG_OOB);
		_exit(0);
	}
	filter();
	R(fcntl(fd[1], F_SETOWN, getpid()));
	for (end = same_now() + 0.3; same_now() < end;)
		;
	same_say("without a call: %d", urgs);
	same_wait(fd[1], POLLPRI);
	same_say("behind one: %d", urgs);
	oob(fd[1], 0);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("poll and select", polled),
		SAME("epoll by level", level_set),
		SAME("epoll by level, EPOLLPRI alone", level_pri),
		SAME("epoll by edge", edge_set),
		SAME("epoll by edge, EPOLLPRI alone", edge_pri),
		SAME("EPOLLONESHOT", oneshot),
		SAME("epoll_wait wakes", epoll_waits),
		SAME("SIGURG to the owner, who makes no call", signal_owner),
		SAME("SIGURG to a thread", signal_thread),
		SAME("SIGURG to a process group", signal_group),
		SAME("SIGURG in a read of the same socket", signal_in_read),
		SAME("SIGURG with SA_RESTART", signal_restarts),
		SAME("SIGURG in poll()", signal_in_poll),
		SAME("SIGURG in a write to another socket", signal_in_write),
		SAME("F_SETOWN before connect()", signal_before_connect),
		DIFFERS("SIGURG where no thread may be", signal_without_thread,
			"prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0): 0\n"
			"prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program): 0\n"
			"fcntl(fd[1], F_SETOWN, getpid()): 0\n"
			"without a call: 0\n"
			"behind one: 1\n"
			"urgent: 1 'u'\n"),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
