/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages one way, as fast as they go: put from client to server, get from server to client.
 *
 * A put ends when the server has told how many octets it read: only then have they arrived. A
 * number that is not the one sent is a failure. A get ends with the server's end.
 */
#include "apps/bench/bench.h"

#include <errno.h>
#include <sys/socket.h>

/* Sends until the limit, and the end: octets, or -errno */
static int64_t pour(const struct bench_end *end, int fd, char *buf)
{
	struct bench_limit limit;
	int64_t sum = 0;
	int got;

	bench_limit_init(&limit, end->plan);
	do {
		got = bench_wire_send(end, fd, buf, end->plan->size);
		sum += (int64_t)end->plan->size;
	} while (got > 0 && bench_limit_go(&limit));
	if (got > 0 && shutdown(fd, SHUT_WR))
		got = -errno;
	return got > 0 ? sum : got;
}

/* Reads to the end: octets, or -errno */
static int64_t drain(const struct bench_end *end, int fd, char *buf)
{
	int64_t sum = 0;
	long got;

	do {
		got = bench_wire_some(end, fd, buf, end->plan->size);
		sum += got;
	} while (got > 0);
	return got < 0 ? got : sum;
}

static int put_receive(struct bench_end *end, int fd, char *buf)
{
	int64_t sum = drain(end, fd, buf);
	int got = sum < 0 ? (int)sum : bench_wire_send(end, fd, &sum, sizeof(sum));

	return got < 0 ? got : 0;
}

static int put_send(struct bench_end *end, int fd, char *buf)
{
	double begin = bench_clock();
	int64_t sum = pour(end, fd, buf), arrived = -1;
	int got = sum < 0 ? (int)sum : bench_wire_recv(end, fd, &arrived, sizeof(arrived));

	end->value = (double)sum / (bench_clock() - begin) / 1e6;
	if (got < 0)
		return got;
	return arrived == sum ? 0 : -EBADMSG;
}

static int get_send(struct bench_end *end, int fd, char *buf)
{
	int64_t sum = pour(end, fd, buf);
	char last;
	int got = sum < 0 ? (int)sum : bench_wire_recv(end, fd, &last, 1);

	return got < 0 ? got : 0;
}

static int get_receive(struct bench_end *end, int fd, char *buf)
{
	double begin = bench_clock();
	int64_t sum = drain(end, fd, buf);

	end->value = (double)sum / (bench_clock() - begin) / 1e6;
	return sum < 0 ? (int)sum : sum ? 0 : -ENODATA;
}

int bench_put_server(struct bench_end *end)
{
	return bench_wire_run(end, put_receive);
}

int bench_put_client(struct bench_end *end)
{
	return bench_wire_run(end, put_send);
}

int bench_get_server(struct bench_end *end)
{
	return bench_wire_run(end, get_send);
}

int bench_get_client(struct bench_end *end)
{
	return bench_wire_run(end, get_receive);
}
