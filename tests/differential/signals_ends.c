/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connections of the scenes, what lets a call go, and the calls. One connection serves what
 * waits for input, one is full and serves what waits for room, and handlers have one of their own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"

#define SHORT_MS 150
#define LONG_S 60
#define MANY 500

const int signals_number[SIGNALS] = { SIGUSR1, SIGUSR2, 50 };

static struct sockaddr_in address;
static int listener, in[2], full[2], side[2], set;
static int late_listener = -1, late[2] = { -1, -1 };
static struct sockaddr_in late_address;

static int die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

sigset_t signals_set(unsigned int bits)
{
	sigset_t out;

	sigemptyset(&out);
	for (int i = 0; i < SIGNALS; i++)
		if (bits & 1u << i)
			sigaddset(&out, signals_number[i]);
	return out;
}

unsigned int signals_bits(const sigset_t *of)
{
	unsigned int bits = 0;

	for (int i = 0; i < SIGNALS; i++)
		bits |= sigismember(of, signals_number[i]) ? 1u << i : 0;
	return bits;
}

void signals_sleep(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&ts, &ts))
		;
}

char signals_state(int tid)
{
	char path[64], text[256], *end;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '\0';
}

/* --- connections --- */

static int listen_at(struct sockaddr_in *at, int backlog)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)at, len) || listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)at, &len))
		die("listener");
	return fd;
}

static void pair_make(int fd[2])
{
	char c;

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd[0], (struct sockaddr *)&address, sizeof(address)))
		die("connect");
	fd[1] = accept(listener, NULL, NULL);
	/* One octet each way, so that the connection is up for both */
	if (write(fd[0], "a", 1) != 1 || read(fd[1], &c, 1) != 1 || write(fd[1], "b", 1) != 1 ||
	    read(fd[0], &c, 1) != 1)
		die("connection");
}

void ends_make(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	listener = listen_at(&address, 16);
	pair_make(in);
	pair_make(full);
	pair_make(side);
	set = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(set, EPOLL_CTL_ADD, in[0], &event))
		die("epoll_ctl");
}

static void drain(int fd)
{
	static char buf[65536];

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

static void fill(int fd)
{
	static char buf[65536];

	do
		signals_sleep(20000);
	while (send(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0);
}

/* A listener of one place, which is taken: connect() waits */
static void late_make(void)
{
	late_listener = listen_at(&late_address, 0);
	late[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	connect(late[1], (struct sockaddr *)&late_address, sizeof(late_address));
	signals_sleep(20000);
	late[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void timed(int fd, int option, bool is)
{
	struct timeval tv = { .tv_usec = is ? SHORT_MS * 1000 : 0 };

	if (setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)))
		die("setsockopt");
}

/* limit 2: a long one, which makes that the call is not restarted */
static void timed_long(int fd, int option, const struct scene *s)
{
	struct timeval tv = { .tv_sec = LONG_S };

	timed(fd, option, s->ending == END_TIMEOUT);
	if (s->ending != END_TIMEOUT && s->limit == 2 &&
	    setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)))
		die("setsockopt");
}

void ends_begin(const struct scene *s)
{
	drain(in[0]);
	if (s->kind == KIND_SEND || s->kind == KIND_WRITE) {
		fill(full[0]);
		timed_long(full[0], SO_SNDTIMEO, s);
	} else if (s->kind == KIND_CONNECT) {
		late_make();
	} else if (s->kind == KIND_ACCEPT) {
		timed_long(listener, SO_RCVTIMEO, s);
	} else if (!kind_waits(s->kind)) {
		timed_long(in[0], SO_RCVTIMEO, s);
	}
	if (s->ending == END_READY) {
		struct pollfd p = { .fd = in[0], .events = POLLIN };

		if (write(in[1], "x", 1) != 1 || poll(&p, 1, LONG_S * 1000) != 1)
			die("ready");
	}
}

bool ends_release(const struct scene *s)
{
	int fd;

	if (s->kind == KIND_SEND || s->kind == KIND_WRITE) {
		drain(full[1]);
		return true;
	}
	if (s->kind == KIND_CONNECT) {
		drain(late[1]);
		fd = accept(late_listener, NULL, NULL);
		close(fd);
		return false;
	}
	if (s->kind == KIND_ACCEPT) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			die("release");
		close(fd);
		return false;
	}
	if (write(in[1], "x", 1) != 1)
		die("release");
	return false;
}

void ends_finish(const struct scene *s, long result)
{
	if (s->kind == KIND_ACCEPT && result >= 0)
		close((int)result);
	/* Signals go to a listener that has queued what nobody took */
	timed(listener, SO_RCVTIMEO, false);
	if (s->kind == KIND_ACCEPT && result < 0 && s->ending != END_TIMEOUT) {
		fcntl(listener, F_SETFL, O_NONBLOCK);
		close(accept(listener, NULL, NULL));
		fcntl(listener, F_SETFL, 0);
	}
	if (s->kind == KIND_CONNECT) {
		close(late[0]);
		close(late[1]);
		close(late_listener);
	}
}

/* --- calls --- */

static const struct timespec *limit_of(const struct scene *s, struct timespec *ts)
{
	static const struct timespec huge = { .tv_sec = (time_t)1 << 60 };

	*ts = (struct timespec){ .tv_sec = LONG_S };
	if (s->ending == END_TIMEOUT)
		*ts = (struct timespec){ .tv_nsec = SHORT_MS * 1000000l };
	else if (s->limit == 0)
		return NULL;
	else if (s->limit == 1)
		return &huge;
	return ts;
}

static int limit_ms(const struct scene *s)
{
	return s->ending == END_TIMEOUT ? SHORT_MS : s->limit == 2 ? LONG_S * 1000 : -1;
}

static long call_select(const struct scene *s, const sigset_t *mask)
{
	struct timeval tv = { .tv_sec = LONG_S };
	struct timespec ts;
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(in[0], &fds);
	if (s->kind == KIND_PSELECT)
		return pselect(in[0] + 1, &fds, NULL, NULL, limit_of(s, &ts), mask);
	if (s->ending == END_TIMEOUT)
		tv = (struct timeval){ .tv_usec = SHORT_MS * 1000 };
	return select(in[0] + 1, &fds, NULL, NULL,
		      s->ending != END_TIMEOUT && s->limit == 0 ? NULL : &tv);
}

static long call_wait(const struct scene *s)
{
	sigset_t blocked = signals_set(s->mask), *mask = s->mask == NO_MASK ? NULL : &blocked;
	struct pollfd p = { .fd = in[0], .events = POLLIN };
	struct epoll_event e;
	struct timespec ts;

	switch (s->kind) {
	case KIND_POLL:
		return poll(&p, 1, limit_ms(s));
	case KIND_PPOLL:
		return ppoll(&p, 1, limit_of(s, &ts), mask);
	case KIND_EPOLL_WAIT:
		return epoll_wait(set, &e, 1, limit_ms(s));
	case KIND_EPOLL_PWAIT:
		return epoll_pwait(set, &e, 1, limit_ms(s), mask);
	case KIND_EPOLL_PWAIT2:
		return epoll_pwait2(set, &e, 1, limit_of(s, &ts), mask);
	default:
		return call_select(s, mask);
	}
}

long ends_call(const struct scene *s)
{
	char buf[4] = "x";
	struct iovec iov = { buf, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	switch (s->kind) {
	case KIND_RECV:
		return recv(in[0], buf, 1, 0);
	case KIND_READ:
		return read(in[0], buf, 1);
	case KIND_READV:
		return readv(in[0], &iov, 1);
	case KIND_RECVMSG:
		return recvmsg(in[0], &msg, 0);
	case KIND_SEND:
		return send(full[0], buf, 1, 0);
	case KIND_WRITE:
		return write(full[0], buf, 1);
	case KIND_ACCEPT:
		return accept(listener, NULL, NULL);
	case KIND_CONNECT:
		return connect(late[0], (struct sockaddr *)&late_address, sizeof(late_address));
	default:
		return call_wait(s);
	}
}

long ends_poll_many(void)
{
	static struct pollfd p[MANY];

	for (int i = 0; i < MANY; i++)
		p[i] = (struct pollfd){ .fd = i ? side[0] : in[0], .events = POLLIN };
	return poll(p, MANY, -1);
}

/* --- what handlers do --- */

long ends_deed(enum deed deed)
{
	struct pollfd p = { .fd = side[0], .events = POLLIN };
	struct timespec ts = { .tv_nsec = 3000000 };
	char c;

	switch (deed) {
	case DEED_POLL:
		return poll(&p, 1, 0);
	case DEED_TALK:
		return write(side[1], "s", 1) == 1 ? read(side[0], &c, 1) : -2;
	case DEED_PPOLL:
		return ppoll(&p, 1, &ts, NULL);
	case DEED_BRING:
		return write(in[1], "h", 1);
	default:
		return 0;
	}
}
