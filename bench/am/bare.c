/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bare UDP does here, for amside.c to be compared with: two processes, one on each of two
 * processors, over the loopback.
 *
 *	bare pingpong SIZE ITERATIONS spin|block    microseconds a round trip
 *	bare rate SIZE SECONDS                      datagrams a second, both ways counted
 *	bare bulk SECONDS [OCTETS [sum]]            octets a second, one way, by UDP GSO
 *
 * Bulk data are those of a buffer that the sender's cache keeps, or stand in OCTETS of memory. With
 * "sum" each datagram begins with a CRC32c of the rest, and only those count where it holds.
 */
#include <arpa/inet.h>
#include <isa-l/crc.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 32
#define WINDOW 128
#define BULK 64000
#define SEGMENT 16000

struct batch {
	struct mmsghdr msg[BATCH];
	struct iovec iov[BATCH];
	char data[BATCH][2048];
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int endpoint(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = 4 << 20;
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){ .sin_family = AF_INET };
	name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (bind(fd, (struct sockaddr *)name, sizeof(*name)) < 0 ||
	    getsockname(fd, (struct sockaddr *)name, &len) < 0) {
		perror("bind");
		exit(1);
	}
	return fd;
}

static void pong(int fd, const struct sockaddr_in *to, int flags)
{
	char data[65536];
	ssize_t n;

	for (;;) {
		n = recv(fd, data, sizeof(data), flags);
		if (n >= 0)
			sendto(fd, data, (size_t)n, 0, (const struct sockaddr *)to, sizeof(*to));
	}
}

static void ping(int fd, const struct sockaddr_in *to, int flags, size_t size, int iters)
{
	char data[65536] = { 0 };
	double t = 0;
	int i;

	for (i = -iters / 10; i < iters; i++) {
		if (i == 0)
			t = now();
		sendto(fd, data, size, 0, (const struct sockaddr *)to, sizeof(*to));
		while (recv(fd, data, sizeof(data), flags) < 0)
			continue;
	}
	printf("%.3f\n", (now() - t) / iters * 1e6);
}

static void batch_init(struct batch *b, const struct sockaddr_in *to)
{
	int i;

	memset(b, 0, sizeof(*b));
	for (i = 0; i < BATCH; i++) {
		b->iov[i].iov_base = b->data[i];
		b->msg[i].msg_hdr.msg_iov = &b->iov[i];
		b->msg[i].msg_hdr.msg_iovlen = 1;
		b->msg[i].msg_hdr.msg_name = (void *)to;
		b->msg[i].msg_hdr.msg_namelen = sizeof(*to);
	}
}

static int batch_receive(int fd, struct batch *b)
{
	int i, n;

	for (i = 0; i < BATCH; i++) {
		b->iov[i].iov_len = sizeof(b->data[i]);
		b->msg[i].msg_hdr.msg_name = NULL;
		b->msg[i].msg_hdr.msg_namelen = 0;
	}
	n = recvmmsg(fd, b->msg, BATCH, MSG_DONTWAIT, NULL);
	return n < 0 ? 0 : n;
}

static void batch_send(int fd, struct batch *b, const struct sockaddr_in *to, int n, size_t size)
{
	int i;

	for (i = 0; i < n; i++) {
		b->iov[i].iov_len = size ? size : b->msg[i].msg_len;
		b->msg[i].msg_hdr.msg_name = (void *)to;
		b->msg[i].msg_hdr.msg_namelen = sizeof(*to);
	}
	sendmmsg(fd, b->msg, (unsigned int)n, 0);
}

static void echo(int fd, const struct sockaddr_in *to)
{
	static struct batch b;
	int n;

	batch_init(&b, to);
	for (;;) {
		n = batch_receive(fd, &b);
		if (n)
			batch_send(fd, &b, to, n, 0);
	}
}

static void flood(int fd, const struct sockaddr_in *to, size_t size, double seconds)
{
	static struct batch b;
	double t = now(), end = t + seconds;
	long sent = 0, got = 0;

	batch_init(&b, to);
	while (now() < end) {
		if (sent - got <= WINDOW - BATCH) {
			batch_send(fd, &b, to, BATCH, size);
			sent += BATCH;
		}
		got += batch_receive(fd, &b);
	}
	printf("%.0f\n", 2 * (double)got / (now() - t));
}

static uint32_t sum_of(char *data)
{
	const int head = sizeof(uint32_t);

	return crc32_iscsi((unsigned char *)data + head, BULK - head, UINT32_MAX);
}

static void sum_put(char *data)
{
	uint32_t sum = sum_of(data);

	memcpy(data, &sum, sizeof(sum));
}

static bool sum_holds(char *data, ssize_t n)
{
	uint32_t sum;

	memcpy(&sum, data, sizeof(sum));
	return n == BULK && sum == sum_of(data);
}

static void pour(int fd, const struct sockaddr_in *to, size_t octets, bool summed)
{
	char *data = malloc(octets + BULK);
	int segment = SEGMENT;
	size_t at = 0;

	memset(data, 2, octets + BULK);
	setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	for (;;) {
		if (summed)
			sum_put(data + at);
		sendto(fd, data + at, BULK, 0, (const struct sockaddr *)to, sizeof(*to));
		at = at + BULK < octets ? at + BULK : 0;
	}
}

/* What arrives is put where a program wants it, as a bulk transfer does. */
static void drain(int fd, double seconds, bool summed)
{
	static char memory[16 << 20];
	double t, end;
	size_t octets = 0, at = 0;
	int one = 1;
	ssize_t n;

	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
	memset(memory, 1, sizeof(memory));
	t = now();
	end = t + seconds;
	while (now() < end) {
		n = recv(fd, memory + at, BULK, 0);
		if (n > 0 && (!summed || sum_holds(memory + at, n)))
			octets += (size_t)n;
		at = (at + BULK) % (sizeof(memory) - BULK);
	}
	printf("%.0f\n", (double)octets / (now() - t));
}

/* The child is on the other processor: it would never get there from behind a parent that spins. */
static pid_t fork_apart(void)
{
	char here = 0;
	int ready[2];
	pid_t pid;

	pid = pipe(ready) < 0 ? -1 : fork();
	pin(pid == 0);
	if (pid < 0 || (pid == 0 ? write(ready[1], &here, 1) : read(ready[0], &here, 1)) != 1) {
		perror("fork");
		exit(1);
	}
	close(ready[0]);
	close(ready[1]);
	return pid;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	struct sockaddr_in a, b;
	bool summed = argc > 4 && !strcmp(argv[4], "sum");
	int x, y, flags = 0;
	pid_t pid;

	if (!strcmp(what, "pingpong") && argc > 4)
		flags = strcmp(argv[4], "block") ? MSG_DONTWAIT : 0;
	x = endpoint(&a);
	y = endpoint(&b);
	pid = fork_apart();
	if (pid == 0) {
		if (!strcmp(what, "pingpong"))
			pong(y, &a, flags);
		else if (!strcmp(what, "rate"))
			echo(y, &a);
		else if (!strcmp(what, "bulk"))
			pour(y, &a, argc > 3 ? strtoul(argv[3], NULL, 10) : 0, summed);
		return 1;
	}
	if (!strcmp(what, "pingpong") && argc > 4)
		ping(x, &b, flags, (size_t)atoi(argv[2]), atoi(argv[3]));
	else if (!strcmp(what, "rate") && argc > 3)
		flood(x, &b, (size_t)atoi(argv[2]), atof(argv[3]));
	else if (!strcmp(what, "bulk"))
		drain(x, atof(argv[2]), summed);
	else
		fprintf(stderr, "usage: bare pingpong|rate|bulk ...\n");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
