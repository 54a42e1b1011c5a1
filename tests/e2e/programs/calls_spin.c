/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What ends a wait ends it while it spins, too: signals, cancellation, its time. To be run by
 * itself and under the launcher, where each wait spins for a second: whoever notices only behind
 * the spin is late. And what a wait goes by may change from one to the next.
 */
#include "tests/e2e/programs/calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

/* The spin lasts for 1,000 ms, and a loaded machine is slow */
enum { SIGNAL_MS = 50, LATE_MS = 600 };

static struct timespec begun;

static void clock_begin(void)
{
	clock_gettime(CLOCK_MONOTONIC, &begun);
}

static long clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
}

static volatile int seen;

static void handler(int sig)
{
	seen++;
}

static void alarm_soon(void)
{
	struct itimerval soon = { .it_value.tv_usec = SIGNAL_MS * 1000 };
	struct sigaction action = { .sa_handler = handler };

	seen = 0;
	sigaction(SIGALRM, &action, NULL);
	clock_begin();
	setitimer(ITIMER_REAL, &soon, NULL);
}

/* @r: what the call returned */
static bool was_interrupted(long r)
{
	int err = errno;
	long ms = clock_ms();

	need(r < 0 && err == EINTR && seen == 1);
	return ms >= SIGNAL_MS - 1 && ms < LATE_MS;
}

static bool signal_recv(void)
{
	int fd[2];
	bool good;
	char c;

	need(pair(fd));
	alarm_soon();
	good = was_interrupted(recv(fd[0], &c, 1, 0));
	done(fd);
	return good;
}

static bool signal_poll(void)
{
	struct pollfd p = { .events = POLLIN };
	int fd[2];
	bool good;

	need(pair(fd));
	p.fd = fd[0];
	alarm_soon();
	good = was_interrupted(poll(&p, 1, 5000));
	done(fd);
	return good;
}

static bool signal_epoll(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	bool good;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	alarm_soon();
	good = was_interrupted(epoll_wait(ep, &e, 1, 5000));
	done(fd);
	close(ep);
	return good;
}

static bool signal_accept(void)
{
	alarm_soon();
	return was_interrupted(accept(lfd, NULL, NULL));
}

/* Blocked outside of the call, and let through by its mask */
static bool signal_mask(void)
{
	struct timespec limit = { .tv_sec = 5 };
	struct pollfd p = { .events = POLLIN };
	sigset_t alarms, none;
	int fd[2];
	bool good;

	need(pair(fd));
	p.fd = fd[0];
	sigemptyset(&none);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
	alarm_soon();
	good = was_interrupted(ppoll(&p, 1, &limit, &none));
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	done(fd);
	return good;
}

static void *reader(void *arg)
{
	char c;

	return (void *)(long)recv(*(int *)arg, &c, 1, 0);
}

static bool cancellation(void)
{
	struct timespec while_ = { .tv_nsec = SIGNAL_MS * 1000000 };
	pthread_t thread;
	void *result;
	int fd[2];
	long ms;

	need(pair(fd) && !pthread_create(&thread, NULL, reader, &fd[0]));
	nanosleep(&while_, NULL);
	clock_begin();
	need(!pthread_cancel(thread) && !pthread_join(thread, &result));
	ms = clock_ms();
	done(fd);
	return result == PTHREAD_CANCELED && ms < LATE_MS;
}

static bool in_time(long ms)
{
	long is = clock_ms();

	clock_begin();
	return is >= ms && is < ms + LATE_MS;
}

static bool times(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct timeval tv = { .tv_usec = 50000 };
	struct pollfd p = { .events = POLLIN };
	int fd[2], ep = epoll_create1(0);
	fd_set set;
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	p.fd = fd[0];
	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	clock_begin();
	need(!poll(&p, 1, 50) && in_time(50));
	need(!select(fd[0] + 1, &set, NULL, NULL, &tv) && in_time(50));
	need(!epoll_wait(ep, &e, 1, 50) && in_time(50));
	tv = (struct timeval){ .tv_usec = 50000 };
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	clock_begin();
	need(recv(fd[0], &c, 1, 0) < 0 && errno == EAGAIN && in_time(48));
	close(ep);
	done(fd);
	return true;
}

static void *late_writer(void *arg)
{
	struct timespec while_ = { .tv_nsec = 900000000 };

	nanosleep(&while_, NULL);
	return (void *)(long)write(*(int *)arg, "x", 1);
}

/* The time is that of all octets: 1 s, and not 0.9 s for the first and 1 s more for the second */
static bool time_of_all(void)
{
	struct timeval tv = { .tv_sec = 1 };
	pthread_t thread;
	int fd[2];
	bool good;
	char c[2];

	need(pair(fd) && !setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	clock_begin();
	need(!pthread_create(&thread, NULL, late_writer, &fd[1]));
	need(recv(fd[0], c, 2, MSG_WAITALL) == 1);
	good = in_time(990);
	need(!pthread_join(thread, NULL));
	done(fd);
	return good;
}

/* What came before the end of the time is returned, though it is less than was wanted */
static bool time_of_few(void)
{
	struct timeval tv = { .tv_usec = 50000 };
	int fd[2], lowat = 2;
	char c[2];

	need(pair(fd) && !setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVLOWAT, &lowat, sizeof(lowat)));
	need(write(fd[1], "x", 1) == 1);
	clock_begin();
	need(recv(fd[0], c, 2, 0) == 1 && in_time(48));
	done(fd);
	return true;
}

/* --- close() beneath a wait --- */

struct other {
	int fd, err;
	ssize_t got;
	char c;
	bool begins; /* atomic */
};

static void *other_read(void *arg)
{
	struct other *o = arg;

	__atomic_store_n(&o->begins, true, __ATOMIC_RELEASE);
	o->got = recv(o->fd, &o->c, 1, 0);
	o->err = errno;
	return NULL;
}

/* It reads its own socket's octet, or says EBADF; it never takes one of the number's next file */
static bool number_of_another(void)
{
	struct timespec moment = { .tv_nsec = 1000000 }, while_ = { .tv_nsec = 400000000 };
	struct other o = { 0 };
	pthread_t thread;
	int fd[2], next[2];
	char c = 0;

	need(pair(fd) && !socketpair(AF_UNIX, SOCK_STREAM, 0, next));
	need(write(next[1], "n", 1) == 1);
	o.fd = fd[0];
	need(!pthread_create(&thread, NULL, other_read, &o));
	while (!__atomic_load_n(&o.begins, __ATOMIC_ACQUIRE))
		nanosleep(&moment, NULL);
	nanosleep(&while_, NULL); /* it is in recv() now, on a busy machine, too */
	need(dup2(next[0], fd[0]) == fd[0]);
	(void)!send(fd[1], "o", 1, MSG_NOSIGNAL);
	need(!pthread_join(thread, NULL));
	need(o.got == 1 ? o.c == 'o' : o.err == EBADF);
	need(recv(fd[0], &c, 1, MSG_DONTWAIT) == 1 && c == 'n');
	close(next[0]);
	close(next[1]);
	done(fd);
	return true;
}

/* --- what a wait goes by --- */

static void *writer(void *arg)
{
	struct timespec while_ = { .tv_nsec = 5000000 };

	nanosleep(&while_, NULL);
	return (void *)(long)write(*(int *)arg, "x", 1);
}

/* A read that has to wait, and may */
static bool waits(int fd[2])
{
	pthread_t thread;
	void *result;
	char c;

	need(!pthread_create(&thread, NULL, writer, &fd[1]));
	need(read(fd[0], &c, 1) == 1);
	return !pthread_join(thread, &result) && result == (void *)1;
}

static bool does_not_wait(int fd)
{
	char c;

	clock_begin();
	return read(fd, &c, 1) < 0 && errno == EAGAIN && clock_ms() < LATE_MS;
}

static bool options(void)
{
	struct timeval some = { .tv_usec = 1000 }, none = { 0 };
	int fd[2], on = 1, off = 0;

	need(pair(fd) && waits(fd) && waits(fd));
	need(!fcntl(fd[0], F_SETFL, fcntl(fd[0], F_GETFL) | O_NONBLOCK));
	need(does_not_wait(fd[0]));
	need(!fcntl(fd[0], F_SETFL, fcntl(fd[0], F_GETFL) & ~O_NONBLOCK));
	need(waits(fd) && waits(fd));
	need(!ioctl(fd[0], FIONBIO, &on) && does_not_wait(fd[0]));
	need(!ioctl(fd[0], FIONBIO, &off) && waits(fd) && waits(fd));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &some, sizeof(some)));
	need(does_not_wait(fd[0]));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	need(waits(fd));
	done(fd);
	return true;
}

/* O_NONBLOCK is the file's, which a child has, too */
static bool options_of_a_child(void)
{
	int fd[2], status = -1;
	pid_t pid;

	need(pair(fd) && waits(fd) && waits(fd));
	pid = fork();
	if (!pid)
		_exit(fcntl(fd[0], F_SETFL, fcntl(fd[0], F_GETFL) | O_NONBLOCK) != 0);
	need(waitpid(pid, &status, 0) == pid && !status);
	need(does_not_wait(fd[0]));
	done(fd);
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "a signal, recv", signal_recv },
		{ "a signal, poll", signal_poll },
		{ "a signal, epoll", signal_epoll },
		{ "a signal, accept", signal_accept },
		{ "a signal that the call's mask lets through", signal_mask },
		{ "the end of a wait's time", times },
		{ "the end of the time, MSG_WAITALL", time_of_all },
		{ "the end of the time, SO_RCVLOWAT", time_of_few },
		{ "cancellation", cancellation },
		{ "a number that becomes another file's", number_of_another },
		{ "options that change between two waits", options },
		{ "options that a child changes", options_of_a_child },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
