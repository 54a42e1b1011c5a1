/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that are in an epoll set before they are connected, or listen.
 */
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

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		SAME("a socket that connects", connecting),
		SAME("a socket that connects, by edge", connecting_edge),
		SAME("octets of a socket that has connected, by edge", connected_edge),
		SAME("a connection refused", refused),
		SAME("a listener", listening),
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
