/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that sleep while their process is stopped and goes on, or while libc interrupts the thread
 * for a purpose of its own: no handler of the program's runs, and yet Linux ends some of them.
 */
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "tests/e2e/programs/same.h"

/* --- when the main thread sleeps --- */

static char state_of(pid_t pid)
{
	char path[40], text[400] = "";
	FILE *file;
	char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	end = strrchr(text, ')');
	return end ? end[2] : '\0';
}

/* In the call that is meant: it has done nothing else for a while */
static void until_asleep(pid_t pid)
{
	for (int seen = 0; seen < 5; same_sleep(20))
		seen = state_of(pid) == 'S' ? seen + 1 : 0;
}

/* A process of its own, for one that is stopped cannot go on by itself */
static int stop(pid_t pid)
{
	until_asleep(pid);
	kill(pid, SIGSTOP);
	while (state_of(pid) != 'T')
		same_sleep(5);
	return kill(pid, SIGCONT);
}

struct after {
	int told[2]; /* a pipe: it was stopped, and goes on */
	void (*fn)(void *arg);
	void *arg;
};

static void after_stop(void *arg)
{
	struct after *after = arg;
	char c;

	close(after->told[1]);
	if (read(after->told[0], &c, 1) != 0)
		same_say("the other process has failed");
	after->fn(after->arg);
}

/* Stops this process when it sleeps; then, in another thread, @fn */
static void stopped(void (*fn)(void *arg), void *arg)
{
	static struct after after;
	char pid[16], *args[] = { "same_stop", "--stop", pid, NULL };
	extern char **environ;
	pid_t child;

	after.fn = fn;
	after.arg = arg;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (pipe(after.told) || fcntl(after.told[0], F_SETFD, FD_CLOEXEC) ||
	    posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ))
		same_say("stopped: %s", strerror(errno));
	same_later(0, after_stop, &after);
}

/* libc tells all threads, by a signal of its own */
static void changed_user(void *arg)
{
	struct after *after = arg;

	until_asleep(getpid());
	if (seteuid(geteuid()))
		same_say("seteuid: %s", strerror(errno));
	after->fn(after->arg);
}

static void changes_user(void (*fn)(void *arg), void *arg)
{
	static struct after after;

	after.fn = fn;
	after.arg = arg;
	same_later(0, changed_user, &after);
}

static void put(void *arg)
{
	if (write(*(int *)arg, "x", 1) != 1)
		same_say("put: %s", strerror(errno));
}

static void take_all(void *arg)
{
	static char buf[65536];

	same_sleep(50);
	while (recv(*(int *)arg, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		same_sleep(1);
}

/* --- calls --- */

/* How the call is disturbed, and what is done so that it does not sleep for ever */
static void (*disturb)(void (*fn)(void *arg), void *arg);

static void timed(int fd, int option)
{
	struct timeval tv = { .tv_sec = 30 };

	R(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)));
}

static void readers(int fd[2])
{
	struct iovec iov = { (char[2]){ 0 }, 1 };
	struct mmsghdr many[2] = { { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } } };
	char buf[4];

	disturb(put, &fd[1]);
	R(read(fd[0], buf, 1));
	same_join();
	disturb(put, &fd[1]);
	R(recv(fd[0], buf, 1, MSG_WAITALL));
	same_join();
	disturb(put, &fd[1]);
	R(recvmmsg(fd[0], many, 1, 0, NULL));
	same_join();
}

static void reader_timed(int fd[2])
{
	char c;

	timed(fd[0], SO_RCVTIMEO);
	disturb(put, &fd[1]);
	R(recv(fd[0], &c, 1, 0));
}

static void fill(int fd)
{
	static char buf[65536];

	do
		same_sleep(20);
	while (send(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0);
}

static void writer(int fd[2])
{
	fill(fd[0]);
	disturb(take_all, &fd[1]);
	R(write(fd[0], "x", 1));
}

static void writer_timed(int fd[2])
{
	timed(fd[0], SO_SNDTIMEO);
	fill(fd[0]);
	disturb(take_all, &fd[1]);
	R(write(fd[0], "x", 1));
}

static void polls(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLIN };
	struct timespec ts = { .tv_sec = 30 };
	struct timeval tv = { .tv_sec = 30 };
	fd_set set;
	char c;

	disturb(put, &fd[1]);
	R(poll(&p, 1, -1));
	same_join();
	read(fd[0], &c, 1);
	disturb(put, &fd[1]);
	R(ppoll(&p, 1, &ts, NULL));
	same_join();
	read(fd[0], &c, 1);
	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	disturb(put, &fd[1]);
	R(select(FD_SETSIZE, &set, NULL, NULL, &tv));
	same_join();
	read(fd[0], &c, 1);
	FD_SET(fd[0], &set);
	disturb(put, &fd[1]);
	R(pselect(FD_SETSIZE, &set, NULL, NULL, NULL, NULL));
}

static void sets(int fd[2])
{
	struct epoll_event e = { .events = EPOLLIN };
	struct timespec ts = { .tv_sec = 30 };
	int ep = epoll_create1(EPOLL_CLOEXEC), outer = epoll_create1(EPOLL_CLOEXEC);
	struct pollfd p = { .fd = ep, .events = POLLIN };
	char c;

	R(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	R(epoll_ctl(outer, EPOLL_CTL_ADD, ep, &e));
	disturb(put, &fd[1]);
	R(epoll_wait(ep, &e, 1, -1));
	same_join();
	read(fd[0], &c, 1);
	disturb(put, &fd[1]);
	R(epoll_pwait(ep, &e, 1, 30000, NULL));
	same_join();
	read(fd[0], &c, 1);
	disturb(put, &fd[1]);
	R(epoll_pwait2(ep, &e, 1, &ts, NULL));
	same_join();
	read(fd[0], &c, 1);
	disturb(put, &fd[1]);
	R(epoll_wait(outer, &e, 1, -1));
	same_join();
	read(fd[0], &c, 1);
	disturb(put, &fd[1]);
	R(poll(&p, 1, -1));
}

/* A set in which nothing of ours is */
static void set_of_pipes(int fd[2])
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), pipes[2];

	R(pipe2(pipes, O_CLOEXEC));
	R(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e));
	disturb(put, &pipes[1]);
	R(epoll_wait(ep, &e, 1, -1));
	same_join();
}

static void connect_later(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&same_addr, sizeof(same_addr)))
		same_say("connect: %s", strerror(errno));
}

static void accepts(int fd[2])
{
	disturb(connect_later, NULL);
	R(accept4(same_listener, NULL, NULL, SOCK_CLOEXEC) < 0);
	same_join();
	timed(same_listener, SO_RCVTIMEO);
	disturb(connect_later, NULL);
	R(accept4(same_listener, NULL, NULL, SOCK_CLOEXEC) < 0 ? errno : 0);
}

/* With one place, which is taken */
static int full_listener(struct sockaddr_in *a)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(*a);

	*a = same_addr;
	a->sin_port = 0;
	if (bind(listener, (struct sockaddr *)a, len) || listen(listener, 0) ||
	    getsockname(listener, (struct sockaddr *)a, &len))
		same_say("full_listener: %s", strerror(errno));
	connect(first, (struct sockaddr *)a, len);
	same_sleep(20);
	return listener;
}

static void accept_one(void *arg)
{
	close(accept(*(int *)arg, NULL, NULL));
}

static void connects(int fd[2])
{
	struct sockaddr_in a;
	int listener = full_listener(&a), s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	disturb(accept_one, &listener);
	R(connect(s, (struct sockaddr *)&a, sizeof(a)));
	same_join();
}

static void connect_timed(int fd[2])
{
	struct sockaddr_in a;
	int listener = full_listener(&a), s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	timed(s, SO_SNDTIMEO);
	disturb(accept_one, &listener);
	R(connect(s, (struct sockaddr *)&a, sizeof(a)));
	same_join();
}

/* --- cases --- */

static void own_alone(int fd[2])
{
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	fcntl(fd[1], F_SETFD, FD_CLOEXEC);
	fcntl(same_listener, F_SETFD, FD_CLOEXEC);
}

#define BOTH(name)                            \
	static void name##_stopped(int fd[2]) \
	{                                     \
		own_alone(fd);                \
		disturb = stopped;            \
		name(fd);                     \
	}                                     \
	static void name##_user(int fd[2])    \
	{                                     \
		disturb = changes_user;       \
		name(fd);                     \
	}

BOTH(readers)
BOTH(reader_timed)
BOTH(writer)
BOTH(writer_timed)
BOTH(polls)
BOTH(sets)
BOTH(set_of_pipes)
BOTH(accepts)
BOTH(connects)
BOTH(connect_timed)

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("a stop: read and its kin", readers_stopped),
		DIFFERS("a stop: recv with SO_RCVTIMEO", reader_timed_stopped,
			"setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)): 0\n"
			"recv(fd[0], &c, 1, 0): 1\n"),
		SAME("a stop: write", writer_stopped),
		DIFFERS("a stop: write with SO_SNDTIMEO", writer_timed_stopped,
			"setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)): 0\n"
			"write(fd[0], \"x\", 1): 1\n"),
		SAME("a stop: poll and select", polls_stopped),
		SAME("a stop: epoll_wait and its kin", sets_stopped),
		SAME("a stop: epoll_wait for others", set_of_pipes_stopped),
		SAME("a stop: accept", accepts_stopped),
		SAME("a stop: connect", connects_stopped),
		DIFFERS("a stop: connect with SO_SNDTIMEO", connect_timed_stopped,
			"setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)): 0\n"
			"connect(s, (struct sockaddr *)&a, sizeof(a)): 0\n"),
		SAME("seteuid: read and its kin", readers_user),
		SAME("seteuid: recv with SO_RCVTIMEO", reader_timed_user),
		SAME("seteuid: write", writer_user),
		SAME("seteuid: write with SO_SNDTIMEO", writer_timed_user),
		SAME("seteuid: poll and select", polls_user),
		SAME("seteuid: epoll_wait and its kin", sets_user),
		SAME("seteuid: epoll_wait for others", set_of_pipes_user),
		SAME("seteuid: accept", accepts_user),
		SAME("seteuid: connect", connects_user),
		SAME("seteuid: connect with SO_SNDTIMEO", connect_timed_user),
	};

	if (argc == 3 && !strcmp(argv[1], "--stop"))
		return stop(atoi(argv[2])) != 0;
	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
