/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages over one connection, by blocking write() and read():
 *
 *     bench_message serve HOST PORT
 *     bench_message pingpong|stream|oneway|ask HOST PORT SIZE SECONDS
 *
 * pingpong: there and back, one at a time. stream: one way, as fast as it goes. oneway and ask:
 * one message in each millisecond, without and with an answer. The client prints a JSON object;
 * the server tells it at the end what processor time the connection took there.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/tools/tool.h"

#define SIZE_MAX_ (64 << 20)
#define PIECE (256 << 10)
#define WARM_UP 200
#define SAMPLES (1 << 20)
#define PACE (TOOL_NS / 1000)

/* What the client wants of the server, and what the server tells in the end */
struct order {
	uint32_t size;
	uint32_t answers;
};

struct account {
	uint64_t cpu, bytes;
};

struct run {
	int fd;
	char *buf;
	size_t size;
	uint64_t until;
	uint64_t begin, end; /* behind the warm-up */
	uint64_t count;	     /* messages behind the warm-up */
	uint32_t *sample;
	size_t samples;
};

/* --- the server --- */

static uint64_t answer(int fd, char *buf, size_t size)
{
	uint64_t bytes = 0;

	for (; tool_read(fd, buf, size); bytes += size)
		tool_write(fd, buf, size);
	return bytes;
}

static uint64_t sink(int fd, char *buf)
{
	uint64_t bytes = 0;
	ssize_t n;

	while ((n = read(fd, buf, PIECE)) > 0)
		bytes += (uint64_t)n;
	if (n < 0)
		tool_die("read");
	return bytes;
}

static void serve_one(int fd)
{
	struct account account;
	struct order order;
	uint64_t cpu;
	char *buf;
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!tool_read(fd, &order, sizeof(order)))
		return;
	buf = tool_alloc(order.size > PIECE ? order.size : PIECE);
	cpu = tool_cpu();
	account.bytes = order.answers ? answer(fd, buf, order.size) : sink(fd, buf);
	account.cpu = tool_cpu() - cpu;
	tool_write(fd, &account, sizeof(account));
	free(buf);
}

static void serve(const char *host, const char *port)
{
	int listener = tool_listen(host, port);

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			tool_die("accept");
		serve_one(fd);
		close(fd);
	}
}

/* --- the client --- */

static void trip(struct run *run)
{
	tool_write(run->fd, run->buf, run->size);
	if (!tool_read(run->fd, run->buf, run->size)) {
		fputs("the server ended\n", stderr);
		exit(1);
	}
}

static void send_only(struct run *run)
{
	tool_write(run->fd, run->buf, run->size);
}

static void sampled(struct run *run, uint64_t begin, uint64_t end)
{
	if (run->samples < SAMPLES)
		run->sample[run->samples++] = (uint32_t)(end - begin);
}

static void timed_trips(struct run *run, void (*message)(struct run *run))
{
	uint64_t now = run->begin;

	do {
		uint64_t before = now;

		message(run);
		now = tool_now();
		sampled(run, before, now);
		run->count++;
	} while (now < run->until);
	run->end = now;
}

static void streamed(struct run *run, void (*message)(struct run *run))
{
	do {
		message(run);
		run->count++;
	} while (tool_now() < run->until);
}

static void paced(struct run *run, void (*message)(struct run *run))
{
	for (uint64_t next = run->begin; next < run->until; next += PACE) {
		tool_sleep_until(next);
		message(run);
		run->count++;
	}
	run->end = tool_now();
}

static const struct kind {
	const char *name;
	bool answers;
	void (*message)(struct run *run);
	void (*go)(struct run *run, void (*message)(struct run *run));
} kinds[] = {
	{ "pingpong", true, trip, timed_trips },
	{ "stream", false, send_only, streamed },
	{ "oneway", false, send_only, paced },
	{ "ask", true, trip, paced },
};

static void print(const struct kind *kind, struct run *run, uint64_t cpu, const struct account *a)
{
	double seconds = (double)(run->end - run->begin) / TOOL_NS;

	printf("{\"kind\": \"%s\", \"size\": %zu, \"seconds\": %.6f, \"count\": %llu, "
	       "\"bytes\": %llu, \"messages\": %llu, \"cpu_client\": %.6f, \"cpu_server\": %.6f, ",
	       kind->name, run->size, seconds, (unsigned long long)run->count,
	       (unsigned long long)a->bytes, (unsigned long long)(a->bytes / run->size),
	       (double)cpu / TOOL_NS, (double)a->cpu / TOOL_NS);
	printf("\"us\": %.4f, \"mb_s\": %.4f", seconds * 1e6 / (double)run->count,
	       (double)run->count * (double)run->size / seconds / 1e6);
	if (run->samples) {
		printf(", ");
		tool_quantiles("quantiles", run->sample, run->samples);
	}
	puts("}");
}

/* The end is when the server has read all, or, of messages at a pace, before its account */
static void account_take(struct run *run, struct account *account)
{
	if (shutdown(run->fd, SHUT_WR))
		tool_die("shutdown");
	if (!tool_read(run->fd, account, sizeof(*account))) {
		fputs("the server ended without its account\n", stderr);
		exit(1);
	}
	if (!run->end)
		run->end = tool_now();
}

static void measure(const struct kind *kind, struct run *run, double seconds)
{
	struct order order = { (uint32_t)run->size, kind->answers };
	uint64_t cpu, length = (uint64_t)(seconds * TOOL_NS);
	struct account account;

	tool_write(run->fd, &order, sizeof(order));
	cpu = tool_cpu();
	for (int i = 0; i < WARM_UP && kind->go == timed_trips; i++)
		kind->message(run);
	run->begin = tool_now();
	run->until = run->begin + length;
	kind->go(run, kind->message);
	account_take(run, &account);
	print(kind, run, tool_cpu() - cpu, &account);
}

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc == 6 ? kind_find(argv[1]) : NULL;
	struct run run = { 0 };

	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], argv[3]);
	if (!kind) {
		fputs("usage: bench_message serve HOST PORT\n"
		      "       bench_message pingpong|stream|oneway|ask HOST PORT SIZE SECONDS\n",
		      stderr);
		return 2;
	}
	run.size = (size_t)tool_number(argv[4], 1, SIZE_MAX_);
	run.buf = tool_alloc(run.size);
	run.sample = tool_alloc(SAMPLES * sizeof(*run.sample));
	run.fd = tool_connect(argv[2], argv[3]);
	measure(kind, &run, tool_number(argv[5], 0.001, 600));
	close(run.fd);
	return 0;
}
