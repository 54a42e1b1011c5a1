/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An echo server and client for peers that mean it no good. It listens, prints its port, and says
 * of each connection, numbered as they come, how many octets it brought and how it ended. A line
 * "connect PORT" on its standard input makes it connect. It writes without waiting: what a peer
 * does not take is dropped.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 64

struct connection {
	unsigned int number;
	bool connecting;
	size_t octets;
};

static struct pollfd fds[2 + CONNECTIONS] = { { .fd = STDIN_FILENO, .events = POLLIN } };
static struct connection connections[2 + CONNECTIONS];
static unsigned int used = 2, count;

static void say(const struct connection *c, const char *what)
{
	printf("%u %zu %s\n", c->number, c->octets, what);
	fflush(stdout);
}

static void add(int fd, bool connecting)
{
	if (fd < 0 || used == 2 + CONNECTIONS) {
		perror("connection");
		exit(1);
	}
	connections[used] = (struct connection){ count++, connecting, 0 };
	fds[used++] = (struct pollfd){ .fd = fd, .events = connecting ? POLLOUT : POLLIN };
}

static void end(unsigned int i, const char *what)
{
	say(&connections[i], what);
	close(fds[i].fd);
	fds[i] = fds[--used];
	connections[i] = connections[used];
}

static void connected(unsigned int i)
{
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) {
		end(i, strerrorname_np(err));
		return;
	}
	say(&connections[i], "connected");
	connections[i].connecting = false;
	fds[i].events = POLLIN;
}

static void serve(unsigned int i)
{
	static char buf[65536];
	ssize_t n = recv(fds[i].fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		end(i, n ? strerrorname_np(errno) : "end");
		return;
	}
	connections[i].octets += (size_t)n;
	n = send(fds[i].fd, buf, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EPIPE)
		end(i, strerrorname_np(errno));
}

static void command(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char line[64];
	int fd;

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	addr.sin_port = htons((uint16_t)atoi(line + strlen("connect ")));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && errno != EINPROGRESS))
		perror("connect");
	add(fd, true);
}

static void open_listener(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		exit(1);
	fds[1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
}

int main(void)
{
	open_listener();
	while (poll(fds, used, -1) >= 0) {
		for (unsigned int i = used; i-- > 2;) {
			if (!fds[i].revents)
				continue;
			if (connections[i].connecting)
				connected(i);
			else
				serve(i);
		}
		if (fds[1].revents)
			add(accept(fds[1].fd, NULL, NULL), false);
		if (fds[0].revents)
			command();
	}
	return 1;
}
