/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of an open file with several numbers. As calls.c, for the kernel's TCP and
 * for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* --- numbers --- */

static bool several(void)
{
	int fd[2], more[3];

	need(pair(fd));
	more[0] = dup(fd[0]);
	more[1] = fcntl(fd[0], F_DUPFD, 200);
	more[2] = dup3(more[0], 300, O_CLOEXEC);
	need(more[0] >= 0 && more[1] >= 200 && more[2] == 300);
	need(!(fcntl(more[1], F_GETFD) & FD_CLOEXEC) && fcntl(more[2], F_GETFD) & FD_CLOEXEC);
	need(talk(fd[0], fd[1]) && talk(more[0], fd[1]) && talk(more[2], fd[1]));
	need(!close(fd[0]) && close(fd[0]) < 0 && errno == EBADF);
	need(talk(more[1], fd[1]) && !close(more[2]) && !close(more[1]) && talk(more[0], fd[1]));
	need(recv(fd[1], (char[1]){ 0 }, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	need(write(more[0], "end", 3) == 3 && !close(more[0]));
	need(recv(fd[1], (char[4]){ 0 }, 3, MSG_WAITALL) == 3 && at_end(fd[1]));
	close(fd[1]);
	return true;
}

static bool onto(void)
{
	int a[2], b[2], file = open("/dev/null", O_RDWR);

	need(pair(a) && pair(b));
	need(write(b[0], "last", 4) == 4);
	need(dup2(a[0], b[0]) == b[0]);
	need(recv(b[1], (char[4]){ 0 }, 4, MSG_WAITALL) == 4 && at_end(b[1]));
	need(talk(b[0], a[1]) && !close(a[0]) && talk(b[0], a[1]));
	need(dup2(file, b[0]) == b[0] && at_end(a[1]));
	need(write(b[0], "x", 1) == 1 && read(b[0], (char[1]){ 0 }, 1) == 0);
	close(file);
	close(b[0]);
	close(a[1]);
	close(b[1]);
	return true;
}

/* Onto one of its own numbers, and from a file in which another stood */
static bool onto_itself(void)
{
	int fd[2], more;

	need(pair(fd));
	need(dup2(fd[0], fd[0]) == fd[0] && talk(fd[0], fd[1]));
	more = dup(fd[0]);
	need(dup2(fd[0], more) == more && talk(more, fd[1]));
	need(dup2(more, fd[0]) == fd[0] && !close(more) && talk(fd[0], fd[1]));
	need(!close(fd[0]) && at_end(fd[1]));
	close(fd[1]);
	return true;
}

static bool errors(void)
{
	struct rlimit before, limit;
	int fd[2], free_fd;

	need(pair(fd) && !getrlimit(RLIMIT_NOFILE, &before));
	free_fd = dup(fd[0]);
	close(free_fd);
	need(dup(-1) < 0 && errno == EBADF);
	need(dup(free_fd) < 0 && errno == EBADF);
	need(dup2(free_fd, fd[0]) < 0 && errno == EBADF && talk(fd[0], fd[1]));
	need(dup2(free_fd, free_fd) < 0 && errno == EBADF);
	need(dup3(fd[0], fd[0], 0) < 0 && errno == EINVAL);
	need(dup3(fd[0], free_fd, 1) < 0 && errno == EINVAL && !is_open(free_fd));
	need(dup2(fd[0], -1) < 0 && errno == EBADF);
	need(dup2(fd[0], (int)before.rlim_cur) < 0 && errno == EBADF);
	need(fcntl(fd[0], F_DUPFD, -1) < 0 && errno == EINVAL);
	need(fcntl(fd[0], F_DUPFD, (int)before.rlim_cur) < 0 && errno == EINVAL);
	limit = (struct rlimit){ (rlim_t)free_fd, before.rlim_max };
	need(!setrlimit(RLIMIT_NOFILE, &limit));
	need(dup(fd[0]) < 0 && errno == EMFILE);
	need(dup(fd[0]) < 0 && errno == EMFILE);
	need(dup2(fd[0], free_fd) < 0 && errno == EBADF);
	need(talk(fd[0], fd[1]) && !setrlimit(RLIMIT_NOFILE, &before));
	need(!close(fd[0]) && at_end(fd[1]));
	close(fd[1]);
	return true;
}

static bool flags(void)
{
	int fd[2], more;

	need(pair(fd));
	more = dup(fd[0]);
	need(nonblock(more) && read(fd[0], (char[1]){ 0 }, 1) < 0 && errno == EAGAIN);
	need(!fcntl(more, F_SETFD, FD_CLOEXEC) && !fcntl(fd[0], F_GETFD));
	need(!shutdown(more, SHUT_WR) && at_end(fd[1]));
	need(write(fd[0], "x", 1) < 0 && errno == EPIPE);
	close(more);
	done(fd);
	return true;
}

static bool standard(void)
{
	int keep[2] = { fcntl(0, F_DUPFD, 400), fcntl(1, F_DUPFD, 400) }, fd[2], bad = 0;
	char buf[8] = "";

	need(pair(fd));
	fflush(stdout);
	bad |= dup2(fd[1], 0) != 0 || dup2(fd[1], 1) != 1 || close(fd[1]);
	bad |= write(fd[0], "hello", 5) != 5 || read(0, buf, 8) != 5;
	bad |= write(1, buf, 5) != 5 || recv(fd[0], buf, 5, MSG_WAITALL) != 5;
	bad |= close(0) || write(1, "bye", 3) != 3;
	bad |= dup2(keep[1], 1) != 1;
	dup2(keep[0], 0);
	close(keep[0]);
	close(keep[1]);
	need(!bad && recv(fd[0], buf, 3, MSG_WAITALL) == 3 && at_end(fd[0]));
	close(fd[0]);
	return true;
}

/* --- before there is a connection --- */

static bool unconnected(void)
{
	int first = socket(AF_INET, SOCK_STREAM, 0), fd[2] = { dup(first), -1 };

	need(fd[0] >= 0 && !close(first));
	need(!connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)));
	fd[1] = accept(lfd, NULL, NULL);
	need(fd[1] >= 0 && talk(fd[0], fd[1]));
	done(fd);
	return true;
}

static bool listener(void)
{
	int high = fcntl(lfd, F_DUPFD, 500), fd[2];

	need(high >= 500 && !close(lfd));
	need(dup2(high, lfd) == lfd && pair(fd) && talk(fd[0], fd[1]));
	done(fd);
	need(!close(high) && pair(fd) && talk(fd[0], fd[1]));
	done(fd);
	return true;
}

/* --- threads and processes --- */

static void *read_one(void *arg)
{
	char c = 0;

	return (void *)(read(*(int *)arg, &c, 1) == 1 ? (long)c : -1L);
}

static bool close_beside_a_reader(void)
{
	int fd[2], more;
	pthread_t thread;
	void *got;

	need(pair(fd));
	more = dup(fd[0]);
	pthread_create(&thread, NULL, read_one, &more);
	usleep(50000);
	need(!close(fd[0]));
	usleep(20000);
	need(write(fd[1], "r", 1) == 1 && !pthread_join(thread, &got) && (long)got == 'r');
	close(more);
	close(fd[1]);
	return true;
}

static volatile int stop;

static void *dup_and_close(void *arg)
{
	int fd;

	while (!stop) {
		fd = dup(*(int *)arg);
		if (fd < 0 || close(fd))
			return (void *)1;
	}
	return NULL;
}

static bool numbers_come_and_go(void)
{
	int fd[2];
	pthread_t thread;
	void *bad;

	need(pair(fd));
	stop = 0;
	pthread_create(&thread, NULL, dup_and_close, &fd[0]);
	for (int i = 0; i < 2000; i++)
		need(talk(fd[0], fd[1]));
	stop = 1;
	need(!pthread_join(thread, &bad) && !bad);
	done(fd);
	return true;
}

static bool forked(void)
{
	int fd[2], more, status;
	pid_t pid;

	need(pair(fd));
	more = dup(fd[0]);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		_exit(!(write(more, "child", 5) == 5 && !close(more)));
	}
	need(waitpid(pid, &status, 0) == pid && !status);
	need(recv(fd[1], (char[5]){ 0 }, 5, MSG_WAITALL) == 5);
	need(talk(more, fd[1]) && !close(more) && talk(fd[0], fd[1]));
	need(!close(fd[0]) && at_end(fd[1]));
	close(fd[1]);
	return true;
}

/* --- epoll --- */

static int events_of(int epfd, struct epoll_event *events, int ms)
{
	return epoll_wait(epfd, events, 4, ms);
}

static bool add(int epfd, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	return !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event);
}

/* A registration lives as long as the open file, even though its number is closed */
static bool registration_stays(void)
{
	struct epoll_event event[4] = { { .events = EPOLLIN } };
	int fd[2], more, epfd = epoll_create1(0);

	need(pair(fd) && add(epfd, fd[0], EPOLLIN, 77));
	more = dup(fd[0]);
	need(!close(fd[0]) && events_of(epfd, event, 0) == 0);
	need(write(fd[1], "x", 1) == 1);
	need(events_of(epfd, event, 1000) == 1 && event[0].data.u64 == 77);
	need(read(more, (char[1]){ 0 }, 1) == 1 && events_of(epfd, event, 0) == 0);
	need(epoll_ctl(epfd, EPOLL_CTL_MOD, fd[0], event) < 0 && errno == EBADF);
	need(epoll_ctl(epfd, EPOLL_CTL_MOD, more, event) < 0 && errno == ENOENT);
	/* The number again: the registration is under it */
	need(dup2(more, fd[0]) == fd[0] && !epoll_ctl(epfd, EPOLL_CTL_DEL, fd[0], NULL));
	need(write(fd[1], "x", 1) == 1 && ready(more, POLLIN, 1000) == POLLIN);
	need(events_of(epfd, event, 0) == 0);
	close(more);
	close(epfd);
	done(fd);
	return true;
}

static bool two_registrations(void)
{
	struct epoll_event event[4];
	int fd[2], more, epfd = epoll_create1(0);

	need(pair(fd));
	more = dup(fd[0]);
	need(add(epfd, fd[0], EPOLLIN | EPOLLET, 1) && add(epfd, more, EPOLLIN | EPOLLET, 2));
	need(!add(epfd, more, EPOLLIN, 3) && errno == EEXIST);
	events_of(epfd, event, 0);
	for (int i = 0; i < 3; i++) {
		need(write(fd[1], "x", 1) == 1 && ready(more, POLLIN, 1000) == POLLIN);
		need(events_of(epfd, event, 1000) == 2 &&
		     event[0].data.u64 + event[1].data.u64 == 3);
		need(events_of(epfd, event, 0) == 0);
	}
	need(!epoll_ctl(epfd, EPOLL_CTL_DEL, fd[0], NULL));
	need(write(fd[1], "x", 1) == 1);
	need(events_of(epfd, event, 1000) == 1 && event[0].data.u64 == 2);
	need(!close(more) && !close(fd[0]) && events_of(epfd, event, 0) == 0);
	close(fd[1]);
	close(epfd);
	return true;
}

static bool last_number_leaves_the_set(void)
{
	struct epoll_event event[4];
	int fd[2], more, epfd = epoll_create1(0);

	need(pair(fd) && add(epfd, fd[0], EPOLLIN | EPOLLRDHUP, 1));
	more = dup(fd[0]);
	need(!close(fd[0]) && !close(more));
	need(at_end(fd[1]) && !close(fd[1]));
	need(events_of(epfd, event, 50) == 0);
	close(epfd);
	return true;
}

static bool set_with_two_numbers(void)
{
	struct epoll_event event[4];
	int fd[2], epfd = epoll_create1(0), more = dup(epfd);

	need(pair(fd) && add(epfd, fd[0], EPOLLIN, 5));
	need(write(fd[1], "x", 1) == 1 && ready(fd[0], POLLIN, 1000));
	need(events_of(more, event, 1000) == 1 && event[0].data.u64 == 5);
	need(!close(epfd) && events_of(more, event, 1000) == 1 && event[0].data.u64 == 5);
	epfd = dup(more);
	need(epoll_ctl(more, EPOLL_CTL_DEL, fd[0], NULL) == 0 && events_of(epfd, event, 0) == 0);
	close(more);
	need(add(epfd, fd[0], EPOLLIN, 6) && events_of(epfd, event, 1000) == 1);
	close(epfd);
	done(fd);
	return true;
}

/* What a child closes stays in the set that it shares with its parent */
static bool set_shared_with_a_child(void)
{
	struct epoll_event event[4];
	int fd[2], epfd = epoll_create1(0), status;
	pid_t pid;

	need(pair(fd) && add(epfd, fd[0], EPOLLIN, 9) && events_of(epfd, event, 0) == 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		close(epfd);
		_exit(0);
	}
	need(waitpid(pid, &status, 0) == pid && !status);
	need(write(fd[1], "x", 1) == 1);
	need(events_of(epfd, event, 1000) == 1 && event[0].data.u64 == 9);
	close(epfd);
	done(fd);
	return true;
}

/* What is no message, or says that it is longer than it is, beside a stream */
static bool messages_that_lie(void)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = "";
	struct cmsghdr *c = (struct cmsghdr *)(void *)control;
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	int fd[2], local[2];

	need(pair(fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, local));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = (size_t)1 << 40;
	need(sendmsg(local[0], &msg, 0) < 0 && errno == EINVAL);
	msg.msg_control = (void *)8;
	need(sendmsg(local[0], &msg, 0) < 0 && errno == EFAULT);
	need(sendmsg(local[0], (struct msghdr *)8, 0) < 0 && errno == EFAULT);
	done(local);
	done(fd);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "several numbers, one connection", several },
		{ "dup2 onto a connection ends it", onto },
		{ "dup2 onto its own numbers", onto_itself },
		{ "errors", errors },
		{ "flags of the file and of the number", flags },
		{ "standard input and output", standard },
		{ "a socket that is connected later", unconnected },
		{ "a listener", listener },
		{ "a number is closed beside a reader", close_beside_a_reader },
		{ "numbers come and go beside a reader", numbers_come_and_go },
		{ "a child closes its numbers", forked },
		{ "a registration outlives its number", registration_stays },
		{ "registrations under two numbers", two_registrations },
		{ "the last number leaves the set", last_number_leaves_the_set },
		{ "a set with two numbers", set_with_two_numbers },
		{ "a set shared with a child", set_shared_with_a_child },
		{ "messages that lie", messages_that_lie },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
