/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll(), ppoll(), select() and pselect(): what they say, of which descriptors, and when.
 */
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>

#include "tests/e2e/programs/same_sets.h"

enum { LONG = 700 };

/* What a compiler must not know */
static struct pollfd *volatile none, *volatile low = (void *)16;
static volatile nfds_t huge = (nfds_t)1 << 32, big = 1000000;

static void show(const struct pollfd *p, int n, int of)
{
	static const struct {
		short bit;
		const char *name;
	} names[] = { { POLLIN, " in" },	 { POLLOUT, " out" },	    { POLLPRI, " pri" },
		      { POLLRDNORM, " rdnorm" }, { POLLWRNORM, " wrnorm" }, { POLLRDHUP, " rdhup" },
		      { POLLHUP, " hup" },	 { POLLERR, " err" },	    { POLLNVAL, " nval" } };
	char text[80];

	if (n < 0) {
		same_say("poll: %s", strerrorname_np(errno));
		return;
	}
	same_say("poll: %d", n);
	for (int i = 0; i < of; i++) {
		*text = 0;
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (p[i].revents & names[k].bit)
				strcat(text, names[k].name);
		same_say("  %d:%s", i, text);
	}
}

static void polled(struct pollfd *p, int n, int ms)
{
	for (int i = 0; i < n; i++)
		p[i].revents = -1;
	show(p, poll(p, (nfds_t)n, ms), n);
}

/* --- poll() --- */

static void levels(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLIN };

	polled(&p, 1, 0);
	p.events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND;
	polled(&p, 1, COMES);
	sets_put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	polled(&p, 1, COMES);
	p.events = 0;
	polled(&p, 1, NOT);
	p.events = POLLRDNORM;
	polled(&p, 1, COMES);
	p.events = POLLIN | POLLRDHUP;
	shutdown(fd[1], SHUT_WR);
	same_wait(fd[0], POLLRDHUP);
	polled(&p, 1, COMES);
	sets_take(fd[0], 1);
	polled(&p, 1, COMES);
	shutdown(fd[0], SHUT_WR);
	p.events = 0;
	polled(&p, 1, COMES);
	p.events = POLLIN | POLLOUT | POLLRDHUP;
	polled(&p, 1, COMES);
}

static void room(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLOUT };
	size_t sum;

	polled(&p, 1, 0);
	do {
		sum = sets_stuff(fd[0]);
		same_sleep(NOT);
	} while (sum);
	polled(&p, 1, NOT);
	while (recv(fd[1], &(char[65536]){ 0 }, 65536, MSG_DONTWAIT) > 0)
		same_sleep(1);
	polled(&p, 1, COMES);
}

/* Writable means room for some KiB: programs whose sockets block rely on it, relays above all */
static void room_enough(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLOUT };
	static const char octets[5000];
	ssize_t n = sizeof(octets);

	while (n == sizeof(octets) && poll(&p, 1, 0) == 1)
		n = send(fd[0], octets, sizeof(octets), MSG_DONTWAIT);
	same_say("%zd of %zu octets", n, sizeof(octets));
}

static void lists(int fd[2])
{
	int pipes[2], gone = dup(fd[0]);
	struct pollfd p[8];

	R(pipe(pipes));
	close(gone);
	p[0] = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = fd[0], .events = POLLIN | POLLOUT };
	p[3] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	p[4] = (struct pollfd){ .fd = fd[1], .events = POLLIN };
	p[5] = (struct pollfd){ .fd = ~fd[1], .events = POLLOUT };
	p[6] = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	p[7] = (struct pollfd){ .fd = gone, .events = 0 };
	polled(p, 7, COMES);
	p[2].events = 0;
	polled(p, 7, NOT);
	sets_put(fd[1], "x");
	polled(p, 1, COMES);
	polled(p, 7, COMES);
	sets_put(pipes[1], "x");
	polled(p, 7, COMES);
	polled(p, 8, COMES);
	sets_take(fd[0], 1);
	polled(p, 7, COMES);
	polled(&p[1], 1, NOT);
	polled(p, 0, NOT);
}

static void errors(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLOUT };
	struct timespec bad = { 0, 1000000000 }, past = { -1, 0 }, nought = { 0, 0 };
	struct rlimit limit = { 40, 40 };
	static struct pollfd many[41];

	R(poll(none, 1, 0));
	R(poll(low, 1, 0));
	R(poll(none, 0, 0));
	R(poll(&p, big, 0));
	R(poll(&p, huge, 0));
	R(ppoll(&p, 1, &bad, NULL));
	R(ppoll(&p, 1, &past, NULL));
	R(ppoll(&p, 1, &nought, NULL));
	R(ppoll(&p, 1, NULL, NULL));
	R(poll(&p, 1, -77));
	for (int i = 0; i < 41; i++)
		many[i] = p;
	R(setrlimit(RLIMIT_NOFILE, &limit));
	R(poll(many, 40, 0));
	R(poll(many, 41, 0));
}

static void *no_more(void *arg)
{
	return arg;
}

/* As long as a list may be, with a sleeper among several threads */
static void longest(int fd[2])
{
	static struct pollfd many[LONG];
	struct rlimit limit;
	pthread_t thread;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = LONG;
	pthread_create(&thread, NULL, no_more, NULL);
	for (int i = 0; i < LONG; i++)
		many[i] = (struct pollfd){ .fd = i % 3 ? -1 : fd[0], .events = POLLIN };
	R(poll(many, LONG, NOT));
	R(setrlimit(RLIMIT_NOFILE, &limit));
	R(poll(many, LONG, NOT));
	R(poll(many, LONG - 1, NOT));
	sets_put(fd[1], "x");
	R(poll(many, LONG, COMES));
	same_say("%d %d %d", many[0].revents, many[1].revents, many[LONG - 1].revents);
	pthread_join(thread, NULL);
}

static void later_put(void *arg)
{
	sets_put(*(int *)arg, "x");
}

static void later_take(void *arg)
{
	sets_take(*(int *)arg, 1);
}

static void later_close(void *arg)
{
	close(*(int *)arg);
}

/* What another thread does meanwhile */
static void meanwhile(int fd[2])
{
	struct pollfd p[2] = { { .fd = fd[0], .events = POLLIN }, { .fd = -1 } };

	same_later(NOT, later_put, &fd[1]);
	polled(p, 2, COMES);
	same_join();
	same_later(NOT, later_take, &fd[0]);
	polled(p, 2, COMES);
	same_join();
	polled(p, 2, NOT);
	/* One that is closed ends no sleep, but the other's octets do */
	p[1] = (struct pollfd){ .fd = fd[1], .events = POLLRDHUP };
	p[0].fd = -1;
	same_later(NOT, later_close, &fd[1]);
	p[1].revents = 0;
	same_say("%d", poll(p, 2, 4 * NOT) < 0);
	same_join();
	polled(&p[1], 1, 0);
}

static void timeouts(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLIN };
	struct timespec ts = { 0, 20500000 };
	double begin = same_now();

	R(poll(&p, 1, 40));
	same_took(begin, 40);
	begin = same_now();
	R(ppoll(&p, 1, &ts, NULL));
	same_say("%s", same_now() - begin < 0.0205 ? "too early" : "not before its time");
	same_say("%ld.%09ld", ts.tv_sec, ts.tv_nsec);
	begin = same_now();
	R(poll(&p, 1, 0));
	same_say("%s", same_now() - begin < 0.02 ? "at once" : "later");
	ts = (struct timespec){ 0, 1000 };
	begin = same_now();
	for (int i = 0; i < 300; i++)
		ppoll(&p, 1, &ts, NULL);
	same_say("%s", same_now() - begin < 0.29 ? "short" : "long");
}

/* --- select() --- */

struct three {
	fd_set in, out, except;
};

static void three_set(struct three *t, int n, const int *fds)
{
	FD_ZERO(&t->in);
	FD_ZERO(&t->out);
	FD_ZERO(&t->except);
	for (int i = 0; i < n; i++) {
		FD_SET(fds[i], &t->in);
		FD_SET(fds[i], &t->out);
		FD_SET(fds[i], &t->except);
	}
}

static void selected(int n, int *fds, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	struct three t;
	int got;

	three_set(&t, n, fds);
	got = select(FD_SETSIZE, &t.in, &t.out, &t.except, &tv);
	same_say("select: %d %s", got, got < 0 ? strerrorname_np(errno) : "");
	for (int i = 0; i < n && fds[i] >= 0; i++)
		same_say("  %d:%s%s%s", i, FD_ISSET(fds[i], &t.in) ? " in" : "",
			 FD_ISSET(fds[i], &t.out) ? " out" : "",
			 FD_ISSET(fds[i], &t.except) ? " except" : "");
}

static void selects(int fd[2])
{
	int pipes[2], fds[4], gone = dup(fd[0]);

	R(pipe(pipes));
	close(gone);
	fds[0] = fd[0];
	fds[1] = pipes[0];
	fds[2] = fd[1];
	fds[3] = gone;
	selected(3, fds, COMES);
	sets_put(fd[1], "x");
	same_wait(fd[0], POLLIN);
	sets_put(pipes[1], "y");
	selected(3, fds, COMES);
	shutdown(fd[1], SHUT_WR);
	same_wait(fd[0], POLLRDHUP);
	sets_take(fd[0], 1);
	selected(3, fds, COMES);
	shutdown(fd[0], SHUT_WR);
	same_wait(fd[1], POLLRDHUP);
	selected(3, fds, COMES);
	selected(4, fds, COMES);
}

static void select_reset(int fd[2])
{
	struct linger hard = { 1, 0 };

	R(setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)));
	close(fd[1]);
	same_wait(fd[0], POLLHUP);
	selected(1, fd, COMES);
}

/* The highest number that fits */
static void select_high(int fd[2])
{
	int fds[2] = { FD_SETSIZE - 1, FD_SETSIZE - 2 };

	R(dup2(fd[0], fds[0]) == fds[0]);
	R(dup2(fd[1], fds[1]) == fds[1]);
	sets_put(fds[1], "x");
	same_wait(fds[0], POLLIN);
	selected(2, fds, COMES);
}

static void select_errors(int fd[2])
{
	struct timeval bad = { 0, -1 }, past = { -1, 0 }, much = { 0, 2500000 }, nought = { 0, 0 };
	struct timespec ts = { 0, 1000000000 };
	struct three t;

	three_set(&t, 1, fd);
	R(select(-1, &t.in, NULL, NULL, &nought));
	R(select(FD_SETSIZE, &t.in, NULL, NULL, &bad));
	R(select(FD_SETSIZE, &t.in, NULL, NULL, &past));
	R(pselect(FD_SETSIZE, &t.in, NULL, NULL, &ts, NULL));
	R(FD_ISSET(fd[0], &t.in));
	R(select(FD_SETSIZE, &t.in, &t.out, NULL, &much));
	same_say("%ld %d", (long)much.tv_sec, much.tv_usec < 1000000);
	R(FD_ISSET(fd[0], &t.in));
	three_set(&t, 1, fd);
	R(select(fd[0], &t.in, &t.out, &t.except, &nought));
	R(FD_ISSET(fd[0], &t.in));
	R(select(0, NULL, NULL, NULL, &nought));
	three_set(&t, 1, fd);
	R(select(FD_SETSIZE, NULL, &t.out, NULL, NULL));
}

static void select_time(int fd[2])
{
	struct timeval tv = { 0, 40000 };
	struct itimerval soon = { .it_value.tv_usec = 40000 };
	struct timespec ts = { 0, 30000000 };
	struct three t;
	double begin = same_now();

	three_set(&t, 1, fd);
	R(select(FD_SETSIZE, &t.in, NULL, NULL, &tv));
	same_took(begin, 40);
	same_say("left %ld %ld", (long)tv.tv_sec, (long)tv.tv_usec);
	R(FD_ISSET(fd[0], &t.in));
	tv = (struct timeval){ 600, 0 };
	three_set(&t, 1, fd);
	setitimer(ITIMER_REAL, &soon, NULL);
	R(select(FD_SETSIZE, &t.in, NULL, NULL, &tv));
	same_say("%s, %d signals", tv.tv_sec < 600 && tv.tv_sec > 500 ? "what is left" : "?",
		 (int)same_signals);
	R(FD_ISSET(fd[0], &t.in));
	tv = (struct timeval){ 600, 0 };
	same_later(NOT, later_put, &fd[1]);
	R(select(FD_SETSIZE, &t.in, NULL, NULL, &tv));
	same_say("%s", tv.tv_sec < 600 && tv.tv_sec > 500 ? "what is left" : "?");
	sets_take(fd[0], 1);
	begin = same_now();
	R(pselect(FD_SETSIZE, &t.in, NULL, NULL, &ts, NULL));
	same_took(begin, 30);
	same_say("%ld", ts.tv_nsec);
}

/* A signal that is blocked comes in the sleep, which has another mask */
static void masks(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLIN };
	sigset_t blocked, open;
	struct three t;

	sigemptyset(&open);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	raise(SIGALRM);
	R(poll(&p, 1, NOT));
	same_say("%d", (int)same_signals);
	R(ppoll(&p, 1, NULL, &open));
	same_say("%d", (int)same_signals);
	raise(SIGALRM);
	three_set(&t, 1, fd);
	R(pselect(FD_SETSIZE, &t.in, NULL, NULL, NULL, &open));
	same_say("%d", (int)same_signals);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		{ "poll: levels", levels, NULL },
		{ "poll: room", room, NULL },
		{ "poll: room for a whole write", room_enough, NULL },
		{ "poll: lists", lists, NULL },
		{ "poll: errors", errors, NULL },
		{ "poll: the longest list", longest, NULL },
		{ "poll: what others do meanwhile", meanwhile, NULL },
		{ "poll: time-outs", timeouts, NULL },
		{ "select: sets", selects, NULL },
		{ "select: a reset", select_reset, NULL },
		{ "select: high numbers", select_high, NULL },
		{ "select: errors", select_errors, NULL },
		{ "select: time", select_time, NULL },
		{ "masks", masks, NULL },
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
