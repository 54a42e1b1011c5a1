/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clocks, sockets and numbers for the programs of the benchmarks: plain calls of libc only, for
 * what is measured is how these calls do under the launcher.
 */
#include "bench/tools/tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 4096

void tool_die(const char *format, ...)
{
	const char *why = strerror(errno);
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", why);
	exit(1);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * TOOL_NS + (uint64_t)t.tv_nsec;
}

uint64_t tool_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t tool_cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void tool_sleep_until(uint64_t when)
{
	struct timespec t = { (time_t)(when / TOOL_NS), (long)(when % TOOL_NS) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

double tool_number(const char *text, double min, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min && value <= max)) {
		fprintf(stderr, "a number from %g to %g is wanted, not '%s'\n", min, max, text);
		exit(2);
	}
	return value;
}

void *tool_alloc(size_t size)
{
	void *p = malloc(size);

	if (!p)
		tool_die("memory");
	memset(p, 0x5a, size);
	return p;
}

struct sockaddr_in tool_address(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_port = htons((uint16_t)tool_number(port, 1, 65535));
	if (inet_pton(AF_INET, host, &a.sin_addr) != 1) {
		fprintf(stderr, "an IPv4 address is wanted, not '%s'\n", host);
		exit(2);
	}
	return a;
}

int tool_socket(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		tool_die("socket");
	return fd;
}

int tool_listen(const char *host, const char *port)
{
	struct sockaddr_in a = tool_address(host, port);
	int fd = tool_socket(0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, BACKLOG))
		tool_die("listening at %s port %s", host, port);
	return fd;
}

int tool_connect(const char *host, const char *port)
{
	struct sockaddr_in a = tool_address(host, port);
	int fd = tool_socket(0), on = 1;

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		tool_die("connecting to %s port %s", host, port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

void tool_write(int fd, const void *buf, size_t size)
{
	const char *at = buf;
	ssize_t n;

	for (; size; at += n, size -= (size_t)n) {
		n = write(fd, at, size);
		if (n <= 0)
			tool_die("write");
	}
}

int tool_read(int fd, void *buf, size_t size)
{
	char *at = buf;
	size_t left = size;
	ssize_t n;

	for (; left; at += n, left -= (size_t)n) {
		n = read(fd, at, left);
		if (!n && left == size)
			return 0;
		if (n <= 0)
			tool_die("read: %s", n ? "failed" : "the peer ended in a message");
	}
	return 1;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void tool_quantiles(const char *name, uint32_t *ns, size_t n)
{
	/* Closer to each other where a reader looks: at the slowest */
	static const double at[] = { 0,	  0.01, 0.05, 0.1,  0.2,  0.3,	 0.4,	0.5,	0.6,	0.7,
				     0.8, 0.9,	0.95, 0.98, 0.99, 0.995, 0.998, 0.9990, 0.9999, 1 };

	qsort(ns, n, sizeof(*ns), compare);
	printf("\"%s\": [", name);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		printf("%s[%g, %.3f]", i ? ", " : "", at[i],
		       (double)ns[(size_t)(at[i] * (double)(n - 1))] / 1e3);
	printf("]");
}
