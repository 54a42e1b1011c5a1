/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of a connection that several processes have: what one takes in or makes
 * room for wakes the others, and it ends with the last of them. As calls.c, for the kernel's TCP
 * and for Warpsock; how they move octets is in calls_crew.c.
 *
 *	this process --- fd[0] === fd[1] --- child, child ...
 *
 * Each sleeps in a way of its own while another one only looks, and so takes in what the former is
 * to be woken for; were that lost, the answer would come late or never.
 */
#include "tests/e2e/programs/calls_octets.h"

/* --- asleep --- */

/* Each octet is answered by whom it came to, until the end */
static bool answers(const struct share *s)
{
	ssize_t n;
	char c;

	while ((n = s->wait(s, &c)) == 1)
		need(write(s->fd, &c, 1) == 1);
	need(n == 0);
	return true;
}

static ssize_t by_recv(const struct share *s, char *c)
{
	return read(s->fd, c, 1);
}

static ssize_t tried(const struct share *s, char *c)
{
	ssize_t n = recv(s->fd, c, 1, MSG_DONTWAIT);

	return n < 0 && errno == EAGAIN ? -2 : n;
}

static ssize_t by_poll(const struct share *s, char *c)
{
	ssize_t n;

	do {
		if (!ready(s->fd, POLLIN, LIMIT_MS))
			return -1;
	} while ((n = tried(s, c)) == -2);
	return n;
}

static ssize_t by_select(const struct share *s, char *c)
{
	struct timeval limit;
	fd_set set;
	ssize_t n;

	do {
		limit = (struct timeval){ LIMIT_MS / 1000, 0 };
		FD_ZERO(&set);
		FD_SET(s->fd, &set);
		if (select(s->fd + 1, &set, NULL, NULL, &limit) != 1)
			return -1;
	} while ((n = tried(s, c)) == -2);
	return n;
}

static ssize_t by_set(const struct share *s, char *c, uint32_t events)
{
	struct epoll_event event = { .events = events };
	ssize_t n;

	if (crew_set < 0) {
		crew_set = epoll_create1(0);
		if (epoll_ctl(crew_set, EPOLL_CTL_ADD, s->fd, &event))
			return -1;
	}
	/* Linux does not begin it anew for who was stopped */
	while ((n = tried(s, c)) == -2)
		if (epoll_wait(crew_set, &event, 1, LIMIT_MS) != 1 && errno != EINTR)
			return -1;
	return n;
}

static ssize_t by_epoll(const struct share *s, char *c)
{
	return by_set(s, c, EPOLLIN);
}

static ssize_t by_edges(const struct share *s, char *c)
{
	return by_set(s, c, EPOLLIN | EPOLLET);
}

/* A set in a set in poll() */
static ssize_t by_nest(const struct share *s, char *c)
{
	struct epoll_event event = { .events = EPOLLIN };
	ssize_t n;
	int inner;

	if (crew_set < 0) {
		inner = epoll_create1(0);
		crew_set = epoll_create1(0);
		if (epoll_ctl(crew_set, EPOLL_CTL_ADD, inner, &event) ||
		    epoll_ctl(inner, EPOLL_CTL_ADD, s->fd, &event))
			return -1;
	}
	while ((n = tried(s, c)) == -2)
		if (!ready(crew_set, POLLIN, LIMIT_MS))
			return -1;
	return n;
}

static const struct {
	const char *name;
	ssize_t (*wait)(const struct share *s, char *c);
} waits[] = {
	{ "recv", by_recv },   { "poll", by_poll },   { "select", by_select },
	{ "epoll", by_epoll }, { "edges", by_edges }, { "nested", by_nest },
};
#define WAITS (sizeof(waits) / sizeof(waits[0]))

static bool pings(int fd, int n)
{
	char c;

	for (int i = 0; i < n; i++) {
		need(write(fd, "x", 1) == 1);
		need(read(fd, &c, 1) == 1);
	}
	return true;
}

/* Two or three sleep in all ways there are; each octet wakes one that takes it */
static bool all_sleep(void)
{
	int fd[2];

	for (size_t i = 0; i < WAITS; i++)
		for (size_t k = i; k < WAITS; k++) {
			need(crew_pair(fd));
			crew_wait = waits[i].wait;
			need(crew_start(fd, answers));
			crew_wait = waits[k].wait;
			need(crew_start(fd, answers));
			close(fd[1]);
			need(pings(fd[0], 100) && !shutdown(fd[0], SHUT_WR));
			need(crew_ended());
			close(fd[0]);
		}
	return true;
}

/* It only looks, all the time, and so takes in what the other one sleeps for */
static bool looks(const struct share *s)
{
	int there;

	while (!__atomic_load_n(&crew->stop, __ATOMIC_ACQUIRE)) {
		ready(s->fd, POLLIN, 0);
		ioctl(s->fd, FIONREAD, &there);
	}
	return true;
}

static bool one_looks(void)
{
	int fd[2];

	for (size_t i = 0; i < WAITS; i++) {
		need(crew_pair(fd));
		crew_clear();
		need(crew_start(fd, looks));
		crew_wait = waits[i].wait;
		need(crew_start(fd, answers));
		close(fd[1]);
		for (int k = 0; k < 30; k++) {
			need(pings(fd[0], 1));
			nap_ms(k % 3);
		}
		need(pings(fd[0], 300) && !shutdown(fd[0], SHUT_WR));
		__atomic_store_n(&crew->stop, true, __ATOMIC_RELEASE);
		need(crew_ended());
		close(fd[0]);
	}
	return true;
}

static bool until_is(pid_t pid, char state)
{
	for (int times = 0, tries = 0; times < 3; tries++) {
		times = state_of(pid) == state ? times + 1 : 0;
		need(tries < LIMIT_MS);
		nap_ms(1);
	}
	return true;
}

/*
 * Who sleeps is stopped, and the kernel has nothing for it any more when it goes on: another
 * process has taken that in. How long until it answers
 */
static bool stopped_once(int fd[2], double *took)
{
	char c;

	need(until_is(crew_pid[0], 'S') && !kill(crew_pid[0], SIGSTOP));
	need(until_is(crew_pid[0], 'T') && write(fd[0], "x", 1) == 1);
	need(ready(fd[1], POLLIN, LIMIT_MS) && ioctl(fd[1], FIONREAD, &(int){ 0 }) == 0);
	need(!kill(crew_pid[0], SIGCONT));
	*took = now();
	need(read(fd[0], &c, 1) == 1);
	*took = now() - *took;
	return true;
}

/* Were it not woken, it would look after a while; half of that is longer than most may take */
#define ROUNDS 7

static bool stopped_asleep(void)
{
	double took;
	int fd[2], slow;

	for (size_t i = 0; i < WAITS; i++) {
		need(crew_pair(fd));
		crew_wait = waits[i].wait;
		need(crew_start(fd, answers) && pings(fd[0], 1));
		slow = 0;
		for (int k = 0; k < ROUNDS; k++) {
			need(stopped_once(fd, &took));
			slow += took > 0.1;
		}
		printf("# %s: %d of %d took long\n", waits[i].name, slow, ROUNDS);
		need(slow <= ROUNDS / 2);
		close(fd[1]);
		need(!shutdown(fd[0], SHUT_WR) && crew_ended());
		close(fd[0]);
	}
	return true;
}

/* One of many threads is meant, and another one of them may be the first who hears */
#define THREADS 6
static int other_end[2];

static void *thread_recv(void *arg)
{
	char c;

	return (void *)(intptr_t)(read(other_end[1], &c, 1) == 0);
}

static bool answers_beside_threads(const struct share *s)
{
	pthread_t thread[THREADS];
	void *good;

	close(other_end[0]);
	for (int i = 0; i < THREADS; i++)
		need(!pthread_create(&thread[i], NULL, thread_recv, NULL));
	need(answers(s));
	for (int i = 0; i < THREADS; i++)
		need(!pthread_join(thread[i], &good) && good);
	return true;
}

static bool stopped_threads(void)
{
	double took;
	int fd[2], slow = 0;

	need(crew_pair(fd) && crew_pair(other_end));
	crew_wait = by_recv;
	need(crew_start(fd, answers_beside_threads) && pings(fd[0], 1));
	nap_ms(20);
	for (int k = 0; k < 3 * ROUNDS; k++) {
		need(stopped_once(fd, &took));
		slow += took > 0.1;
	}
	printf("# %d of %d took long\n", slow, 3 * ROUNDS);
	need(slow <= ROUNDS / 2);
	close(fd[1]);
	need(!shutdown(fd[0], SHUT_WR) && !shutdown(other_end[0], SHUT_WR) && crew_ended());
	close(fd[0]);
	done(other_end);
	return true;
}

/* Room comes as input, which the other one takes in */
static bool room(void)
{
	int fd[2];

	need(crew_pair(fd));
	crew_clear();
	need(crew_start(fd, looks));
	need(crew_start(fd, writes_all));
	need(crew_start(fd, looks));
	close(fd[1]);
	need(drain_stream(fd[0]));
	__atomic_store_n(&crew->stop, true, __ATOMIC_RELEASE);
	need(crew_ended());
	close(fd[0]);
	return true;
}

/* A thread sleeps here when a child is made, which then takes in what it sleeps for */
static void *thread_answers(void *arg)
{
	struct share s = { .fd = *(int *)arg, .wait = by_recv };

	return (void *)(intptr_t)answers(&s);
}

static void *thread_polls(void *arg)
{
	struct share s = { .fd = *(int *)arg, .wait = by_epoll };

	return (void *)(intptr_t)answers(&s);
}

static bool thread_sleeps_with(void *(*run)(void *))
{
	pthread_t thread;
	void *good;
	int fd[2];

	need(crew_pair(fd));
	crew_clear();
	need(!pthread_create(&thread, NULL, run, &fd[1]) && pings(fd[0], 10));
	for (int i = 0; i < 5; i++) {
		nap_ms(20);
		need(crew_start(fd, looks) && pings(fd[0], 50));
		__atomic_store_n(&crew->stop, true, __ATOMIC_RELEASE);
		need(crew_ended() && pings(fd[0], 10));
		__atomic_store_n(&crew->stop, false, __ATOMIC_RELEASE);
	}
	need(!shutdown(fd[0], SHUT_WR) && !pthread_join(thread, &good) && good);
	crew_set = -1;
	done(fd);
	return true;
}

static bool thread_sleeps(void)
{
	return thread_sleeps_with(thread_answers) && thread_sleeps_with(thread_polls);
}

/* A set from before the fork, which both wait for, each in its process */
static int old_set;

static bool waits_for_old(const struct share *s)
{
	struct epoll_event event;
	char c;

	for (;;) {
		ssize_t n = tried(s, &c);

		if (n == 1)
			need(write(s->fd, &c, 1) == 1);
		else if (n != -2)
			return n == 0;
		else
			need(epoll_wait(old_set, &event, 1, LIMIT_MS) == 1);
	}
}

static bool set_from_before(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd[2];

	need(crew_pair(fd));
	old_set = epoll_create1(0);
	need(!epoll_ctl(old_set, EPOLL_CTL_ADD, fd[1], &event));
	for (int i = 0; i < 3; i++)
		need(crew_start(fd, waits_for_old));
	close(fd[1]);
	need(pings(fd[0], 500) && !shutdown(fd[0], SHUT_WR) && crew_ended());
	close(fd[0]);
	close(old_set);
	return true;
}

/* A time-out is kept by who sleeps beside another process */
static bool gives_up(const struct share *s)
{
	struct timeval limit = { 0, 300000 };
	double begin = now();
	char c;

	need(!setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	need(read(s->fd, &c, 1) < 0 && errno == EAGAIN);
	need(!ready(s->fd, POLLIN, 300) && now() - begin > 0.59 && now() - begin < 20);
	return true;
}

static bool times_out(void)
{
	int fd[2];

	need(crew_pair(fd));
	need(crew_start(fd, gives_up) && crew_start(fd, gives_up));
	need(crew_ended());
	done(fd);
	return true;
}

/* --- ends --- */

static bool leaves(const struct share *s)
{
	char c;

	need(read(s->fd, &c, 1) == 1 && write(s->fd, "left", 4) == 4);
	close(s->fd);
	return true;
}

static bool stays(const struct share *s)
{
	char buf[8];

	need(recv(s->fd, buf, 7, MSG_WAITALL) == 7 && !memcmp(buf, "for you", 7));
	need(write(s->fd, "still here", 10) == 10);
	return true;
}

/* One closes and the other goes on; the end comes with the last one */
static bool one_closes(void)
{
	char buf[16];
	int fd[2];

	need(crew_pair(fd) && crew_start(fd, leaves));
	need(write(fd[0], "x", 1) == 1 && recv(fd[0], buf, 4, MSG_WAITALL) == 4 && crew_ended());
	need(!ready(fd[0], POLLIN | POLLRDHUP, 50));
	need(crew_start(fd, stays));
	close(fd[1]);
	need(!ready(fd[0], POLLIN | POLLRDHUP, 50));
	need(write(fd[0], "for you", 7) == 7 && recv(fd[0], buf, 10, MSG_WAITALL) == 10);
	need(read(fd[0], buf, 1) == 0 && crew_ended());
	close(fd[0]);
	return true;
}

/* The parent closes before its child has begun */
static bool parent_closes(void)
{
	char buf[16];
	int fd[2];

	for (int i = 0; i < 30; i++) {
		need(crew_pair(fd) && crew_start(fd, stays));
		close(fd[1]);
		need(write(fd[0], "for you", 7) == 7);
		need(recv(fd[0], buf, 10, MSG_WAITALL) == 10 && read(fd[0], buf, 1) == 0);
		need(crew_ended());
		close(fd[0]);
	}
	return true;
}

/* shutdown() is for all of them, and wakes who sleeps */
static bool shuts(const struct share *s)
{
	need(!shutdown(s->fd, SHUT_RD));
	return true;
}

static bool finds_end(const struct share *s)
{
	char c;

	need(s->wait(s, &c) == 0 && write(s->fd, "ok", 2) == 2);
	return true;
}

static bool shuts_once(double *took)
{
	char buf[2];
	int fd[2];

	need(crew_pair(fd) && crew_start(fd, finds_end) && crew_start(fd, finds_end));
	need(until_is(crew_pid[0], 'S') && until_is(crew_pid[1], 'S'));
	*took = now();
	need(crew_start(fd, shuts));
	close(fd[1]);
	for (int k = 0; k < 2; k++)
		need(recv(fd[0], buf, 2, MSG_WAITALL) == 2);
	*took = now() - *took;
	need(crew_ended());
	close(fd[0]);
	return true;
}

static bool one_shuts(void)
{
	double took;
	int slow;

	for (size_t i = 0; i < WAITS; i++) {
		crew_wait = waits[i].wait;
		slow = 0;
		for (int k = 0; k < 5; k++) {
			need(shuts_once(&took));
			slow += took > 0.1;
		}
		printf("# %s: %d of 5 took long\n", waits[i].name, slow);
		need(slow < 5); /* on a busy machine some do */
	}
	return true;
}

/* --- killed --- */

static bool sleeps(const struct share *s)
{
	pause();
	return true;
}

/* One is killed that has the connection, and who is left gets all that comes, and the end */
static bool killed_idle(void)
{
	int fd[2];

	for (int i = 0; i < 3; i++) {
		need(crew_pair(fd));
		crew_clear();
		need(crew_start(fd, sleeps) && crew_start(fd, takes_some));
		close(fd[1]);
		need(put_part(fd[0], 0, STREAM / 2) && crew_kill(0));
		need(put_part(fd[0], STREAM / 2, STREAM) && !shutdown(fd[0], SHUT_WR));
		need(crew_ended() && all_seen());
		close(fd[0]);
	}
	return true;
}

/* It sleeps in each of the ways, and takes nothing with it */
static bool killed_asleep(void)
{
	char c;
	int fd[2];

	for (size_t i = 0; i < WAITS; i++) {
		need(crew_pair(fd));
		crew_wait = waits[i].wait;
		need(crew_start(fd, answers));
		need(pings(fd[0], 5));
		nap_ms(10);
		need(crew_kill(0));
		need(write(fd[0], "y", 1) == 1 && read(fd[1], &c, 1) == 1 && c == 'y');
		need(write(fd[1], "z", 1) == 1 && read(fd[0], &c, 1) == 1);
		close(fd[1]);
		need(read(fd[0], &c, 1) == 0);
		close(fd[0]);
		need(crew_ended());
	}
	return true;
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "all of them sleep", all_sleep },
		{ "one looks and another one sleeps", one_looks },
		{ "a stopped one is woken for what it missed", stopped_asleep },
		{ "one of a stopped one's threads is woken", stopped_threads },
		{ "one looks and another one waits for room", room },
		{ "a thread sleeps when a child is made", thread_sleeps },
		{ "a set from before the fork", set_from_before },
		{ "time-outs beside another process", times_out },
		{ "one closes and another one goes on", one_closes },
		{ "the parent closes at once", parent_closes },
		{ "one shuts down for all", one_shuts },
		{ "an idle one is killed", killed_idle },
		{ "one that sleeps is killed", killed_asleep },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
