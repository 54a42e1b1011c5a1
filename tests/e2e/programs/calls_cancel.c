/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that are cancelled while they wait on stream sockets: they end, and the connections go on
 * being of use to the others. To be run by itself and under the launcher, as calls.c.
 */
#include "tests/e2e/programs/calls.h"
#include "tests/entries.h"

#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>

#define TIMES 40

static int here[2];  /* the connection at hand */
static int set = -1; /* an epoll set with here[0] in it */
static volatile int cleaned;
static volatile long result;

static void nap(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&ts, &ts))
		;
}

static void clean(void *arg)
{
	cleaned++;
}

/* --- the calls --- */

static long by_read(void)
{
	char c;

	return read(here[0], &c, 1);
}

static long by_recv(void)
{
	char buf[100];

	return recv(here[0], buf, sizeof(buf), MSG_WAITALL);
}

static long by_recvmsg(void)
{
	char buf[100];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(here[0], &msg, 0);
}

static long by_write(void)
{
	static char buf[65536];

	while (write(here[0], buf, sizeof(buf)) > 0)
		;
	return -1;
}

static long by_accept(void)
{
	return accept(lfd, NULL, NULL);
}

static long by_poll(void)
{
	struct pollfd p = { .fd = here[0], .events = POLLIN };

	return poll(&p, 1, -1);
}

static long by_select(void)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(here[0], &in);
	return select(here[0] + 1, &in, NULL, NULL, NULL);
}

static long by_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(set, &e, 1, -1);
}

static struct sockaddr_in full_addr;

static void close_it(void *fd)
{
	close((int)(intptr_t)fd);
}

static long by_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), r;

	pthread_cleanup_push(close_it, (void *)(intptr_t)fd);
	r = connect(fd, (struct sockaddr *)&full_addr, sizeof(full_addr));
	pthread_cleanup_pop(1);
	return r;
}

/* --- threads that make them --- */

static pthread_barrier_t barrier;
static bool held_off; /* cancellation is disabled meanwhile */
static bool at_once;  /* the thread is of the asynchronous kind */

static void *thread_run(void *arg)
{
	long (*call)(void) = *(long (**)(void))arg;

	if (held_off)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (at_once)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(clean, NULL);
	pthread_barrier_wait(&barrier);
	result = call();
	pthread_cleanup_pop(0);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_testcancel();
	return NULL;
}

/* Starts a thread in the call and cancels it: did it end of that, and inside? */
static bool cancel_one(long (*call)(void), long us)
{
	pthread_t thread;
	void *end;
	int before = cleaned;

	need(!pthread_create(&thread, NULL, thread_run, &call));
	pthread_barrier_wait(&barrier);
	if (us)
		nap(us);
	need(!pthread_cancel(thread) && !pthread_join(thread, &end));
	need(end == PTHREAD_CANCELED && cleaned == before + 1);
	return true;
}

static bool still_good(void)
{
	struct epoll_event e;
	char c;

	need(write(here[1], "g", 1) == 1 && epoll_wait(set, &e, 1, 5000) == 1);
	need(read(here[0], &c, 1) == 1 && c == 'g');
	need(write(here[0], "h", 1) == 1 && read(here[1], &c, 1) == 1 && c == 'h');
	return true;
}

static bool stage(void)
{
	struct epoll_event e = { .events = EPOLLIN };

	set = epoll_create1(0);
	return pair(here) && !epoll_ctl(set, EPOLL_CTL_ADD, here[0], &e);
}

static bool strike(void)
{
	char c;

	close(here[0]);
	need(read(here[1], &c, 1) == 0);
	close(here[1]);
	return !close(set);
}

static bool cancel_many(long (*call)(void))
{
	int files = 0;

	need(stage());
	for (int i = 0; i < TIMES; i++) {
		if (i == 4)
			files = entries("/proc/self/fd");
		need(cancel_one(call, i % 2 ? 2000 : i * 30));
		if (i % 10 == 0)
			need(still_good());
	}
	/* The worker thread has two, from when it is needed for the first time */
	need(entries("/proc/self/fd") <= files + 2 && still_good());
	return strike();
}

#define CASE(name)                             \
	static bool in_##name(void)            \
	{                                      \
		return cancel_many(by_##name); \
	}

CASE(read)
CASE(recv)
CASE(recvmsg)
CASE(accept)
CASE(poll)
CASE(select)
CASE(epoll)

static bool in_write(void)
{
	long sum = 0;

	for (int i = 0; i < 4; i++) {
		struct pollfd p = { .events = POLLIN };
		static char buf[65536];

		need(stage() && stuff(here[0]) > 0);
		need(cancel_one(by_write, i % 2 ? 20000 : 0));
		p.fd = here[1];
		while (poll(&p, 1, 100) == 1)
			sum += read(here[1], buf, sizeof(buf));
		need(sum > 0 && still_good() && strike());
	}
	return true;
}

/* A listener whose queue is full lets connect() wait */
static bool in_connect(void)
{
	socklen_t len = sizeof(full_addr);
	int full = socket(AF_INET, SOCK_STREAM, 0), fd[7];

	full_addr = laddr;
	full_addr.sin_port = 0;
	need(!bind(full, (struct sockaddr *)&full_addr, len) && !listen(full, 0) &&
	     !getsockname(full, (struct sockaddr *)&full_addr, &len));
	for (int i = 0; i < 7; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		need(nonblock(fd[i]));
		connect(fd[i], (struct sockaddr *)&full_addr, len);
	}
	for (int i = 0; i < 5; i++)
		need(cancel_one(by_connect, 20000));
	for (int i = 0; i < 7; i++)
		close(fd[i]);
	return !close(full);
}

/* The call does not begin, although it need not wait */
static volatile bool go;

static long when_told(void)
{
	struct pollfd p = { .fd = here[0], .events = POLLIN };
	char c;

	while (!go)
		sched_yield();
	if (poll(&p, 1, 0))
		return 1;
	return read(here[0], &c, 1);
}

static bool pending(void)
{
	long (*call)(void) = when_told;
	pthread_t thread;
	void *end;

	need(stage() && write(here[1], "p", 1) == 1 && ready(here[0], POLLIN, 5000));
	go = false;
	result = 0;
	need(!pthread_create(&thread, NULL, thread_run, &call));
	pthread_barrier_wait(&barrier);
	need(!pthread_cancel(thread));
	go = true;
	need(!pthread_join(thread, &end) && end == PTHREAD_CANCELED && !result);
	need(by_read() == 1 && still_good());
	return strike();
}

static bool disabled(void)
{
	long (*call)(void) = by_read;
	pthread_t thread;
	void *end;
	int before = cleaned;

	need(stage());
	held_off = true;
	result = 0;
	need(!pthread_create(&thread, NULL, thread_run, &call));
	pthread_barrier_wait(&barrier);
	nap(30000);
	need(!pthread_cancel(thread));
	nap(30000);
	need(write(here[1], "q", 1) == 1);
	need(!pthread_join(thread, &end) && end == PTHREAD_CANCELED);
	held_off = false;
	need(result == 1 && cleaned == before && still_good());
	return strike();
}

/* The other one gets what comes */
static void *other_reader(void *arg)
{
	char c;

	return read(here[0], &c, 1) == 1 && c == 'o' ? NULL : arg;
}

static bool one_of_two(void)
{
	pthread_t other;
	void *bad;

	need(stage());
	for (int i = 0; i < 20; i++) {
		need(!pthread_create(&other, NULL, other_reader, here));
		need(cancel_one(by_read, i % 2 ? 3000 : 0) && cancel_one(by_epoll, i % 3 * 1000));
		need(write(here[1], "o", 1) == 1 && !pthread_join(other, &bad) && !bad);
	}
	need(still_good());
	return strike();
}

static bool asynchronous(void)
{
	bool good;

	at_once = true;
	good = cancel_many(by_read);
	at_once = false;
	return good;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "in read", in_read },
		{ "in recv with MSG_WAITALL", in_recv },
		{ "in recvmsg", in_recvmsg },
		{ "in write", in_write },
		{ "in accept", in_accept },
		{ "in connect", in_connect },
		{ "in poll", in_poll },
		{ "in select", in_select },
		{ "in epoll_wait", in_epoll },
		{ "before a call", pending },
		{ "not while it is disabled", disabled },
		{ "one of two that read", one_of_two },
		{ "of the asynchronous kind", asynchronous },
	};

	pthread_barrier_init(&barrier, NULL, 2);
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
