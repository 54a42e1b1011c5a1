/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that are run twice, over the kernel's TCP and over DDP, and must say the same both
 * times: Linux itself is the oracle. A case is some calls, each of which leaves a line of what it
 * returned; tests/e2e/same.py compares.
 */
#ifndef TESTS_E2E_PROGRAMS_SAME_H
#define TESTS_E2E_PROGRAMS_SAME_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct same_case {
	const char *name;
	/* @fd: two ends of a connection, [0] connected and [1] accepted */
	void (*run)(int fd[2]);
	/*
	 * Not NULL: a difference on purpose, which has its line in docs/limits.md, and this is
	 * what DDP says
	 */
	const char *ddp;
};

#define SAME(text, fn)                      \
	{                                   \
		.name = (text), .run = (fn) \
	}
#define DIFFERS(text, fn, said)                            \
	{                                                  \
		.name = (text), .run = (fn), .ddp = (said) \
	}

extern struct sockaddr_in same_addr; /* of the listener, which is same_listener */
extern int same_listener;
extern volatile sig_atomic_t same_signals; /* SIGPIPE, SIGALRM, SIGIO: counted */

/* Says what a call returned, with errno's name, and returns it */
long same_result(const char *text, long result);
/* Says octets as text */
void same_show(const char *text, const void *p, size_t len);
void same_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define R(call) (errno = 0, same_result(#call, (long)(call)))
#define SHOW(buf, len) same_show(#buf, buf, len)

void same_pair(int fd[2]);
/* Waits until poll() says @events, half a minute at most */
void same_wait(int fd, short events);
void same_sleep(int ms);
double same_now(void);
/* Did about so many ms pass since @begin? Says so; late is no fault on a busy machine */
void same_took(double begin, int ms);
/* In @ms from now, in another thread; joined at the end of the case */
void same_later(int ms, void (*fn)(void *arg), void *arg);
void same_join(void);
void same_nonblock(int fd);

int same_main(int argc, char **argv, const struct same_case *cases, size_t n);

#endif
