/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets used by several threads at once, through the calls of libc and with the interposer linked
 * in, so that a sanitizer sees what it does: readers and writers of one connection, descriptors
 * that come and go, and ends that are shut and closed while others are inside.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

enum { SECONDS = 150, EACH = 1500000, MOST = 16 };

static int listener, fds[2];
static struct sockaddr_in address;
static atomic_long sent, got, sums[2];
static atomic_int stop, ends;
static time_t begin;

static bool is_late(void)
{
	return time(NULL) - begin > SECONDS;
}

static void listen_open(void)
{
	socklen_t len = sizeof(address);

	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 64) ||
	    getsockname(listener, (struct sockaddr *)&address, &len))
		exit(1);
}

static void pair_open(int fd[2])
{
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[0], (struct sockaddr *)&address, sizeof(address)))
		exit(1);
	fd[1] = accept(listener, NULL, NULL);
	if (fd[1] < 0)
		exit(1);
}

static void *writer(void *arg)
{
	char buf[2000];

	while (!stop && !is_late()) {
		long at = atomic_fetch_add(&sent, sizeof(buf));

		if (at >= EACH)
			break;
		for (size_t i = 0; i < sizeof(buf); i++)
			sums[0] += buf[i] = (char)((at + (long)i) % 101);
		/* A blocking write takes all of it, or the connection is over */
		if (write(fds[0], buf, sizeof(buf)) != sizeof(buf))
			break;
	}
	return NULL;
}

static void *reader(void *arg)
{
	char buf[3000];
	ssize_t n;

	while (!is_late() && (n = read(fds[1], buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			sums[1] += buf[i];
		got += n;
	}
	ends++;
	return NULL;
}

/* Looks at both ends in other ways meanwhile */
static void *looker(void *arg)
{
	while (!stop && !is_late()) {
		struct pollfd p[2] = { { .fd = fds[0], .events = POLLOUT },
				       { .fd = fds[1], .events = POLLIN } };
		int unread, on = 1, copy;

		poll(p, 2, 1);
		ioctl(fds[1], FIONREAD, &unread);
		setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		copy = dup(fds[1]);
		fcntl(copy, F_GETFL);
		close(copy);
	}
	return NULL;
}

static void run(int readers, bool cut, const char *name)
{
	pthread_t threads[MOST];
	int n = 0;

	sent = got = sums[0] = sums[1] = 0;
	stop = ends = 0;
	pair_open(fds);
	for (int i = 0; i < readers; i++)
		pthread_create(&threads[n++], NULL, reader, NULL);
	pthread_create(&threads[n++], NULL, looker, NULL);
	pthread_create(&threads[n++], NULL, writer, NULL);
	pthread_create(&threads[n++], NULL, writer, NULL);
	if (cut) {
		poll(NULL, 0, 30);
		shutdown(fds[1], SHUT_RDWR);
		shutdown(fds[0], SHUT_RDWR);
	}
	pthread_join(threads[--n], NULL);
	pthread_join(threads[--n], NULL);
	stop = 1;
	shutdown(fds[0], SHUT_WR);
	while (n)
		pthread_join(threads[--n], NULL);
	tap_case(ends == readers && !is_late() && (cut || (got == EACH && sums[0] == sums[1])),
		 name);
	close(fds[0]);
	close(fds[1]);
}

static void *server(void *arg)
{
	for (int i = 0; i < 100 && !is_late(); i++) {
		int fd = accept(listener, NULL, NULL), copy = dup(fd);
		char c;

		close(fd);
		if (read(copy, &c, 1) == 1 && write(copy, &c, 1) == 1)
			got++;
		close(copy);
	}
	return NULL;
}

static void *client(void *arg)
{
	for (int i = 0; i < 100 && !is_late(); i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		char c = 'x';

		if (!connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
		    write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1)
			got++;
		close(fd);
	}
	return NULL;
}

static void come_and_go(void)
{
	pthread_t threads[6];

	got = 0;
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, i < 3 ? server : client, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	tap_case(got == 600, "connections come and go in six threads");
}

int main(int argc, char **argv)
{
	if (argc == 1 && !getenv("WARPSOCK_USE")) {
		setenv("WARPSOCK_USE", "use ddp * * *:*", 1);
		execv("/proc/self/exe", argv);
	}
	signal(SIGPIPE, SIG_IGN);
	begin = time(NULL);
	listen_open();
	run(1, false, "one reader and two writers");
	run(2, false, "two readers and two writers");
	run(2, true, "both ends are shut under two readers and two writers");
	come_and_go();
	return tap_finish();
}
