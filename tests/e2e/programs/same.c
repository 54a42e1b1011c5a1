/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs that are compared with themselves share. Each case runs in a process of its
 * own, so that one that hangs or crashes is one line of the result.
 */
#include "tests/e2e/programs/same.h"

#include <pthread.h>
#include <stdarg.h>

struct sockaddr_in same_addr;
int same_listener;
volatile sig_atomic_t same_signals;

static void on_signal(int number)
{
	same_signals++;
}

void same_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

long same_result(const char *text, long result)
{
	int err = errno;

	if (result < 0)
		same_say("%s: %ld %s", text, result, strerrorname_np(err));
	else
		same_say("%s: %ld", text, result);
	errno = err;
	return result;
}

void same_show(const char *text, const void *p, size_t len)
{
	same_say("%s: \"%.*s\"", text, (int)len, (const char *)p);
}

void same_sleep(int ms)
{
	poll(NULL, 0, ms);
}

double same_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void same_took(double begin, int ms)
{
	double took = (same_now() - begin) * 1000;

	same_say(took < ms * 0.9 ? "sooner than %d ms" : "after %d ms", ms);
}

void same_wait(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (poll(&p, 1, 30000) <= 0)
		same_say("nothing came");
}

void same_nonblock(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void same_pair(int fd[2])
{
	int on = 1;
	char c;

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[0], (struct sockaddr *)&same_addr, sizeof(same_addr)))
		same_say("connect: %s", strerror(errno));
	fd[1] = accept(same_listener, NULL, NULL);
	/* One octet each way, so that the connection is up for both */
	if (write(fd[0], "a", 1) != 1 || read(fd[1], &c, 1) != 1 || write(fd[1], "b", 1) != 1 ||
	    read(fd[0], &c, 1) != 1)
		same_say("no connection: %s", strerror(errno));
	/* What TCP has to acknowledge first is no question of these cases */
	setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

struct later {
	int ms;
	void (*fn)(void *arg);
	void *arg;
};

static struct later laters[8];
static pthread_t threads[8];
static unsigned int running;

static void *later_run(void *arg)
{
	const struct later *later = arg;

	same_sleep(later->ms);
	later->fn(later->arg);
	return NULL;
}

void same_later(int ms, void (*fn)(void *arg), void *arg)
{
	laters[running] = (struct later){ ms, fn, arg };
	pthread_create(&threads[running], NULL, later_run, &laters[running]);
	running++;
}

void same_join(void)
{
	while (running)
		pthread_join(threads[--running], NULL);
}

static void setup(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	socklen_t len = sizeof(same_addr);

	same_addr = (struct sockaddr_in){ .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	same_listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(same_listener, (struct sockaddr *)&same_addr, len) || listen(same_listener, 16) ||
	    getsockname(same_listener, (struct sockaddr *)&same_addr, &len))
		exit(1);
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGIO, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static int case_run(const struct same_case *c)
{
	int fd[2];

	setup();
	same_pair(fd);
	c->run(fd);
	same_join();
	return 0;
}

/* --list: a line for each case; --ddp CASE: what DDP says; CASE: runs it */
int same_main(int argc, char **argv, const struct same_case *cases, size_t n)
{
	bool expected = argc == 3 && !strcmp(argv[1], "--ddp");

	for (size_t i = 0; i < n; i++) {
		if (argc == 2 && !strcmp(argv[1], "--list"))
			printf("%s\n", cases[i].name);
		else if (argc >= 2 && !strcmp(argv[argc - 1], cases[i].name) && !expected)
			return case_run(&cases[i]);
		else if (expected && !strcmp(argv[2], cases[i].name) && cases[i].ddp)
			fputs(cases[i].ddp, stdout);
	}
	return 0;
}
