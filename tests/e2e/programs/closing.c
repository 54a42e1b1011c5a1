/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A writer that is gone at once, and a reader that takes its time:
 *
 *	closing write connect|listen WAY OCTETS [PORT]
 *	closing read  connect|listen RATE OCTETS [PORT]
 *
 * Who listens prints its port. WAY is how the writer ends: close, shutdown, return, exit,
 * quick_exit, _exit, _Exit. The reader reads RATE octets in a second through a receive buffer of
 * 16 KiB, compares each, and prints how many came and what came then: "end" or an errno.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 16384

static unsigned char octet(size_t at)
{
	return (unsigned char)(at * 13 + (at >> 11));
}

static void die(const char *what)
{
	perror(what);
	_exit(2);
}

static int connection(const char *role, const char *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons((uint16_t)(port ? atoi(port) : 0)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = BUFFER;
	socklen_t len = sizeof(addr);

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (!strcmp(role, "connect")) {
		if (connect(fd, (struct sockaddr *)&addr, len))
			die("connect");
		return fd;
	}
	if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen");
	printf("%d\n", ntohs(addr.sin_port));
	fflush(stdout);
	return accept(fd, NULL, NULL);
}

static void write_all(int fd, size_t octets)
{
	static unsigned char buf[65536];

	for (size_t at = 0; at < octets;) {
		size_t len = octets - at < sizeof(buf) ? octets - at : sizeof(buf);
		ssize_t n;

		for (size_t i = 0; i < len; i++)
			buf[i] = octet(at + i);
		n = write(fd, buf, len);
		if (n <= 0)
			die("write");
		at += (size_t)n;
	}
}

static int leave(int fd, const char *way)
{
	if (!strcmp(way, "close") && close(fd))
		die("close");
	if (!strcmp(way, "shutdown") && shutdown(fd, SHUT_WR))
		die("shutdown");
	if (!strcmp(way, "return"))
		return 0;
	if (!strcmp(way, "exit"))
		exit(0);
	if (!strcmp(way, "quick_exit"))
		quick_exit(0);
	if (!strcmp(way, "_Exit"))
		_Exit(0);
	_exit(0);
}

static int read_all(int fd, size_t rate)
{
	struct timespec pause = { 0, (long)(BUFFER * 1000000000ull / rate) };
	unsigned char buf[BUFFER];
	size_t at = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++, at++)
			if (buf[i] != octet(at)) {
				printf("octet %zu is another\n", at);
				return 1;
			}
		nanosleep(&pause, NULL);
	}
	printf("%zu %s\n", at, n ? strerrorname_np(errno) : "end");
	return 0;
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 5)
		return 2;
	fd = connection(argv[2], argc > 5 ? argv[5] : NULL);
	if (fd < 0)
		die("accept");
	if (!strcmp(argv[1], "read"))
		return read_all(fd, strtoul(argv[3], NULL, 10));
	write_all(fd, strtoul(argv[4], NULL, 10));
	return leave(fd, argv[3]);
}
