/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signal handlers that do something while a call on a stream socket is under way: jump away from
 * it, fork, write to the same connection. To be run by itself and under the launcher, as calls.c.
 */
#include "tests/e2e/programs/calls_signal.h"
#include "tests/entries.h"

#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>

#define STORM_SECONDS 4

static int talk_fd;

static void jump_away(int sig, siginfo_t *info, void *context)
{
	seen++;
	siglongjmp(jump, 1);
}

static void alarm_in(int us)
{
	struct itimerval it = { .it_value.tv_usec = us };

	setitimer(ITIMER_REAL, &it, NULL);
}

/* Out of each kind of wait, again and again; then all goes on as if nothing had been */
static bool jumps(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	static char text[65536];
	volatile int files = 0;
	int fd[2], full[2], ep = epoll_create1(0);
	struct pollfd p;
	char c;

	need(pair(full) && stuff(full[0]) > 0 && pair(fd) &&
	     !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	install(SIGALRM, jump_away, 0);
	seen = 0;
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	for (volatile int i = 0; i < 300; i++) {
		if (i == 30)
			files = entries("/proc/self/fd");
		if (!sigsetjmp(jump, 1)) {
			alarm_in(300);
			if (i % 5 == 0)
				need(recv(fd[0], &c, 1, 0) == -2);
			if (i % 5 == 1)
				need(poll(&p, 1, -1) == -2);
			while (i % 5 == 2)
				need(write(full[0], text, sizeof(text)) > 0);
			if (i % 5 == 3)
				need(accept(lfd, NULL, NULL) == -2);
			need(epoll_wait(ep, &e, 1, -1) == -2);
		}
		need(seen == i + 1);
	}
	need(entries("/proc/self/fd") == files);
	need(write(fd[1], "j", 1) == 1 && epoll_wait(ep, &e, 1, 1000) == 1);
	need(read(fd[0], &c, 1) == 1 && c == 'j');
	need(write(fd[0], "k", 1) == 1 && read(fd[1], &c, 1) == 1 && c == 'k');
	close(fd[0]);
	need(read(fd[1], &c, 1) == 0);
	close(fd[1]);
	done(full);
	return !close(ep);
}

static volatile pid_t child;

static void fork_and_talk(int sig, siginfo_t *info, void *context)
{
	child = fork();
	if (!child)
		_exit(write(talk_fd, "c", 1) == 1 ? 0 : 1);
	seen++;
}

static bool fork_in_handler(void)
{
	int fd[2], status;
	char c;

	need(pair(fd));
	talk_fd = fd[1];
	install(SIGUSR1, fork_and_talk, SA_RESTART);
	seen = 0;
	send_later(SIGUSR1, 1, 0, -1);
	need(read(fd[0], &c, 1) == 1 && c == 'c' && seen == 1);
	sent();
	need(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	need(write(fd[1], "d", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'd');
	done(fd);
	return true;
}

/*
 * A handler that brings what the call waits for. It comes at any moment of the call, also just
 * before it sleeps; a call that slept on would do so for good.
 */
static void bring(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (write(talk_fd, "b", 1) == 1)
		seen++;
	errno = saved;
}

static bool moments(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd[2], ep = epoll_create1(0);
	double end = now() + STORM_SECONDS;
	unsigned int seed = 1;
	struct pollfd p;
	char c;

	need(pair(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e));
	talk_fd = fd[1];
	install(SIGALRM, bring, SA_RESTART);
	seen = 0;
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	for (int i = 0; i < 30000 && now() < end; i++) {
		alarm_in(1 + rand_r(&seed) % 60);
		while (i % 3 == 1 && poll(&p, 1, -1) != 1)
			need(errno == EINTR);
		while (i % 3 == 2 && epoll_wait(ep, &e, 1, -1) != 1)
			need(errno == EINTR);
		need(read(fd[0], &c, 1) == 1 && c == 'b' && seen == i + 1);
	}
	done(fd);
	return !close(ep);
}

/* --- the storm --- */

#define STORM_OCTETS 2000000L
#define STORM_AHEAD 4096

/* The main flow's octets count up from 0 to 127, the handler's from 128 to 255 */
static volatile long told, heard;
static long got; /* of the main flow */

static void tell(int sig, siginfo_t *info, void *context)
{
	unsigned char c = (unsigned char)(0x80 | (told & 0x7f));
	int saved = errno;

	if (told - heard < STORM_AHEAD && write(talk_fd, &c, 1) == 1)
		told++;
	errno = saved;
}

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	char buf[4096];
	ssize_t n, sent;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n; at += sent)
			if ((sent = write(fd, buf + at, (size_t)(n - at))) <= 0)
				return arg;
	return n || shutdown(fd, SHUT_WR) ? arg : NULL;
}

static bool storm_check(const unsigned char *p, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		if (p[i] & 0x80)
			need((p[i] & 0x7f) == (heard++ & 0x7f));
		else
			need(p[i] == (got++ & 0x7f));
	}
	return true;
}

static bool storm_talk(int fd)
{
	unsigned char out[700], in[2000];
	double end = now() + STORM_SECONDS;
	long put = 0;

	while (got < STORM_OCTETS && now() < end) {
		size_t len = (size_t)(1 + put % 699);
		ssize_t n = 0;

		for (size_t i = 0; i < len; i++)
			out[i] = (unsigned char)((put + (long)i) & 0x7f);
		if (put < STORM_OCTETS && put - got < STORM_AHEAD) {
			n = write(fd, out, len);
			need(n > 0);
			put += n;
		}
		if (put > got) {
			n = read(fd, in, sizeof(in));
			need(n > 0 && storm_check(in, n));
		}
	}
	return true;
}

/* The same by epoll_wait(), with the socket non-blocking */
static bool storm_epoll(int fd)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(0);
	double end = now() + STORM_SECONDS;
	long put = 0;
	unsigned char out, in[2000];

	need(nonblock(fd) && !epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	while (got < STORM_OCTETS / 20 && now() < end) {
		ssize_t n;

		out = put & 0x7f;
		if (put - got < STORM_AHEAD && write(fd, &out, 1) == 1)
			put++;
		need(epoll_wait(ep, &e, 1, 1000) >= 0 || errno == EINTR);
		while ((n = read(fd, in, sizeof(in))) > 0)
			need(storm_check(in, n));
		need(n < 0 && errno == EAGAIN);
	}
	need(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
	return !close(ep);
}

static bool storm_by(bool (*talk)(int fd))
{
	struct itimerval it = { { 0, 50 }, { 0, 50 } }, off = { 0 };
	sigset_t alarm, before;
	unsigned char in[2000];
	pthread_t thread;
	void *bad;
	int fd[2];

	need(pair(fd));
	told = heard = got = 0;
	talk_fd = fd[0];
	install(SIGALRM, tell, SA_RESTART);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &before);
	need(!pthread_create(&thread, NULL, echo, &fd[1]));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	need(talk(fd[0]));
	setitimer(ITIMER_REAL, &off, NULL);
	need(!shutdown(fd[0], SHUT_WR));
	for (ssize_t n; (n = read(fd[0], in, sizeof(in)));)
		need(n > 0 && storm_check(in, n));
	need(!pthread_join(thread, &bad) && !bad);
	printf("# %ld of the handler's\n", told);
	need(told > 10 && told == heard);
	done(fd);
	return true;
}

static bool storm(void)
{
	return storm_by(storm_talk);
}

static bool storm_waiting(void)
{
	return storm_by(storm_epoll);
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "jumps out of handlers", jumps },
		{ "fork in a handler", fork_in_handler },
		{ "signals at each moment of a call", moments },
		{ "a signal each 50 us whose handler writes", storm },
		{ "the same while main waits in epoll_wait", storm_waiting },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
