/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that connect at once to a peer that nobody knows, with the interposer linked in, in mode
 * auto: one of them asks, the others wait for it, and a worker thread may help. The peer is a
 * thread of this program that speaks plainly.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"

enum { CLIENTS = 12, ROUNDS = 6, CONNS = CLIENTS * 4 };

static struct sockaddr_in address;
static atomic_int requests, stop;

static int listen_at(void)
{
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(fd, (struct sockaddr *)&address, len) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&address, &len))
		_exit(1);
	return fd;
}

/* Says back what it hears, and to a Request nothing; false: the connection is over */
static bool serve(int fd)
{
	char octets[512];
	ssize_t n = recv(fd, octets, sizeof(octets), 0);

	if (n <= 0)
		return false;
	if (memcmp(octets, "MPA ID", 6) == 0)
		requests++;
	else if (send(fd, octets, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	return true;
}

static void *server(void *arg)
{
	struct pollfd fds[CONNS + 1] = { { .fd = *(int *)arg, .events = POLLIN } };
	unsigned int n = 1;

	while (!stop) {
		poll(fds, n, 20);
		for (unsigned int i = 1; i < n; i++)
			if (fds[i].revents && !serve(fds[i].fd)) {
				close(fds[i].fd);
				fds[i] = fds[--n];
			}
		if (fds[0].revents && n <= CONNS)
			fds[n++] = (struct pollfd){ accept(fds[0].fd, NULL, NULL), POLLIN, 0 };
	}
	while (n > 1)
		close(fds[--n].fd);
	return NULL;
}

static void *client(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char back[5];

	*(bool *)arg = !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
		       send(fd, "hello", 5, 0) == 5 && recv(fd, back, 5, MSG_WAITALL) == 5 &&
		       !memcmp(back, "hello", 5);
	close(fd);
	return NULL;
}

/* A peer of its own each time, for the last one is known */
static bool round_well(void)
{
	pthread_t thread[CLIENTS], other;
	bool well[CLIENTS];
	int fd = listen_at(), served = 0;

	requests = stop = 0;
	pthread_create(&other, NULL, server, &fd);
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&thread[i], NULL, client, &well[i]);
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(thread[i], NULL);
		served += well[i];
	}
	stop = 1;
	pthread_join(other, NULL);
	close(fd);
	printf("# %d of %d were served, Requests: %d\n", served, CLIENTS, requests);
	return served == CLIENTS && requests == 1;
}

int main(void)
{
	bool well = true;

	for (int i = 0; i < ROUNDS && well; i++)
		well = round_well();
	tap_case(well, "threads that connect at once ask once");
	return tap_finish();
}
