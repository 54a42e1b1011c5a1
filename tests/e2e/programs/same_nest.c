/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Epoll sets in epoll sets, in poll() and in select(), in other threads and in children.
 */
#include <sys/select.h>
#include <sys/wait.h>

#include "tests/e2e/programs/same_sets.h"

#define POLL(fd, ms) polled(#fd, fd, ms)

static void polled(const char *text, int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLRDNORM };
	int n = poll(&p, 1, ms);

	same_say("poll %s: %d%s%s%s", text, n, p.revents & POLLIN ? " in" : "",
		 p.revents & POLLRDNORM ? " rdnorm" : "", p.revents & POLLOUT ? " out" : "");
}

/* --- in a set --- */

static void in_a_set(int fd[2])
{
	int inner = epoll_create1(0), outer = epoll_create1(0);

	ADD(inner, fd[0], EPOLLIN, 'a');
	ADD(outer, inner, EPOLLIN | EPOLLOUT | EPOLLRDNORM, 'i');
	ADD(outer, inner, EPOLLIN, 'i');
	WAIT(outer, 8, NOT);
	sets_put(fd[1], "x");
	WAIT(outer, 8, COMES);
	WAIT(outer, 8, COMES);
	WAIT(inner, 8, 0);
	WAIT(outer, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(outer, 8, NOT);
	MOD(outer, inner, EPOLLIN, 'j');
	sets_put(fd[1], "y");
	WAIT(outer, 8, COMES);
	DEL(inner, fd[0]);
	WAIT(outer, 8, NOT);
	DEL(outer, inner);
	DEL(outer, inner);
	MOD(outer, inner, EPOLLIN, 'j');
}

/* The member comes when the set is in the other already */
static void member_later(int fd[2])
{
	int inner = epoll_create1(0), outer = epoll_create1(0), pipes[2];

	R(pipe(pipes));
	ADD(outer, inner, EPOLLIN, 'i');
	ADD(outer, pipes[0], EPOLLIN, 'p');
	WAIT(outer, 8, 0);
	ADD(inner, fd[0], EPOLLIN, 'a');
	WAIT(outer, 8, NOT);
	sets_put(fd[1], "x");
	WAIT(outer, 8, COMES);
	sets_put(pipes[1], "x");
	WAIT(outer, 8, COMES);
	MOD(outer, inner, EPOLLIN | EPOLLONESHOT, 'j');
	R(read(pipes[0], &(char){ 0 }, 1));
	WAIT(outer, 8, COMES);
	WAIT(outer, 8, NOT);
	DEL(outer, inner);
	ADD(outer, inner, EPOLLIN, 'k');
	WAIT(outer, 8, COMES);
}

/* The inner set has a member of the kernel's, and then one that is none */
static void inner_of_others(int fd[2])
{
	int inner = epoll_create1(0), outer = epoll_create1(0), pipes[2];

	R(pipe(pipes));
	ADD(inner, pipes[0], EPOLLIN, 'p');
	ADD(inner, fd[0], EPOLLIN, 'a');
	ADD(outer, inner, EPOLLIN, 'i');
	ADD(outer, fd[1], EPOLLIN, 'b');
	WAIT(outer, 8, NOT);
	sets_put(pipes[1], "x");
	WAIT(outer, 8, COMES);
	WAIT(inner, 8, 0);
	R(read(pipes[0], &(char){ 0 }, 1));
	WAIT(outer, 8, NOT);
	sets_put(fd[0], "x");
	WAIT(outer, 8, COMES);
	sets_put(fd[1], "x");
	sets_put(pipes[1], "x");
	same_wait(fd[0], POLLIN);
	WAIT(outer, 8, COMES);
	WAIT(inner, 8, COMES);
}

static void edges(int fd[2])
{
	int inner = epoll_create1(0), outer = epoll_create1(0);

	ADD(inner, fd[0], EPOLLIN, 'a');
	ADD(outer, inner, EPOLLIN | EPOLLET, 'i');
	WAIT(outer, 8, NOT);
	sets_put(fd[1], "x");
	WAIT(outer, 8, COMES);
	WAIT(outer, 8, NOT);
	sets_put(fd[1], "y");
	WAIT(outer, 8, COMES);
	sets_take(fd[0], 2);
	WAIT(outer, 8, NOT);
	MOD(inner, fd[0], EPOLLIN | EPOLLET, 'a');
	sets_put(fd[1], "z");
	WAIT(outer, 8, COMES);
	WAIT(inner, 8, 0);
	MOD(outer, inner, EPOLLIN, 'i');
	WAIT(outer, 8, NOT);
}

static void three_levels(int fd[2])
{
	int one = epoll_create1(0), two = epoll_create1(0), three = epoll_create1(0);

	ADD(three, two, EPOLLIN, '2');
	ADD(two, one, EPOLLIN, '1');
	ADD(one, fd[0], EPOLLIN, 'a');
	WAIT(three, 8, NOT);
	sets_put(fd[1], "x");
	WAIT(three, 8, COMES);
	WAIT(two, 8, 0);
	WAIT(one, 8, 0);
	POLL(three, COMES);
	sets_take(fd[0], 1);
	WAIT(three, 8, NOT);
	POLL(three, NOT);
	close(one);
	WAIT(three, 8, NOT);
	ADD(two, fd[1], EPOLLOUT, 'b');
	WAIT(three, 8, 0);
}

static void cycles(int fd[2])
{
	int one = epoll_create1(0), two = epoll_create1(0), three = epoll_create1(0);

	ADD(one, one, EPOLLIN, '1');
	ADD(one, two, EPOLLIN, '2');
	ADD(two, one, EPOLLIN, '1');
	ADD(two, three, EPOLLIN, '3');
	ADD(three, one, EPOLLIN, '1');
	ADD(three, fd[0], EPOLLIN, 'a');
	ADD(three, one, EPOLLIN, '1');
	ADD(three, two, EPOLLIN, '2');
	ADD(one, three, EPOLLIN, '3');
	sets_put(fd[1], "x");
	WAIT(one, 8, COMES);
	DEL(one, two);
	ADD(two, one, EPOLLIN, '1');
	ADD(one, two, EPOLLIN, '2');
	WAIT(two, 8, COMES);
}

static void closed_inner(int fd[2])
{
	int inner = epoll_create1(0), outer = epoll_create1(0), more;

	ADD(inner, fd[0], EPOLLIN | EPOLLOUT, 'a');
	ADD(outer, inner, EPOLLIN, 'i');
	ADD(outer, fd[1], EPOLLIN, 'b');
	WAIT(outer, 8, 0);
	more = dup(inner);
	close(inner);
	WAIT(outer, 8, 0);
	close(more);
	WAIT(outer, 8, NOT);
	sets_put(fd[0], "x");
	WAIT(outer, 8, COMES);
	close(outer);
}

static void in_two(int fd[2])
{
	int inner = epoll_create1(0), a = epoll_create1(0), b = epoll_create1(0);

	ADD(a, inner, EPOLLIN, 'i');
	ADD(b, inner, EPOLLIN, 'j');
	ADD(inner, fd[0], EPOLLIN, 'a');
	sets_put(fd[1], "x");
	WAIT(a, 8, COMES);
	WAIT(b, 8, COMES);
	sets_take(fd[0], 1);
	WAIT(a, 8, NOT);
	WAIT(b, 8, NOT);
}

/* --- in poll() and select() --- */

static void in_poll(int fd[2])
{
	int ep = epoll_create1(0);

	POLL(ep, 0);
	ADD(ep, fd[0], EPOLLIN, 'a');
	POLL(ep, NOT);
	sets_put(fd[1], "x");
	POLL(ep, COMES);
	POLL(ep, COMES);
	WAIT(ep, 8, 0);
	POLL(ep, 0);
	sets_take(fd[0], 1);
	POLL(ep, NOT);
	MOD(ep, fd[0], EPOLLIN | EPOLLET, 'a');
	sets_put(fd[1], "y");
	POLL(ep, COMES);
	WAIT(ep, 8, 0);
	POLL(ep, NOT);
	MOD(ep, fd[0], EPOLLOUT, 'a');
	POLL(ep, 0);
}

static void in_select(int fd[2])
{
	struct timeval tv = { 0, NOT * 1000 };
	struct timespec ts = { 30, 0 };
	int ep = epoll_create1(0);
	fd_set in, out;

	ADD(ep, fd[0], EPOLLIN, 'a');
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(ep, &in);
	FD_SET(ep, &out);
	R(select(ep + 1, &in, &out, NULL, &tv));
	FD_SET(ep, &in);
	sets_put(fd[1], "x");
	R(pselect(ep + 1, &in, NULL, NULL, &ts, NULL));
	R(FD_ISSET(ep, &in));
}

/* --- in threads --- */

static void later_put(void *arg)
{
	sets_put(*(int *)arg, "x");
}

static void *poll_set(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };

	return poll(&p, 1, COMES) == 1 && p.revents == POLLIN ? arg : NULL;
}

/* Several threads poll one set, which has its member only then; a level wakes them all */
static void threads_poll(int fd[2])
{
	int ep = epoll_create1(0), ok = 0;
	pthread_t threads[4];
	void *got;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, poll_set, &ep);
	same_sleep(NOT);
	ADD(ep, fd[0], EPOLLIN, 'a');
	same_later(NOT, later_put, &fd[1]);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &got);
		ok += got != NULL;
	}
	same_say("%d threads woke", ok);
}

static void *wait_set(void *arg)
{
	struct epoll_event e;

	return epoll_wait(*(int *)arg, &e, 1, COMES) == 1 && e.events == EPOLLIN ? arg : NULL;
}

/* A thread sleeps in a set of which another makes a set with such a member, two levels down */
static void thread_outer(int fd[2])
{
	int ep[3] = { epoll_create1(0), epoll_create1(0), epoll_create1(0) };
	pthread_t thread;
	void *got;

	ADD(ep[2], ep[1], EPOLLIN, '1');
	pthread_create(&thread, NULL, wait_set, &ep[2]);
	same_sleep(NOT);
	ADD(ep[0], fd[0], EPOLLIN, 'a');
	ADD(ep[1], ep[0], EPOLLIN, '0');
	same_sleep(NOT);
	sets_put(fd[1], "x");
	pthread_join(thread, &got);
	same_say("%s", got ? "it woke" : "it slept on");
}

/* --- in children --- */

static void child_ended(pid_t pid)
{
	int status = -1;

	R(waitpid(pid, &status, 0) == pid);
	same_say("child: %d", status);
}

/* A child's own set, of connections that it has from its parent */
static void child_own(int fd[2])
{
	int ep = epoll_create1(0);
	pid_t pid;

	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, fd[1], EPOLLIN, 'b');
	pid = fork();
	if (pid == 0) {
		int own = epoll_create1(0);

		close(ep);
		close(fd[0]);
		sets_ctl(own, EPOLL_CTL_ADD, fd[1], EPOLLIN, 'c');
		_exit(wait_set(&own) && read(fd[1], &(char){ 0 }, 1) == 1 ? 0 : 1);
	}
	DEL(ep, fd[1]);
	close(fd[1]);
	sets_put(fd[0], "x");
	child_ended(pid);
	WAIT(ep, 8, COMES);
	DEL(ep, fd[0]);
}

/* A child uses the set itself, and its parent does not */
static void child_inherits(int fd[2])
{
	int ep = epoll_create1(0), outer = epoll_create1(0), pipes[2];
	pid_t pid;

	R(pipe(pipes));
	ADD(ep, fd[0], EPOLLIN, 'a');
	ADD(ep, pipes[0], EPOLLIN, 'p');
	ADD(outer, ep, EPOLLIN, 'e');
	pid = fork();
	if (pid == 0) {
		WAIT(outer, 8, NOT);
		sets_put(pipes[1], "x");
		WAIT(outer, 8, COMES);
		WAIT(ep, 8, COMES);
		sets_put(fd[1], "x");
		same_wait(fd[0], POLLIN);
		WAIT(ep, 8, COMES);
		R(read(pipes[0], &(char){ 0 }, 1));
		WAIT(outer, 8, COMES);
		sets_take(fd[0], 1);
		WAIT(outer, 8, NOT);
		_exit(0);
	}
	child_ended(pid);
	WAIT(outer, 8, 0);
	sets_put(fd[1], "y");
	WAIT(outer, 8, COMES);
}

/* What a child closes is still its parent's */
static void child_closes(int fd[2])
{
	int ep = epoll_create1(0);
	pid_t pid;

	ADD(ep, fd[0], EPOLLIN, 'a');
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		close(fd[1]);
		close(ep);
		_exit(0);
	}
	child_ended(pid);
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
}

static volatile int stop;

/* Changes and asks a set all the time */
static void *hammer(void *arg)
{
	const int *all = arg; /* a set, and a member */
	struct epoll_event e = { .events = EPOLLIN };

	while (!stop) {
		epoll_ctl(all[0], EPOLL_CTL_ADD, all[1], &e);
		epoll_wait(all[0], &e, 1, 1);
		epoll_ctl(all[0], EPOLL_CTL_DEL, all[1], NULL);
	}
	return NULL;
}

static int child_tries(int ep, int outer, int fd[2])
{
	struct epoll_event e = { .events = EPOLLIN };
	int own = dup(fd[0]);

	if (epoll_ctl(ep, EPOLL_CTL_ADD, own, &e) || epoll_wait(outer, &e, 1, COMES) != 1 ||
	    epoll_wait(ep, &e, 1, COMES) != 1 || epoll_ctl(ep, EPOLL_CTL_DEL, own, NULL))
		return 1;
	return close(ep) || close(outer) || epoll_create1(0) < 0;
}

/* Whatever a thread was about when its process forked, the child goes on */
static void forks_amid(int fd[2])
{
	int ep = epoll_create1(0), outer = epoll_create1(0), all[2] = { ep, fd[0] }, bad = 0;
	pthread_t threads[2];

	ADD(outer, ep, EPOLLIN, 'e');
	sets_put(fd[1], "x");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, hammer, all);
	for (int i = 0; i < 30; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			alarm(20);
			signal(SIGALRM, SIG_DFL);
			_exit(child_tries(ep, outer, fd));
		}
		bad += waitpid(pid, &status, 0) != pid || !WIFEXITED(status);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	same_say("%d of 30 children hung or crashed", bad);
	sets_take(fd[0], 1);
}

/* --- what is different --- */

/* Each of the sets is in the next one: how many may there be, with a socket in the innermost? */
static void deepest(int fd[2])
{
	int ep[8], n = 0;

	for (int i = 0; i < 8; i++)
		ep[i] = epoll_create1(0);
	sets_ctl(ep[0], EPOLL_CTL_ADD, fd[0], EPOLLIN, 'a');
	while (n < 7 && !sets_ctl(ep[n + 1], EPOLL_CTL_ADD, ep[n], EPOLLIN, 'e'))
		n++;
	same_say("%d, then %s", n, strerrorname_np(errno));
	sets_put(fd[1], "x");
	WAIT(ep[n], 8, COMES);
}

/* What a child does to the set that it shares with its parent */
static void child_changes(int fd[2])
{
	int ep = epoll_create1(0);
	pid_t pid;

	sets_ctl(ep, EPOLL_CTL_ADD, fd[0], EPOLLIN, 'a');
	pid = fork();
	if (pid == 0) {
		sets_ctl(ep, EPOLL_CTL_DEL, fd[0], 0, 'a');
		sets_ctl(ep, EPOLL_CTL_ADD, fd[1], EPOLLOUT, 'b');
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	sets_put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	WAIT(ep, 8, NOT);
}

/* Its last descriptor of this process goes, and a child has another */
static void child_keeps(int fd[2])
{
	int ep = epoll_create1(0);
	pid_t pid;

	sets_ctl(ep, EPOLL_CTL_ADD, fd[0], EPOLLIN | EPOLLOUT, 'a');
	pid = fork();
	if (pid == 0) {
		same_sleep(10 * NOT);
		_exit(0);
	}
	close(fd[0]);
	WAIT(ep, 8, NOT);
	waitpid(pid, NULL, 0);
}

/* Two sets hear of the edges of a third */
static void edges_twice(int fd[2])
{
	int inner = epoll_create1(0), a = epoll_create1(0), b = epoll_create1(0);

	sets_ctl(a, EPOLL_CTL_ADD, inner, EPOLLIN | EPOLLET, 'i');
	sets_ctl(b, EPOLL_CTL_ADD, inner, EPOLLIN | EPOLLET, 'j');
	sets_ctl(inner, EPOLL_CTL_ADD, fd[0], EPOLLIN, 'a');
	WAIT(a, 8, 0);
	sets_put(fd[1], "x");
	for (int i = 0; i < 2; i++) {
		WAIT(a, 8, i ? NOT : COMES);
		WAIT(b, 8, i ? NOT : COMES);
	}
	sets_take(fd[0], 1);
	WAIT(a, 8, NOT);
	WAIT(b, 8, NOT);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		{ "a set in a set", in_a_set, NULL },
		{ "its member comes later", member_later, NULL },
		{ "an inner set with others", inner_of_others, NULL },
		{ "edges of a set", edges, NULL },
		{ "three levels", three_levels, NULL },
		{ "cycles", cycles, NULL },
		{ "an inner set is closed", closed_inner, NULL },
		{ "a set in two", in_two, NULL },
		{ "a set in poll()", in_poll, NULL },
		{ "a set in select()", in_select, NULL },
		{ "threads poll a set", threads_poll, NULL },
		{ "a thread sleeps in an outer set", thread_outer, NULL },
		{ "a child's own set", child_own, NULL },
		{ "a child inherits a set", child_inherits, NULL },
		{ "a child closes", child_closes, NULL },
		{ "forks amid it all", forks_amid, NULL },
		{ "how deep sets nest", deepest, "3, then ELOOP\nwait ep[n]: 1\n  e: in\n" },
		{ "a child changes its parent's set", child_changes, "wait ep: 1\n  a: in\n" },
		{ "a child keeps what its parent closes", child_keeps, "wait ep: 0\n" },
		{ "two sets and the edges of a third", edges_twice,
		  "wait a: 0\nwait a: 1\n  i: in\nwait b: 1\n  j: in\nwait a: 1\n  i: in\n"
		  "wait b: 1\n  j: in\nwait a: 0\nwait b: 0\n" },
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
