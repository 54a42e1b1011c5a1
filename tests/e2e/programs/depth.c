/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How deep the stack of a thread becomes in the calls of sockets. Each call is made in a thread of
 * its own, whose stack is filled with a pattern, and must stay within LIMIT; then all of them are
 * made in threads with the least stack that libc gives.
 */
#include "tests/e2e/programs/calls.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum { STACK = 512 * 1024, PATTERN = 0x5a, MUCH = 20000 };
/* The least stack has 16 KiB, of which libc needs some for itself */
enum { LIMIT = 12 * 1024 };

static int fd[2]; /* ends of a connection; octets wait at fd[1] */
static int ends[2], file = -1;

static bool call_read(void)
{
	char c;

	return read(fd[1], &c, 1) == 1;
}

static bool call_write(void)
{
	static char buf[MUCH];

	return write(fd[0], buf, sizeof(buf)) > 0;
}

static bool call_poll(void)
{
	return ready(fd[1], POLLIN, 5000) == POLLIN;
}

static bool call_epoll_wait(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);

	return !epoll_ctl(set, EPOLL_CTL_ADD, fd[1], &event) &&
	       epoll_wait(set, &event, 1, 5000) == 1 && !close(set);
}

static bool call_connect(void)
{
	int one = socket(AF_INET, SOCK_STREAM, 0);
	bool good = !connect(one, (struct sockaddr *)&laddr, sizeof(laddr));
	int other = accept(lfd, NULL, NULL);

	return good && other >= 0 && !close(one) && !close(other);
}

static bool call_recvmsg(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(fd[1], &msg, 0) == 1;
}

static bool call_sendfile(void)
{
	off_t at = 0;

	return sendfile(fd[0], file, &at, MUCH) > 0;
}

static bool call_splice_in(void)
{
	return splice(fd[1], NULL, ends[1], NULL, MUCH, 0) > 0;
}

static bool call_splice_out(void)
{
	return splice(ends[0], NULL, fd[0], NULL, MUCH, 0) > 0;
}

static const struct {
	const char *name;
	bool (*call)(void);
} calls[] = {
	{ "write", call_write },
	{ "read", call_read },
	{ "poll", call_poll },
	{ "epoll_wait", call_epoll_wait },
	{ "connect, accept, close", call_connect },
	{ "recvmsg", call_recvmsg },
	{ "sendfile", call_sendfile },
	{ "splice to a pipe", call_splice_in },
	{ "splice from a pipe", call_splice_out },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static bool good[CALLS];

static void *one(void *number)
{
	int i = *(int *)number;

	good[i] = i < 0 || calls[i].call();
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static size_t depth_of(char *stack, void *(*run)(void *arg), int *number)
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t at = 0;

	memset(stack, PATTERN, STACK);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, STACK);
	if (pthread_create(&thread, &attr, run, number))
		return SIZE_MAX;
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	while (at < STACK && stack[at] == PATTERN)
		at++;
	return STACK - at;
}

/* The first time libc may look a name up, on the stack of whoever calls */
static void measured(char *stack, int i)
{
	size_t least = depth_of(stack, nothing, &i), depth;
	char name[80];

	depth_of(stack, one, &i);
	depth = depth_of(stack, one, &i) - least;
	printf("# %s: %zu bytes\n", calls[i].name, depth);
	snprintf(name, sizeof(name), "%s needs less than %d bytes", calls[i].name, LIMIT);
	tap_case(good[i] && depth < LIMIT, name);
}

static bool in_least_stack(int i)
{
	pthread_attr_t attr;
	pthread_t thread;

	good[i] = false;
	need(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));
	need(!pthread_create(&thread, &attr, one, &i) && !pthread_join(thread, NULL));
	return good[i];
}

int main(void)
{
	static char much[MUCH];
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[80];

	setup();
	file = memfd_create("file", MFD_CLOEXEC);
	if (stack == MAP_FAILED || write(file, much, MUCH) != MUCH || pipe(ends) || !pair(fd))
		return 1;
	for (int i = 0; i < CALLS; i++)
		measured(stack, i);
	for (int i = 0; i < CALLS; i++) {
		snprintf(name, sizeof(name), "%s in a thread with the least stack", calls[i].name);
		tap_case(in_least_stack(i), name);
	}
	done(fd);
	return tap_finish();
}
