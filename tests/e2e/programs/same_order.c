/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Epoll sets: in which order members are told. Each line of a wait has the members' names in the
 * order in which they were told.
 */
#include "tests/e2e/programs/same_sets.h"

enum { PAIRS = 5, MANY = 150 };

static int pairs[MANY][2];

static void make(int n)
{
	for (int i = 0; i < n; i++)
		same_pair(pairs[i]);
}

static void unmake(int n)
{
	for (int i = 0; i < n; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
}

/* A set of the first ends of so many, whose names are '0' and on */
static int set_of(int n, uint32_t mask)
{
	int ep = epoll_create1(0);

	for (int i = 0; i < n; i++)
		if (sets_ctl(ep, EPOLL_CTL_ADD, pairs[i][0], mask, (char)('0' + i)))
			same_say("add: %s", strerror(errno));
	return ep;
}

static void change(int ep, const char *names, uint32_t mask)
{
	for (; *names; names++)
		sets_ctl(ep, EPOLL_CTL_MOD, pairs[*names - '0'][0], mask, *names);
}

/* Something comes, to one after the other */
static void come(const char *names)
{
	for (; *names; names++)
		sets_put(pairs[*names - '0'][1], "x");
}

static void take(const char *names)
{
	for (; *names; names++)
		sets_take(pairs[*names - '0'][0], 1);
}

static void told(int ep, int max, int ms)
{
	struct epoll_event e[MANY];
	int n = epoll_wait(ep, e, max, ms);
	char text[MANY + 1] = "";

	for (int i = 0; i < n; i++)
		text[i] = (char)e[i].data.u64;
	same_say("%d: %s", n, text);
}

/* --- arrival --- */

static void arrival(uint32_t mask)
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, mask);
	told(ep, 8, 0);
	come("01234");
	told(ep, 8, COMES);
	take("01234");
	told(ep, 8, 0);
	come("31402");
	told(ep, 8, COMES);
	take("31402");
	come("42");
	told(ep, 8, COMES);
	come("0");
	told(ep, 8, COMES);
	unmake(PAIRS);
}

static void arrival_level(int fd[2])
{
	arrival(EPOLLIN);
}

static void arrival_edge(int fd[2])
{
	arrival(EPOLLIN | EPOLLET);
}

static void arrival_one_shot(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN | EPOLLONESHOT);
	come("31402");
	told(ep, 8, COMES);
	change(ep, "20", EPOLLIN | EPOLLONESHOT);
	told(ep, 8, 0);
	change(ep, "143", EPOLLIN | EPOLLONESHOT);
	told(ep, 2, 0);
	told(ep, 2, 0);
	unmake(PAIRS);
}

/* Before the first wait: members that are not ready have no place yet */
static void before_wait(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	come("31402");
	told(ep, 8, COMES);
	unmake(PAIRS);
}

/* Before they are members: who comes into the set first */
static void before_add(int fd[2])
{
	int ep;

	make(PAIRS);
	come("413");
	ep = set_of(PAIRS, EPOLLIN);
	come("20");
	told(ep, 8, COMES);
	unmake(PAIRS);
}

/* A member that is changed and not ready loses nothing and gains nothing */
static void changed(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	told(ep, 8, 0);
	change(ep, "01", EPOLLIN | EPOLLRDHUP);
	come("4");
	change(ep, "42", EPOLLIN | EPOLLRDHUP);
	come("201");
	told(ep, 8, COMES);
	unmake(PAIRS);
}

/* Somebody else takes in what has come, in another order */
static void looked_at(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	told(ep, 8, 0);
	come("31402");
	for (int i = 0; i < PAIRS; i++)
		same_wait(pairs[i][0], POLLIN);
	told(ep, 8, COMES);
	unmake(PAIRS);
}

/* What a program does to its own sockets makes them ready, too; the kernel knows of none of it */
static void own_ends(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN | EPOLLRDHUP);
	told(ep, 8, 0);
	for (const char *name = "3140"; *name; name++)
		R(shutdown(pairs[*name - '0'][0], SHUT_RD));
	told(ep, 8, COMES);
	unmake(PAIRS);
}

static void *come_later(void *arg)
{
	same_sleep(NOT);
	come(arg);
	return NULL;
}

/* One at a time to a thread that sleeps */
static void asleep(int fd[2])
{
	char names[] = "3140231402";
	pthread_t thread;
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN | EPOLLET);
	told(ep, 8, 0);
	pthread_create(&thread, NULL, come_later, names);
	for (size_t i = 0; i < strlen(names) / 2; i++)
		told(ep, 1, COMES);
	pthread_join(thread, NULL);
	unmake(PAIRS);
}

/* --- levels, and want of room --- */

/* What was told goes to the end, what was not comes first */
static void short_array(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	come("31402");
	for (int max = 1; max <= 4; max++)
		for (int i = 0; i < 4; i++)
			told(ep, max, COMES);
	unmake(PAIRS);
}

/* The end of the list is also behind what comes later */
static void later_ones(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	come("312");
	told(ep, 2, COMES);
	come("04");
	for (int i = 0; i < 4; i++)
		told(ep, 2, COMES);
	unmake(PAIRS);
}

/* Who was told keeps that place, if there is something again before anybody looks */
static void again(int fd[2])
{
	int ep;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	told(ep, 8, 0);
	come("210");
	told(ep, 8, COMES);
	take("210");
	come("40123");
	told(ep, 8, COMES);
	take("01234");
	told(ep, 8, 0);
	come("40123");
	told(ep, 8, COMES);
	unmake(PAIRS);
}

/* More than are asked of the kernel at once */
static void many(int fd[2])
{
	int ep;

	make(MANY);
	ep = set_of(MANY, EPOLLIN);
	told(ep, 8, 0);
	for (int i = MANY - 1; i >= 0; i--)
		sets_put(pairs[i][1], "x");
	told(ep, 100, COMES);
	told(ep, 100, COMES);
	told(ep, 100, COMES);
	unmake(MANY);
}

/* --- with the kernel's own --- */

static void pipes_between(int fd[2])
{
	int ep, ends[2], event = eventfd(0, EFD_NONBLOCK);

	R(pipe(ends));
	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	ADD(ep, ends[0], EPOLLIN, 'p');
	ADD(ep, event, EPOLLIN, 'e');
	told(ep, 8, 0);
	come("31");
	sets_put(ends[1], "x");
	come("4");
	told(ep, 8, COMES);
	take("314");
	R(read(ends[0], &(char){ 0 }, 1));
	told(ep, 8, 0);
	eventfd_write(event, 1);
	come("20");
	told(ep, 2, COMES);
	told(ep, 2, COMES);
	take("20");
	told(ep, 8, COMES);
	unmake(PAIRS);
}

/* All hold, and the array has room for one: how often each of ten is told in a hundred waits */
static void turns(int fd[2])
{
	enum { OTHERS = 5, WAITS = 100 };
	int ep, ends[OTHERS][2], seen[PAIRS + OTHERS] = { 0 }, fewest = WAITS, most = 0;
	struct epoll_event e;

	make(PAIRS);
	ep = set_of(PAIRS, EPOLLIN);
	for (int i = 0; i < OTHERS && !pipe(ends[i]); i++) {
		sets_ctl(ep, EPOLL_CTL_ADD, ends[i][0], EPOLLIN, (char)('0' + PAIRS + i));
		sets_put(ends[i][1], "x");
	}
	come("01234");
	for (int i = 0; i < WAITS && epoll_wait(ep, &e, 1, COMES) == 1; i++)
		seen[e.data.u64 - '0']++;
	for (int i = 0; i < PAIRS + OTHERS; i++) {
		fewest = seen[i] < fewest ? seen[i] : fewest;
		most = seen[i] > most ? seen[i] : most;
	}
	same_say("%s", most - fewest <= 2 ? "alike" : "not alike");
	unmake(PAIRS);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("order of arrival: level", arrival_level),
		SAME("order of arrival: edge", arrival_edge),
		SAME("order of arrival: one shot", arrival_one_shot),
		SAME("octets before the first wait", before_wait),
		SAME("octets before the set", before_add),
		SAME("members that are changed", changed),
		SAME("octets that somebody else took in", looked_at),
		SAME("their own ends", own_ends),
		SAME("octets for a thread that sleeps", asleep),
		SAME("an array that is too short", short_array),
		SAME("those that come later", later_ones),
		SAME("those that were told before", again),
		SAME("more than a few at once", many),
		SAME("pipes between sockets", pipes_between),
		SAME("turns of sockets and pipes", turns),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
