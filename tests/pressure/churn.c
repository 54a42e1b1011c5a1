/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client that comes and goes: churn PORT SEED, until it is killed or its input ends.
 *
 * Each connection asks server.c's program for echoes, several under way at once, compares each byte
 * of them, and ends in one of some ways. Each second, and at the end, it prints how many
 * connections and messages there were. What is wrong ends it with status 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINE 64	   /* bytes of a message */
#define DEPTH 16   /* messages under way */
#define TRIES 1000 /* of connect(), while the server restarts */

enum ending { READ_ALL, QUIT, RESET, UNREAD, SHUT, ENDINGS };

static struct sockaddr_in server = { .sin_family = AF_INET };
static unsigned long connections, messages;
static unsigned int state;

static unsigned int random_below(unsigned int limit)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s, behind %lu connections, %lu messages\n", what, strerror(errno),
		connections, messages);
	exit(1);
}

static void line_make(char *line, unsigned long number)
{
	int n = snprintf(line, LINE, "E %016lx", number * 0x9e3779b97f4a7c15);

	memset(line + n, 'a' + (int)(number % 26), (size_t)(LINE - 1 - n));
	line[LINE - 1] = '\n';
}

static void say(int fd, unsigned long number)
{
	char line[LINE];

	line_make(line, number);
	if (send(fd, line, LINE, MSG_NOSIGNAL) != LINE)
		fail("send");
	messages++;
}

static void hear(int fd, unsigned long number)
{
	char wanted[LINE], got[LINE];
	ssize_t n = recv(fd, got, LINE, MSG_WAITALL);

	line_make(wanted, number);
	if (n < 0)
		fail("recv");
	if (n != LINE || memcmp(wanted, got, LINE)) {
		errno = EBADMSG;
		fail("recv");
	}
}

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0)
		fail("socket");
	for (int i = 0; connect(fd, (struct sockaddr *)&server, sizeof(server)); i++) {
		if (i == TRIES)
			fail("connect");
		usleep(1000);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void wait_end(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, 0))
		fail("the end");
}

static void end(int fd, enum ending ending, unsigned long number)
{
	struct linger reset = { .l_onoff = 1 };

	if (ending == RESET)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (ending == UNREAD)
		say(fd, number);
	if (ending == QUIT && send(fd, "Q\n", 2, MSG_NOSIGNAL) != 2)
		fail("send");
	if (ending == SHUT && shutdown(fd, SHUT_WR))
		fail("shutdown");
	if (ending == QUIT || ending == SHUT)
		wait_end(fd);
	close(fd);
}

/* Random rows of messages */
static void converse(void)
{
	unsigned int rows = 1 + random_below(12), depth;
	unsigned long number = messages;
	int fd = connected();

	connections++;
	while (rows--) {
		depth = 1 + random_below(DEPTH);
		for (unsigned int i = 0; i < depth; i++)
			say(fd, number + i);
		for (unsigned int i = 0; i < depth; i++)
			hear(fd, number + i);
		number += depth;
	}
	end(fd, random_below(ENDINGS), number);
}

static bool input_ended(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

static void told(void)
{
	printf("%lu %lu\n", connections, messages);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	time_t last = time(NULL);

	if (argc != 3)
		return 2;
	server.sin_port = htons((uint16_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	state = (unsigned int)atoi(argv[2]);
	while (!input_ended()) {
		converse();
		if (time(NULL) != last)
			told();
		last = time(NULL);
	}
	told();
	return 0;
}
