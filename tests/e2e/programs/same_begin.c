/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that are in an epoll set, or that two processes have, before they are connected.
 */
#include <sys/wait.h>

#include "tests/e2e/programs/same_sets.h"

static void connecting(int fd[2])
{
	int ep = epoll_create1(0), a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), b;
	int err = -1;
	socklen_t len = sizeof(err);

	ADD(ep, a, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 'a');
	WAIT(ep, 8, 0);
	MOD(ep, a, EPOLLOUT, 'a');
	R(connect(a, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	b = accept(same_listener, NULL, NULL);
	ADD(ep, b, EPOLLIN, 'b');
	WAIT(ep, 8, COMES);
	R(getsockopt(a, SOL_SOCKET, SO_ERROR, &err, &len));
	same_say("SO_ERROR %d", err);
	sets_put(a, "x");
	MOD(ep, a, EPOLLIN, 'a');
	WAIT(ep, 8, COMES);
	sets_put(b, "y");
	sets_take(b, 1);
	WAIT(ep, 8, COMES);
}

/* Registered, and told of, before there is a connection */
static void connecting_edge(int fd[2])
{
	static const uint32_t masks[] = { EPOLLOUT, EPOLLIN, EPOLLIN | EPOLLOUT, 0 };

	for (int i = 0; i < 4; i++) {
		int ep = epoll_create1(0), a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), b;

		ADD(ep, a, masks[i] | EPOLLET, 'a');
		WAIT(ep, 8, 0);
		R(connect(a, (struct sockaddr *)&same_addr, sizeof(same_addr)));
		same_wait(a, POLLOUT);
		WAIT(ep, 8, 0);
		b = accept(same_listener, NULL, NULL);
		sets_put(a, "x");
		sets_take(b, 1);
		WAIT(ep, 8, NOT);
	}
}

/* Octets are there when it is looked at for the first time since */
static void connected_edge(int fd[2])
{
	static const uint32_t masks[] = { EPOLLOUT, EPOLLIN, EPOLLIN | EPOLLOUT };
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	for (int i = 0; i < 12; i++) {
		int ep = epoll_create1(0), a = socket(AF_INET, SOCK_STREAM, 0), b;

		ADD(ep, a, masks[i % 3] | EPOLLET, 'a');
		WAIT(ep, 8, 0);
		R(connect(a, (struct sockaddr *)&same_addr, sizeof(same_addr)));
		b = accept(same_listener, NULL, NULL);
		for (int k = 0; k < i / 3; k++) {
			sets_put(b, "x");
			same_wait(a, POLLIN);
			sets_take(a, 1);
		}
		sets_put(b, "x");
		same_wait(a, POLLIN);
		WAIT(ep, 8, 0);
		R(connect(a, &none, sizeof(none)));
		WAIT(ep, 8, 0);
		WAIT(ep, 8, 0);
	}
}

static void refused(int fd[2])
{
	int ep = epoll_create1(0), a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int err = -1;
	socklen_t len = sizeof(err);

	close(same_listener);
	R(connect(a, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	ADD(ep, a, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 'a');
	WAIT(ep, 8, COMES);
	R(getsockopt(a, SOL_SOCKET, SO_ERROR, &err, &len));
	same_say("%s", strerrorname_np(err));
}

static void listening(int fd[2])
{
	int ep = epoll_create1(0), other[2], l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	ADD(ep, l, EPOLLIN, 'l');
	WAIT(ep, 8, 0);
	R(bind(l, (struct sockaddr *)&addr, sizeof(addr)));
	R(listen(l, 4));
	WAIT(ep, 8, 0);
	R(getsockname(l, (struct sockaddr *)&addr, &len));
	MOD(ep, l, EPOLLIN, 'm');
	ADD(ep, fd[0], EPOLLIN, 'a');
	other[0] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	R(connect(other[0], (struct sockaddr *)&addr, sizeof(addr)));
	WAIT(ep, 8, COMES);
	other[1] = accept(l, NULL, NULL);
	WAIT(ep, 8, NOT);
	ADD(ep, other[1], EPOLLIN, 'b');
	WAIT(ep, 8, NOT);
	DEL(ep, l);
	DEL(ep, l);
}

/* --- a socket that two processes have --- */

/* Whose turn it is */
struct turns {
	int go[2], back[2];
};

static void turn_give(int end[2])
{
	if (write(end[1], "x", 1) != 1)
		same_say("turn_give: %s", strerror(errno));
}

static void turn_wait(int end[2])
{
	char c;

	if (read(end[0], &c, 1) != 1)
		same_say("turn_wait: %s", strerror(errno));
}

static pid_t turns_begin(struct turns *t)
{
	pid_t pid;

	if (pipe(t->go) || pipe(t->back))
		same_say("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid)
		turn_wait(t->go);
	return pid;
}

static void one_octet(int fd, const char *who)
{
	char c = '?';
	long n = recv(fd, &c, 1, 0);

	same_say("%s: %ld %c", who, n, n == 1 ? c : '-');
}

/* Both have the connection that one of them makes */
static void connected_by_one(int fd[2])
{
	int s = socket(AF_INET, SOCK_STREAM, 0), a;
	struct turns t;

	if (!turns_begin(&t)) {
		one_octet(s, "child");
		R(send(s, "from the child", 14, 0));
		turn_give(t.back);
		one_octet(s, "child");
		_exit(0);
	}
	R(connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr)));
	a = accept(same_listener, NULL, NULL);
	R(write(a, "1", 1));
	same_wait(s, POLLIN);
	turn_give(t.go);
	turn_wait(t.back);
	one_octet(a, "peer");
	/* The child's line comes next, however quick it is */
	if (write(a, "2", 1) != 1)
		same_say("nothing written");
	wait(NULL);
	R(write(s, "x", 1));
	R(write(a, "3", 1));
	one_octet(s, "parent");
}

static void connected_and_left(int fd[2])
{
	int s = socket(AF_INET, SOCK_STREAM, 0), a;
	struct turns t;

	if (!turns_begin(&t)) {
		connect(s, (struct sockaddr *)&same_addr, sizeof(same_addr));
		turn_give(t.back);
		turn_wait(t.go);
		_exit(0);
	}
	turn_give(t.go);
	a = accept(same_listener, NULL, NULL);
	sets_put(a, "x");
	turn_wait(t.back);
	turn_give(t.go);
	wait(NULL);
	one_octet(s, "parent");
	R(send(s, "y", 1, MSG_NOSIGNAL));
}

/* To nowhere, and to another peer */
static void connected_anew(int fd[2])
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct turns t;

	if (!turns_begin(&t)) {
		R(recv(fd[0], &(char){ 0 }, 1, 0));
		turn_give(t.back);
		turn_wait(t.go);
		one_octet(fd[0], "child");
		_exit(0);
	}
	R(connect(fd[0], &none, sizeof(none)));
	turn_give(t.go);
	turn_wait(t.back);
	R(connect(fd[0], (struct sockaddr *)&same_addr, sizeof(same_addr)));
	fd[1] = accept(same_listener, NULL, NULL);
	R(write(fd[1], "1", 1));
	turn_give(t.go);
	wait(NULL);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("a socket that connects", connecting),
		SAME("a socket that connects, by edge", connecting_edge),
		SAME("octets of a socket that has connected, by edge", connected_edge),
		SAME("a connection refused", refused),
		SAME("a listener", listening),
		SAME("a socket from before a fork", connected_by_one),
		DIFFERS("a socket from before a fork, whose connection was closed",
			connected_and_left,
			"parent: -1 -\n"
			"send(s, \"y\", 1, MSG_NOSIGNAL): -1 EPIPE\n"),
		DIFFERS("connect to nowhere, of a socket that two have", connected_anew,
			"connect(fd[0], &none, sizeof(none)): 0\n"
			"recv(fd[0], &(char){ 0 }, 1, 0): -1 ECONNRESET\n"
			"connect(fd[0], (struct sockaddr *)&same_addr, sizeof(same_addr)): 0\n"
			"write(fd[1], \"1\", 1): 1\n"
			"child: 0 -\n"),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
