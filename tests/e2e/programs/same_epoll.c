/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Epoll sets: errors, levels, edges, one shots, ends, members that come and go.
 */
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/e2e/programs/same_sets.h"

/* What a compiler must not know */
static struct epoll_event *volatile none, *volatile low = (void *)16, *volatile far = (void *)-4096;
static volatile int minus = -1, least = INT_MIN, most = INT_MAX;
static volatile int above = (int)(INT_MAX / sizeof(struct epoll_event)) + 1;

/* --- errors --- */

static void ctl_errors(int fd[2])
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC), gone = dup(fd[0]);

	close(gone);
	MOD(ep, fd[0], EPOLLIN, 'a');
	DEL(ep, fd[0]);
	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, fd[0], EPOLLIN, 'a');
	MOD(ep, fd[1], EPOLLIN, 'b');
	R(epoll_ctl(ep, 77, fd[0], &e));
	R(epoll_ctl(ep, 0, fd[1], &e));
	ADD(ep, gone, EPOLLIN, 'c');
	DEL(ep, gone);
	ADD(ep, -1, EPOLLIN, 'c');
	ADD(gone, fd[0], EPOLLIN, 'a');
	ADD(-1, fd[0], EPOLLIN, 'a');
	ADD(fd[0], fd[1], EPOLLIN, 'b');
	ADD(fd[0], fd[0], EPOLLIN, 'a');
	DEL(ep, fd[0]);
	DEL(ep, fd[0]);
	MOD(ep, fd[0], EPOLLIN, 'a');
}

static void ctl_pointers(int fd[2])
{
	int ep = epoll_create1(0);

	R(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], none));
	R(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], low));
	R(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], far));
	ADD(ep, fd[0], EPOLLIN, 'a');
	R(epoll_ctl(ep, EPOLL_CTL_MOD, fd[0], none));
	R(epoll_ctl(ep, EPOLL_CTL_MOD, fd[1], none));
	R(epoll_ctl(ep, EPOLL_CTL_DEL, fd[0], low));
}

static void others(int fd[2])
{
	int ep = epoll_create1(0), file = memfd_create("file", 0), pipes[2];

	R(pipe(pipes));
	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, file, EPOLLIN, 'f');
	ADD(ep, ep, EPOLLIN, 'e');
	ADD(ep, pipes[0], EPOLLIN, 'p');
	ADD(ep, pipes[0], EPOLLIN, 'p');
	MOD(ep, pipes[1], EPOLLIN, 'q');
	R(epoll_create(0));
	R(epoll_create(-1));
	R(epoll_create1(77));
	R(epoll_create(1) > 0);
}

static void wait_errors(int fd[2])
{
	struct epoll_event e[2];
	struct timespec bad = { 0, 1000000000 }, past = { -1, 0 };
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLOUT, 'a');
	R(epoll_wait(ep, e, 0, 0));
	R(epoll_wait(ep, e, minus, 0));
	R(epoll_wait(ep, e, least, 0));
	R(epoll_wait(ep, e, most, 0));
	R(epoll_wait(ep, e, above, 0));
	R(epoll_wait(ep, none, 1, 0));
	R(epoll_wait(ep, low, 1, 0));
	R(epoll_wait(ep, far, 1, 0));
	R(epoll_wait(-1, e, 1, 0));
	R(epoll_wait(9999, e, 1, 0));
	R(epoll_wait(fd[0], e, 1, 0));
	R(epoll_pwait(ep, e, 0, 0, NULL));
	R(epoll_pwait2(ep, e, 0, NULL, NULL));
	R(epoll_pwait2(ep, e, 1, &bad, NULL));
	R(epoll_pwait2(ep, e, 1, &past, NULL));
	R(epoll_wait(ep, e, 2, -77));
}

static void exclusive_errors(int fd[2])
{
	int ep = epoll_create1(0), inner = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 'a');
	ADD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP, 'a');
	ADD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLPRI, 'a');
	ADD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDNORM, 'a');
	MOD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE, 'a');
	ADD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLET | EPOLLEXCLUSIVE | EPOLLWAKEUP, 'a');
	ADD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 'a');
	ADD(ep, fd[0], EPOLLIN, 'a');
	MOD(ep, fd[0], EPOLLIN, 'a');
	MOD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE, 'a');
	ADD(ep, fd[1], EPOLLIN, 'b');
	MOD(ep, fd[1], EPOLLIN | EPOLLEXCLUSIVE, 'b');
	ADD(inner, fd[1], EPOLLIN, 'b');
	ADD(ep, inner, EPOLLIN | EPOLLEXCLUSIVE, 'i');
	DEL(ep, fd[0]);
	ADD(ep, fd[0], EPOLLERR | EPOLLHUP | EPOLLEXCLUSIVE, 'a');
}

/* --- what is told --- */

static void level(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN, 'a');
	WAIT(ep, 8, 0);
	sets_put(fd[1], "xy");
	for (int i = 0; i < 3; i++)
		WAIT(ep, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(ep, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM, 'A');
	WAIT(ep, 8, 0);
	sets_put(fd[1], "z");
	same_wait(fd[0], POLLIN);
	WAIT(ep, 8, 0);
	MOD(ep, fd[0], 0, 'n');
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLPRI | EPOLLMSG | EPOLLRDBAND | EPOLLWAKEUP, 'n');
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLRDHUP, 'r');
	WAIT(ep, 8, 0);
}

static void edge(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'a');
	WAIT(ep, 8, 0);
	sets_put(fd[1], "xy");
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	sets_take(fd[0], 1);
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "z");
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLET, 'b');
	WAIT(ep, 8, 0);
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLET, 'c');
	WAIT(ep, 8, 0);
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "w");
	WAIT(ep, 8, COMES);
	sets_take(fd[0], 3);
	WAIT(ep, 8, NOT);
}

/* An end is an edge too; and what came before it is told with it */
static void edge_end(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLRDHUP | EPOLLET, 'a');
	sets_put(fd[1], "xy");
	WAIT(ep, 8, COMES);
	R(shutdown(fd[1], SHUT_WR));
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	sets_take(fd[0], 2);
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLRDHUP | EPOLLET, 'b');
	WAIT(ep, 8, 0);
	R(read(fd[0], &(char){ 0 }, 1));
	WAIT(ep, 8, NOT);
}

/* Who has said that it sends no more waits for what comes: each octet and the end are edges */
static void edge_behind_end(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLRDHUP | EPOLLET, 'a');
	R(shutdown(fd[0], SHUT_WR));
	same_sleep(20);
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "xy");
	WAIT(ep, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "z");
	WAIT(ep, 8, COMES);
	sets_take(fd[0], 2);
	sets_put(fd[1], "w");
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	R(shutdown(fd[1], SHUT_WR));
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
}

/* Over DDP who receives no more says so, and that is an edge: one */
static void edge_deaf(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'a');
	R(shutdown(fd[1], SHUT_WR));
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	R(shutdown(fd[1], SHUT_RD));
	WAIT(ep, 8, 10 * NOT);
	WAIT(ep, 8, NOT);
	WAIT(ep, 8, NOT);
}

static void edge_room(int fd[2])
{
	int ep = epoll_create1(0);
	size_t sum;

	ADD(ep, fd[0], EPOLLOUT | EPOLLET, 'a');
	WAIT(ep, 8, 0);
	WAIT(ep, 8, NOT);
	/* To the brim: what TCP acknowledges makes room once more */
	do {
		sum = sets_stuff(fd[0]);
		same_sleep(NOT);
	} while (sum);
	epoll_wait(ep, &(struct epoll_event){ 0 }, 1, 0);
	WAIT(ep, 8, NOT);
	while (recv(fd[1], &(char[65536]){ 0 }, 65536, MSG_DONTWAIT) > 0)
		same_sleep(1);
	WAIT(ep, 8, COMES);
	R(send(fd[0], "x", 1, MSG_DONTWAIT));
}

static void one_shot(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLONESHOT, 'a');
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "y");
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLONESHOT, 'b');
	WAIT(ep, 8, 0);
	WAIT(ep, 8, 0);
	MOD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLONESHOT | EPOLLET, 'c');
	WAIT(ep, 8, 0);
	WAIT(ep, 8, 0);
	MOD(ep, fd[0], EPOLLONESHOT, 'd');
	WAIT(ep, 8, NOT);
	sets_take(fd[0], 2);
	MOD(ep, fd[0], EPOLLIN | EPOLLONESHOT, 'e');
	R(shutdown(fd[1], SHUT_WR));
	WAIT(ep, 8, COMES);
	R(shutdown(fd[0], SHUT_WR));
	WAIT(ep, 8, NOT);
	MOD(ep, fd[0], EPOLLONESHOT, 'f');
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, 0);
}

static void ends(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLRDHUP, 'a');
	R(shutdown(fd[1], SHUT_WR));
	WAIT(ep, 8, COMES);
	MOD(ep, fd[0], EPOLLIN, 'b');
	WAIT(ep, 8, 0);
	MOD(ep, fd[0], EPOLLRDHUP, 'c');
	WAIT(ep, 8, 0);
	MOD(ep, fd[0], 0, 'd');
	WAIT(ep, 8, NOT);
	R(shutdown(fd[0], SHUT_WR));
	WAIT(ep, 8, COMES);
	MOD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP, 'e');
	WAIT(ep, 8, 0);
	ADD(ep, fd[1], EPOLLIN | EPOLLOUT | EPOLLRDHUP, 'p');
	WAIT(ep, 8, COMES);
}

static void own_end(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP, 'a');
	R(shutdown(fd[0], SHUT_RD));
	WAIT(ep, 8, COMES);
	R(shutdown(fd[0], SHUT_WR));
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, 0);
}

static void reset(int fd[2])
{
	struct linger hard = { 1, 0 };
	int ep = epoll_create1(0), err = 0;
	socklen_t len = sizeof(err);

	ADD(ep, fd[0], EPOLLIN, 'a');
	R(setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close(fd[1]);
	WAIT(ep, 8, COMES);
	MOD(ep, fd[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP, 'b');
	WAIT(ep, 8, 0);
	R(getsockopt(fd[0], SOL_SOCKET, SO_ERROR, &err, &len));
	same_say("%s", strerrorname_np(err));
	WAIT(ep, 8, 0);
}

/* --- members come and go --- */

static void closed(int fd[2])
{
	int ep = epoll_create1(0);

	ADD(ep, fd[0], EPOLLIN | EPOLLOUT, 'a');
	WAIT(ep, 8, 0);
	close(fd[0]);
	WAIT(ep, 8, NOT);
	DEL(ep, fd[0]);
	MOD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, fd[1], EPOLLIN | EPOLLRDHUP, 'b');
	WAIT(ep, 8, COMES);
	close(ep);
	R(epoll_wait(ep, &(struct epoll_event){ 0 }, 1, 0));
	close(fd[1]);
}

/* The number is another socket's now */
static void number_again(int fd[2])
{
	int ep = epoll_create1(0), other[2], number = fd[0];

	same_pair(other);
	ADD(ep, fd[0], EPOLLIN | EPOLLOUT, 'a');
	close(fd[0]);
	R(dup2(other[0], number) == number);
	WAIT(ep, 8, NOT);
	MOD(ep, number, EPOLLOUT, 'b');
	ADD(ep, number, EPOLLOUT, 'c');
	WAIT(ep, 8, 0);
	R(dup2(fd[1], number) == number);
	WAIT(ep, 8, 0);
	close(other[0]);
	WAIT(ep, 8, NOT);
}

/* A registration is of the open file, under a number */
static void duplicates(int fd[2])
{
	int ep = epoll_create1(0), more = dup(fd[0]);

	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, more, EPOLLIN, 'b');
	ADD(ep, more, EPOLLIN, 'b');
	sets_put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	same_sleep(NOT);
	WAIT(ep, 8, 0);
	close(fd[0]);
	WAIT(ep, 8, 0);
	DEL(ep, fd[0]);
	sets_take(more, 1);
	WAIT(ep, 8, NOT);
	sets_put(fd[1], "y");
	same_wait(more, POLLIN);
	same_sleep(NOT);
	WAIT(ep, 8, 0);
	R(dup2(more, fd[0]) == fd[0]);
	ADD(ep, fd[0], EPOLLIN, 'c');
	DEL(ep, fd[0]);
	WAIT(ep, 8, 0);
	close(more);
	WAIT(ep, 8, 0);
	close(fd[0]);
	WAIT(ep, 8, NOT);
}

/* One set by two descriptors */
static void set_duplicate(int fd[2])
{
	int ep = epoll_create1(0), more = dup(ep);

	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(more, fd[0], EPOLLIN, 'a');
	ADD(more, fd[1], EPOLLIN, 'b');
	ADD(ep, more, EPOLLIN, 'e');
	sets_put(fd[1], "x");
	WAIT(more, 8, COMES);
	close(ep);
	WAIT(more, 8, COMES);
	DEL(more, fd[0]);
	WAIT(more, 8, NOT);
	sets_put(fd[0], "x");
	WAIT(more, 8, COMES);
	R(dup3(more, ep, O_CLOEXEC) == ep);
	WAIT(ep, 8, 0);
	close(more);
	WAIT(ep, 8, 0);
	DEL(ep, fd[1]);
}

/* --- several at once --- */

static void mixed(int fd[2])
{
	int ep = epoll_create1(0), pipes[2], event = eventfd(0, EFD_NONBLOCK);

	R(pipe(pipes));
	ADD(ep, pipes[0], EPOLLIN, 'p');
	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, event, EPOLLIN | EPOLLET, 'v');
	ADD(ep, fd[1], EPOLLIN | EPOLLET, 'b');
	WAIT(ep, 8, 0);
	sets_put(pipes[1], "p");
	WAIT(ep, 8, COMES);
	sets_put(fd[1], "s");
	same_wait(fd[0], POLLIN);
	R(eventfd_write(event, 1));
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, COMES);
	sets_put(fd[0], "s");
	same_wait(fd[1], POLLIN);
	WAIT(ep, 8, COMES);
	R(read(pipes[0], &(char){ 0 }, 1));
	WAIT(ep, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(ep, 8, NOT);
}

/* All are ready and few are taken at a time: each has its turn */
static void fair(int fd[2])
{
	enum { PAIRS = 6, PIPES = 6, ALL = PAIRS + PIPES + 1 };
	int ep = epoll_create1(0), pairs[PAIRS][2], pipes[PIPES][2], seen[ALL] = { 0 };
	struct epoll_event e[8];

	for (int i = 0; i < PAIRS; i++) {
		same_pair(pairs[i]);
		sets_ctl(ep, EPOLL_CTL_ADD, pairs[i][0], EPOLLIN, (char)i);
		sets_put(pairs[i][1], "x");
		same_wait(pairs[i][0], POLLIN);
	}
	for (int i = 0; i < PIPES && !pipe(pipes[i]); i++) {
		sets_ctl(ep, EPOLL_CTL_ADD, pipes[i][0], EPOLLIN, (char)(PAIRS + i));
		sets_put(pipes[i][1], "x");
	}
	sets_ctl(ep, EPOLL_CTL_ADD, fd[0], EPOLLOUT, ALL - 1);
	for (int max = 1; max <= 8; max++) {
		int n, fewest = INT_MAX;

		memset(seen, 0, sizeof(seen));
		for (int round = 0; round < 8 * ALL; round++) {
			n = epoll_wait(ep, e, max, COMES);
			for (int i = 0; i < n; i++)
				seen[e[i].data.u64]++;
		}
		for (int i = 0; i < ALL; i++)
			fewest = seen[i] < fewest ? seen[i] : fewest;
		same_say("max %d: %s", max, fewest > 1 ? "each was told" : "one is starved");
	}
}

static void twice(int fd[2])
{
	int first = epoll_create1(0), second = epoll_create1(0);

	ADD(first, fd[0], EPOLLIN | EPOLLET, 'a');
	ADD(second, fd[0], EPOLLIN, 'b');
	sets_put(fd[1], "x");
	WAIT(first, 8, COMES);
	WAIT(second, 8, COMES);
	WAIT(first, 8, NOT);
	WAIT(second, 8, 0);
	sets_take(fd[0], 1);
	WAIT(second, 8, NOT);
	sets_put(fd[1], "y");
	WAIT(second, 8, COMES);
	WAIT(first, 8, COMES);
	close(second);
	WAIT(first, 8, NOT);
	sets_put(fd[1], "z");
	WAIT(first, 8, COMES);
}

static void *wait_one(void *arg)
{
	struct epoll_event e;

	return epoll_wait(*(int *)arg, &e, 1, 300) == 1 ? arg : NULL;
}

/* How many of three threads that sleep, each in a set of its own, does an octet wake? */
static void wakes(int fd[2], uint32_t mask)
{
	pthread_t threads[3];
	int ep[3], woke = 0;
	void *got;

	for (int i = 0; i < 3; i++) {
		ep[i] = epoll_create1(0);
		ADD(ep[i], fd[0], EPOLLIN | mask, 'a');
		pthread_create(&threads[i], NULL, wait_one, &ep[i]);
	}
	same_sleep(3 * NOT);
	sets_put(fd[1], "x");
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &got);
		woke += got != NULL;
		close(ep[i]);
	}
	same_say("%d", woke);
	sets_take(fd[0], 1);
}

static void herd(int fd[2])
{
	wakes(fd, 0);
	wakes(fd, EPOLLET);
	wakes(fd, EPOLLEXCLUSIVE);
	wakes(fd, EPOLLEXCLUSIVE | EPOLLET);
}

/* --- time --- */

static void timeouts(int fd[2])
{
	struct timespec ts = { 0, 20500000 }, nought = { 0, 0 };
	struct epoll_event e;
	int ep = epoll_create1(0);
	double begin;

	ADD(ep, fd[0], EPOLLIN, 'a');
	begin = same_now();
	R(epoll_wait(ep, &e, 1, 40));
	same_took(begin, 40);
	begin = same_now();
	R(epoll_pwait(ep, &e, 1, 30, NULL));
	same_took(begin, 30);
	begin = same_now();
	R(epoll_pwait2(ep, &e, 1, &ts, NULL));
	same_took(begin, 20);
	same_say("%s", same_now() - begin < 0.0205 ? "too early" : "not before its time");
	R(epoll_pwait2(ep, &e, 1, &nought, NULL));
	sets_put(fd[1], "x");
	R(epoll_pwait2(ep, &e, 1, NULL, NULL));
}

/* 300 waits of a microsecond each are not 300 milliseconds */
static void short_times(int fd[2])
{
	struct timespec ts = { 0, 1000 };
	struct epoll_event e;
	int ep = epoll_create1(0), n = 0;
	double begin = same_now();

	ADD(ep, fd[0], EPOLLIN, 'a');
	for (int i = 0; i < 300; i++)
		n += epoll_pwait2(ep, &e, 1, &ts, NULL);
	same_say("%d, %s", n, same_now() - begin < 0.29 ? "short" : "long");
}

/* An address that the kernel takes for one of the program's until it writes there */
static void wait_low(int fd[2])
{
	struct epoll_event ev = { .events = EPOLLIN }, *volatile low = (void *)(uintptr_t)8;
	int ep = epoll_create1(0);

	R(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev));
	R(epoll_wait(ep, low, 1, 0));
	close(ep);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		{ "epoll_ctl: errors", ctl_errors, NULL },
		{ "epoll_ctl: pointers", ctl_pointers, NULL },
		{ "epoll_ctl: files, pipes, itself", others, NULL },
		{ "epoll_wait: errors", wait_errors, NULL },
		{ "epoll_wait: a low address", wait_low,
		  "epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &ev): 0\n"
		  "epoll_wait(ep, low, 1, 0): -1 EFAULT\n" },
		{ "EPOLLEXCLUSIVE: errors", exclusive_errors, NULL },
		{ "level", level, NULL },
		{ "edge", edge, NULL },
		{ "edge of an end", edge_end, NULL },
		{ "edges behind its own end", edge_behind_end, NULL },
		{ "edge of a peer that receives no more", edge_deaf,
		  "sets_ctl(ep, 1, fd[0], EPOLLIN | EPOLLET, 'a'): 0\n"
		  "shutdown(fd[1], SHUT_WR): 0\n"
		  "wait ep: 1\n"
		  "  a: in\n"
		  "wait ep: 0\n"
		  "shutdown(fd[1], SHUT_RD): 0\n"
		  "wait ep: 1\n"
		  "  a: in\n"
		  "wait ep: 0\n"
		  "wait ep: 0\n" },
		{ "edge of room", edge_room, NULL },
		{ "one shot", one_shot, NULL },
		{ "ends", ends, NULL },
		{ "own end", own_end, NULL },
		{ "reset", reset, NULL },
		{ "a closed member", closed, NULL },
		{ "a number again", number_again, NULL },
		{ "duplicates of a member", duplicates, NULL },
		{ "duplicates of a set", set_duplicate, NULL },
		{ "mixed with others", mixed, NULL },
		{ "fair to each", fair, NULL },
		{ "in two sets", twice, NULL },
		{ "who is woken of several sets", herd, NULL },
		{ "time-outs", timeouts, NULL },
		{ "short time-outs", short_times, NULL },
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
