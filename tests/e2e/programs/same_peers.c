/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What other interposers of sockets have got wrong, one case for each: the epoll of librspreload
 * (rdma-core, July 2026), its other defects, and what users of libvma, Onload and VPP's LDP have
 * complained of, as far as calls can show it.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/time.h>

#include "tests/e2e/programs/same_sets.h"
#include "tests/entries.h"

static void alarm_in(int ms)
{
	struct itimerval timer = { .it_value.tv_usec = ms * 1000 };

	same_signals = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void later_put(void *arg)
{
	sets_put(*(int *)arg, "x");
}

/* --- librspreload's epoll --- */

static void mod_absent(int fd[2])
{
	int ep = epoll_create1(0);

	MOD(ep, fd[0], EPOLLIN, 'a');
	DEL(ep, fd[0]);
}

static void add_twice(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, fd[0], EPOLLOUT, 'a');
	WAIT(ep, 8, 0);
}

static void bad_set(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN, 'a');
	WAIT(-1, 8, 0);
	close(ep);
	WAIT(ep, 8, 0);
	ADD(ep, fd[0], EPOLLIN, 'a');
}

static void edge(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'a');
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	WAIT(ep, 8, 0);
}

static void one_shot(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLONESHOT, 'a');
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
}

static void flags(int fd[2])
{
	int ep = epoll_create1(0), other = epoll_create1(0);

	ADD(ep, fd[0], EPOLLRDHUP, 'a');
	ADD(other, fd[0], EPOLLPRI, 'p');
	ADD(other, fd[1], EPOLLOUT | EPOLLEXCLUSIVE, 'x');
	sets_put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	WAIT(ep, 8, NOT);
	WAIT(other, 8, 0);
	R(shutdown(fd[1], SHUT_WR));
	WAIT(ep, 8, COMES);
}

static void nested(int fd[2])
{
	int ep = epoll_create1(0), outer = epoll_create1(0);
	struct pollfd p = { .fd = ep, .events = POLLIN };

	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(outer, ep, EPOLLIN, 'e');
	R(poll(&p, 1, 0));
	sets_put(fd[1], "x");
	R(poll(&p, 1, COMES));
	same_say("%d", p.revents);
	WAIT(outer, 8, COMES);
}

static void pwaits(int fd[2])
{
	struct timespec ts = { 0, 1000000 };
	struct epoll_event e;
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN, 'a');
	R(epoll_pwait(ep, &e, 1, 0, NULL));
	R(epoll_pwait2(ep, &e, 1, &ts, NULL));
	sets_put(fd[1], "x");
	R(epoll_pwait(ep, &e, 1, COMES, NULL));
	R(epoll_pwait2(ep, &e, 1, NULL, NULL));
}

static void closed_member(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLOUT, 'a');
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
	close(fd[0]);
	WAIT(ep, 8, NOT);
}

/* Nothing is left of a set with members: no descriptor, no thread */
static void closed_set(int fd[2])
{
	int fds = 0, tasks = 0;

	for (int i = 0; i < 20; i++) {
		int ep = epoll_create1(0);

		if (i == 10) {
			fds = entries("/proc/self/fd");
			tasks = entries("/proc/self/task");
		}
		if (epoll_ctl(ep, EPOLL_CTL_ADD, fd[0],
			      &(struct epoll_event){ .events = EPOLLIN }) ||
		    close(ep))
			same_say("close: %s", strerror(errno));
	}
	R(epoll_create1(0) >= 0);
	same_say("%d descriptors, %d threads more", entries("/proc/self/fd") - fds,
		 entries("/proc/self/task") - tasks);
}

static void interrupted(int fd[2])
{
	struct epoll_event e;
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN, 'a');
	alarm_in(30);
	R(epoll_wait(ep, &e, 1, -1));
	same_say("%d", (int)same_signals);
	alarm_in(30);
	R(epoll_wait(ep, &e, 1, COMES));
	same_say("%d", (int)same_signals);
}

/* --- its other defects --- */

static void file_sent(int fd[2])
{
	int file = memfd_create("file", 0);
	off_t at = 2;
	char buf[8] = "";

	sets_put(file, "0123456789");
	R(sendfile(fd[0], file, &at, 4));
	same_say("%ld", (long)at);
	sets_take(fd[1], 2);
	R(recv(fd[1], buf, 8, 0));
	same_show("buf", buf, 2);
	R(lseek(file, 1, SEEK_SET));
	R(sendfile(fd[0], file, NULL, 3));
	R(lseek(file, 0, SEEK_CUR));
}

static void duplicated(int fd[2])
{
	int a = dup(fd[0]), b = fcntl(fd[0], F_DUPFD_CLOEXEC, 100);

	same_say("%d %d", a >= 0, b >= 100);
	R(fcntl(b, F_GETFD));
	R(dup2(fd[0], 120));
	close(fd[0]);
	sets_put(a, "x");
	sets_put(b, "y");
	sets_put(120, "z");
	sets_take(fd[1], 3);
}

static void messages(int fd[2])
{
	char a[2] = "", b[4] = "", control[64];
	struct iovec iov[2] = { { a, 2 }, { b, 3 } };
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = control,
			      .msg_controllen = sizeof(control),
			      .msg_flags = MSG_PEEK };

	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	sets_put(fd[1], "01234");
	same_wait(fd[0], POLLIN);
	R(recvmsg(fd[0], &msg, MSG_PEEK));
	same_show("a", a, 2);
	same_show("b", b, 3);
	same_say("%zu", msg.msg_controllen);
	R(recvmsg(fd[0], &msg, MSG_WAITALL));
	R(recvmsg(fd[0], &msg, MSG_DONTWAIT));
	R(readv(fd[0], NULL, 0));
}

static void state_told(int fd[2])
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	R(getsockopt(fd[0], IPPROTO_TCP, TCP_INFO, &info, &len));
	same_say("%d", info.tcpi_state == TCP_ESTABLISHED);
}

static void selects(int fd[2])
{
	struct timeval tv = { 0, 900 }, more = { 60, 0 };
	double begin = same_now();
	fd_set in, except;
	int pipes[2];

	R(pipe(pipes));
	FD_ZERO(&in);
	FD_ZERO(&except);
	FD_SET(fd[0], &in);
	R(select(FD_SETSIZE, &in, NULL, NULL, &tv));
	same_say("%s", same_now() - begin < 0.0009 ? "too early" : "in time");
	same_say("%ld %ld", (long)tv.tv_sec, (long)tv.tv_usec);
	FD_SET(fd[0], &in);
	sets_put(fd[1], "x");
	R(select(FD_SETSIZE, &in, NULL, NULL, &more));
	same_say("%d", more.tv_sec < 60 && more.tv_sec > 50);
	R(shutdown(fd[0], SHUT_WR));
	R(shutdown(fd[1], SHUT_WR));
	same_wait(fd[0], POLLHUP);
	FD_ZERO(&in);
	FD_SET(fd[0], &in);
	FD_SET(fd[0], &except);
	R(select(FD_SETSIZE, &in, NULL, &except, &more));
	same_say("%d %d", !!FD_ISSET(fd[0], &in), !!FD_ISSET(fd[0], &except));
}

static void accepts(int fd[2])
{
	int n = entries("/proc/self/fd");

	same_nonblock(same_listener);
	for (int i = 0; i < 50; i++)
		if (accept(same_listener, NULL, NULL) >= 0 || errno != EAGAIN)
			same_say("accept: %s", strerror(errno));
	same_say("%d", entries("/proc/self/fd") - n);
}

static void closed_twice(int fd[2])
{
	R(close(fd[0]));
	R(close(fd[0]));
	R(close(-1));
	R(shutdown(fd[0], SHUT_RDWR));
	R(recv(fd[0], NULL, 0, 0));
}

/* How often it slept meanwhile; -1: something came */
static void *poll_one(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };
	struct rusage before, behind;
	int got;

	getrusage(RUSAGE_THREAD, &before);
	got = poll(&p, 1, 500);
	getrusage(RUSAGE_THREAD, &behind);
	return (void *)(got ? -1 : behind.ru_nvcsw - before.ru_nvcsw);
}

/* Octets of one connection wake only who waits for them, also beneath poll() */
static void own_wakes(int fd[2])
{
	pthread_t thread;
	int other[2];
	void *slept;

	same_pair(other);
	pthread_create(&thread, NULL, poll_one, &other[0]);
	for (int i = 0; i < 40; i++) {
		sets_put(fd[1], "x");
		sets_take(fd[0], 1);
		same_sleep(2);
	}
	pthread_join(thread, &slept);
	R((long)slept >= 0);
	R((long)slept < 20);
}

/* --- what users of others have complained of --- */

/* libvma 1037: one set, a member armed again and again from inside a handler, as asio does */
static void asio(int fd[2])
{
	int ep = epoll_create1(0), wakes = eventfd(0, EFD_NONBLOCK);
	uint32_t all = EPOLLIN | EPOLLPRI | EPOLLERR | EPOLLHUP | EPOLLET;

	ADD(ep, wakes, EPOLLIN | EPOLLERR | EPOLLET, 'w');
	ADD(ep, fd[0], all, 'a');
	MOD(ep, fd[0], all | EPOLLOUT, 'b');
	WAIT(ep, 8, COMES);
	MOD(ep, wakes, EPOLLIN | EPOLLERR | EPOLLET, 'w');
	R(eventfd_write(wakes, 1));
	WAIT(ep, 8, COMES);
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
	MOD(ep, fd[0], all, 'c');
	WAIT(ep, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(ep, 8, NOT);
}

/* Onload: an edge may be told twice */
static void told_once(int fd[2])
{
	struct epoll_event e;
	int ep = epoll_create1(0), told = 0;

	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'a');
	for (int i = 0; i < 20; i++) {
		sets_put(fd[1], "x");
		told += epoll_wait(ep, &e, 1, COMES);
		told += epoll_wait(ep, &e, 1, 1);
	}
	same_say("%d", told);
}

static int woke;

static void *wait_one(void *arg)
{
	struct epoll_event e;

	if (epoll_wait(*(int *)arg, &e, 1, COMES) == 1)
		__atomic_add_fetch(&woke, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* VPP's LDP: one set by several threads; and only as many wake as there are edges */
static void shared(int fd[2])
{
	pthread_t threads[3];
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'a');
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, wait_one, &ep);
	for (int i = 0; i < 3; i++) {
		same_sleep(NOT);
		sets_put(fd[1], "x");
		for (int n = 0; n < 3000 && __atomic_load_n(&woke, __ATOMIC_SEQ_CST) <= i; n++)
			same_sleep(10);
		same_sleep(NOT);
		R(__atomic_load_n(&woke, __ATOMIC_SEQ_CST));
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	WAIT(ep, 8, NOT);
}

/* rdma-core 512: one thread that connects to itself, and waits for both ends in one set */
static void alone(int fd[2])
{
	int ep = epoll_create1(0), a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), b;

	same_nonblock(same_listener);
	R(connect(a, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	ADD(ep, same_listener, EPOLLIN, 'l');
	ADD(ep, fd[0], EPOLLIN, 'f');
	WAIT(ep, 8, COMES);
	b = accept4(same_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ADD(ep, a, EPOLLOUT, 'a');
	ADD(ep, b, EPOLLOUT, 'b');
	same_wait(a, POLLOUT);
	same_wait(b, POLLOUT);
	WAIT(ep, 8, COMES);
	sets_put(a, "x");
	MOD(ep, b, EPOLLIN, 'b');
	MOD(ep, a, EPOLLIN, 'a');
	WAIT(ep, 8, COMES);
	sets_put(b, "y");
	same_wait(a, POLLIN);
	WAIT(ep, 8, COMES);
}

/* libvma: a number that was a socket's is a file's now */
static void number_again(int fd[2])
{
	int ep = epoll_create1(0), file = memfd_create("file", 0), number = fd[0];
	char buf[4] = "";

	ADD(ep, fd[0], EPOLLIN, 'a');
	close(fd[0]);
	R(dup2(file, number) == number);
	sets_put(number, "abc");
	R(pread(number, buf, 3, 0));
	same_show("buf", buf, 3);
	WAIT(ep, 8, NOT);
	ADD(ep, number, EPOLLIN, 'b');
	R(close(number));
}

/* Times and amounts that others do not know: readiness goes by them */
static void options(int fd[2])
{
	struct timeval tv = { 0, 30000 };
	int ep = epoll_create1(0), low = 3, n = -1;
	double begin;

	R(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	begin = same_now();
	R(read(fd[0], &n, 1));
	same_took(begin, 30);
	R(setsockopt(fd[0], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)));
	ADD(ep, fd[0], EPOLLIN, 'a');
	sets_put(fd[1], "xy");
	WAIT(ep, 8, NOT);
	R(ioctl(fd[0], FIONREAD, &n));
	same_say("%d", n);
	sets_put(fd[1], "z");
	WAIT(ep, 8, COMES);
	n = 1;
	R(ioctl(fd[0], FIONBIO, &n));
	sets_take(fd[0], 3);
	R(read(fd[0], &n, 1));
}

static void woken(int fd[2])
{
	struct epoll_event e;
	int ep = epoll_create1(0);

	same_later(NOT, later_put, &fd[1]);
	ADD(ep, fd[0], EPOLLIN, 'a');
	R(epoll_wait(ep, &e, 1, -1));
	same_join();
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		{ "rspreload epoll 1: MOD of an absent member", mod_absent, NULL },
		{ "rspreload epoll 2: ADD twice", add_twice, NULL },
		{ "rspreload epoll 3: a bad set", bad_set, NULL },
		{ "rspreload epoll 4: EPOLLET", edge, NULL },
		{ "rspreload epoll 5: EPOLLONESHOT", one_shot, NULL },
		{ "rspreload epoll 6: EPOLLRDHUP, EPOLLPRI, EPOLLEXCLUSIVE", flags, NULL },
		{ "rspreload epoll 7: sets in sets and in poll", nested, NULL },
		{ "rspreload epoll 8: epoll_pwait, epoll_pwait2", pwaits, NULL },
		{ "rspreload epoll 9: a closed member", closed_member, NULL },
		{ "rspreload epoll 10: a closed set", closed_set, NULL },
		{ "rspreload epoll 11: a signal", interrupted, NULL },
		{ "rspreload 1: sendfile and its offset", file_sent, NULL },
		{ "rspreload 2: dup, F_DUPFD_CLOEXEC", duplicated, NULL },
		{ "rspreload 3: recvmsg's flags, iovec, control", messages, NULL },
		{ "rspreload 4: TCP_INFO", state_told, NULL },
		{ "rspreload 5: select", selects, NULL },
		{ "rspreload 6: accept that finds nothing", accepts, NULL },
		{ "rspreload 8: close of a bad number", closed_twice, NULL },
		{ "rspreload 9: only who waits is woken", own_wakes, NULL },
		{ "rdma-core 512: a thread that connects to itself", alone, NULL },
		{ "libvma 719: epoll_wait is woken and interrupted", woken, NULL },
		{ "libvma 1037: MOD as asio does", asio, NULL },
		{ "libvma: a number that is a file's now", number_again, NULL },
		{ "Onload: an edge is told once", told_once, NULL },
		{ "VPP: a set of several threads", shared, NULL },
		{ "all: SO_RCVTIMEO, SO_RCVLOWAT, FIONREAD, FIONBIO", options, NULL },
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
