/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that know nothing of Warpsock, for tests that run them under it:
 *
 *	echo serve MODE CONNECTIONS	blocking, poll, select, epoll-lt, epoll-et; prints its port
 *	echo talk PORT OCTETS PARALLEL	sends on each connection while it checks the echo,
 *					shuts its side down and reads to the end
 *	echo push PORT OCTETS		writes, closes and exits at once
 *	echo drip CONNECTIONS		reads slowly to the end; says how many octets were right
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER (48 * 1024)
#define CONNS 128

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Octet @at of every stream; no power of two, so that a shift of a page or a ring shows */
static unsigned char octet(uint64_t at)
{
	return (unsigned char)((at * 2654435761u >> 7) ^ at);
}

static void fill(char *p, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)octet(at + i);
}

static bool right(const char *p, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] != octet(at + i))
			return false;
	return true;
}

static int listener(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, CONNS) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		die("listener");
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

static int connector(const char *port, bool nonblock)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | (nonblock ? SOCK_NONBLOCK : 0), 0);

	a.sin_port = htons((uint16_t)atoi(port));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno != EINPROGRESS)
		die("connect");
	return fd;
}

/* --- servers --- */

static void *serve_one(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[BUFFER];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0, put; at < n; at += put)
			if ((put = write(fd, buf + at, (size_t)(n - at))) < 0)
				die("write");
	if (n < 0)
		die("read");
	close(fd);
	return NULL;
}

static void serve_blocking(int lfd, int count)
{
	pthread_t threads[CONNS];

	for (int i = 0; i < count; i++) {
		int fd = accept(lfd, NULL, NULL);

		if (fd < 0 || pthread_create(&threads[i], NULL, serve_one, (void *)(intptr_t)fd))
			die("accept");
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

struct conn {
	int fd; /* -1: none */
	size_t at, end;
	bool ended;
	char buf[BUFFER];
};

static struct conn conns[CONNS];
static int served;

/* What the connection waits for */
static short wants(const struct conn *c)
{
	return c->end ? POLLOUT : POLLIN;
}

/* As far as it goes without waiting: false when it is over */
static bool conn_go(struct conn *c)
{
	for (;;) {
		ssize_t n;

		if (c->at == c->end) {
			c->at = c->end = 0;
			n = read(c->fd, c->buf, sizeof(c->buf));
			if (n == 0)
				return false;
			c->end = n > 0 ? (size_t)n : 0;
		} else {
			n = write(c->fd, c->buf + c->at, c->end - c->at);
			c->at += n > 0 ? (size_t)n : 0;
		}
		if (n < 0 && errno != EAGAIN)
			die("connection");
		if (n < 0)
			return true;
	}
}

static void conn_close(struct conn *c)
{
	close(c->fd);
	c->fd = -1;
	served++;
}

static struct conn *conn_accept(int lfd)
{
	int fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK);

	if (fd < 0)
		die("accept4");
	for (int i = 0; i < CONNS; i++) {
		if (conns[i].fd >= 0)
			continue;
		conns[i] = (struct conn){ .fd = fd };
		return &conns[i];
	}
	exit(2);
}

static void serve_poll(int lfd, int count)
{
	struct pollfd fds[CONNS + 1];

	while (served < count) {
		for (int i = 0; i < CONNS; i++)
			fds[i] = (struct pollfd){ .fd = conns[i].fd, .events = wants(&conns[i]) };
		fds[CONNS] = (struct pollfd){ .fd = lfd, .events = POLLIN };
		if (poll(fds, CONNS + 1, -1) < 0)
			die("poll");
		for (int i = 0; i < CONNS; i++)
			if (fds[i].revents && !conn_go(&conns[i]))
				conn_close(&conns[i]);
		if (fds[CONNS].revents)
			conn_accept(lfd);
	}
}

static void serve_select(int lfd, int count)
{
	while (served < count) {
		fd_set in, out;
		int max = lfd;

		FD_ZERO(&in);
		FD_ZERO(&out);
		FD_SET(lfd, &in);
		for (int i = 0; i < CONNS; i++) {
			if (conns[i].fd < 0)
				continue;
			FD_SET(conns[i].fd, wants(&conns[i]) == POLLIN ? &in : &out);
			max = conns[i].fd > max ? conns[i].fd : max;
		}
		if (select(max + 1, &in, &out, NULL, NULL) < 0)
			die("select");
		for (int i = 0; i < CONNS; i++)
			if (conns[i].fd >= 0 &&
			    (FD_ISSET(conns[i].fd, &in) || FD_ISSET(conns[i].fd, &out)) &&
			    !conn_go(&conns[i]))
				conn_close(&conns[i]);
		if (FD_ISSET(lfd, &in))
			conn_accept(lfd);
	}
}

static void epoll_set(int ep, int op, struct conn *c, bool edge)
{
	struct epoll_event e = { .data.ptr = c };

	e.events = edge			? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET
		   : wants(c) == POLLIN ? EPOLLIN
					: EPOLLOUT;
	if (epoll_ctl(ep, op, c->fd, &e))
		die("epoll_ctl");
}

static void serve_epoll(int lfd, int count, bool edge)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = NULL }, got[16];
	int ep = epoll_create1(0), n;

	if (epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &e))
		die("epoll_ctl");
	while (served < count) {
		n = epoll_wait(ep, got, 16, -1);
		if (n < 0)
			die("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct conn *c = got[i].data.ptr;

			if (!c)
				epoll_set(ep, EPOLL_CTL_ADD, conn_accept(lfd), edge);
			else if (!conn_go(c))
				conn_close(c);
			else if (!edge)
				epoll_set(ep, EPOLL_CTL_MOD, c, false);
		}
	}
}

static int serve(const char *mode, int count)
{
	int lfd = listener();

	for (int i = 0; i < CONNS; i++)
		conns[i].fd = -1;
	if (!strcmp(mode, "blocking"))
		serve_blocking(lfd, count);
	else if (!strcmp(mode, "poll"))
		serve_poll(lfd, count);
	else if (!strcmp(mode, "select"))
		serve_select(lfd, count);
	else
		serve_epoll(lfd, count, !strcmp(mode, "epoll-et"));
	return 0;
}

/* --- clients --- */

struct talk {
	int fd;
	uint64_t sent, got, size;
	bool over;
};

static void talk_send(struct talk *t)
{
	char buf[BUFFER];
	size_t n = t->size - t->sent < BUFFER ? t->size - t->sent : BUFFER;
	ssize_t put;

	fill(buf, t->sent, n);
	put = send(t->fd, buf, n, 0);
	if (put < 0 && errno != EAGAIN)
		die("send");
	t->sent += put > 0 ? (uint64_t)put : 0;
	if (t->sent == t->size && shutdown(t->fd, SHUT_WR))
		die("shutdown");
}

static void talk_recv(struct talk *t)
{
	char buf[BUFFER];
	ssize_t n = recv(t->fd, buf, sizeof(buf), 0);

	if (n < 0 && errno != EAGAIN)
		die("recv");
	if (n < 0)
		return;
	if (!right(buf, t->got, (size_t)n)) {
		fprintf(stderr, "octets %lu.. are wrong\n", t->got);
		exit(1);
	}
	t->got += (uint64_t)n;
	t->over = n == 0;
}

static int talk(const char *port, uint64_t size, unsigned int parallel)
{
	static struct talk talks[CONNS];
	struct pollfd fds[CONNS];
	unsigned int left = parallel;

	if (parallel > CONNS)
		return 2;
	for (unsigned int i = 0; i < parallel; i++)
		talks[i] = (struct talk){ .fd = connector(port, true), .size = size };
	while (left) {
		for (unsigned int i = 0; i < parallel; i++) {
			fds[i].fd = talks[i].over ? -1 : talks[i].fd;
			fds[i].events = talks[i].sent < size ? POLLIN | POLLOUT : POLLIN;
		}
		if (poll(fds, parallel, -1) < 0)
			die("poll");
		for (unsigned int i = 0; i < parallel; i++) {
			if (fds[i].revents & POLLOUT)
				talk_send(&talks[i]);
			if (fds[i].revents & ~POLLOUT)
				talk_recv(&talks[i]);
			left -= fds[i].revents && talks[i].over;
		}
	}
	for (unsigned int i = 0; i < parallel; i++)
		if (talks[i].got != size || close(talks[i].fd))
			return 1;
	return 0;
}

static int push(const char *port, uint64_t size)
{
	int fd = connector(port, false);
	char *all = malloc(size);

	fill(all, 0, size);
	for (uint64_t at = 0; at < size;) {
		ssize_t n = write(fd, all + at, size - at);

		if (n < 0)
			die("write");
		at += (uint64_t)n;
	}
	close(fd);
	_exit(0);
}

static int drip(int count)
{
	int lfd = listener();

	for (int i = 0; i < count; i++) {
		int fd = accept(lfd, NULL, NULL);
		uint64_t got = 0;
		char buf[5000];
		ssize_t n;

		usleep(200 * 1000);
		while ((n = read(fd, buf, sizeof(buf))) > 0 && right(buf, got, (size_t)n)) {
			got += (uint64_t)n;
			usleep(1000);
		}
		printf("%lu %s\n", got, n ? strerror(errno) : "end");
		fflush(stdout);
		close(fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv[2], atoi(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "talk"))
		return talk(argv[2], strtoull(argv[3], NULL, 10), (unsigned int)atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "push"))
		return push(argv[2], strtoull(argv[3], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "drip"))
		return drip(atoi(argv[2]));
	return 2;
}
