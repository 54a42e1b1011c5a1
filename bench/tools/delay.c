/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A network that is far away: takes frames from one TAP device to another, each as late as is
 * asked for, both ways.
 *
 *     bench_delay FD FD MICROSECONDS
 *
 * The descriptors are of TAP devices, inherited, with a header of virtio-net before each frame:
 * so a frame of 64 KiB passes as one, as between network cards that segment by themselves. It
 * ends with its parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/tools/tool.h"

#define FRAME (66 << 10)
#define FRAMES 1024 /* in each direction; more are lost, as in a router */

/* One direction. Frames of one delay leave in the order in which they came. */
struct way {
	int from, to;
	unsigned int first, count;
	struct frame {
		uint64_t due;
		size_t size;
		char data[FRAME];
	} * frames;
};

static struct frame *way_frame(struct way *way, unsigned int at)
{
	return &way->frames[(way->first + at) % FRAMES];
}

static void way_take(struct way *way, uint64_t delay)
{
	static char lost[FRAME];

	for (;;) {
		struct frame *f = way_frame(way, way->count);
		int full = way->count == FRAMES;
		ssize_t n = read(way->from, full ? lost : f->data, FRAME);

		if (n <= 0)
			break;
		if (full)
			continue;
		f->size = (size_t)n;
		f->due = tool_now() + delay;
		way->count++;
	}
	if (errno != EAGAIN)
		tool_die("read");
}

/* A frame that the other device does not take is lost, as on a wire */
static void way_give(struct way *way, uint64_t now)
{
	while (way->count && way_frame(way, 0)->due <= now) {
		struct frame *f = way_frame(way, 0);

		if (write(way->to, f->data, f->size) < 0 && errno != EAGAIN && errno != EIO)
			tool_die("write");
		way->first = (way->first + 1) % FRAMES;
		way->count--;
	}
}

static uint64_t way_due(struct way *way)
{
	return way->count ? way_frame(way, 0)->due : UINT64_MAX;
}

static void wait_for(struct way ways[2])
{
	uint64_t a = way_due(&ways[0]), b = way_due(&ways[1]), now = tool_now();
	uint64_t due = a < b ? a : b, left = due > now ? due - now : 0;
	struct timespec t = { (time_t)(left / TOOL_NS), (long)(left % TOOL_NS) };
	struct pollfd p[2] = { { ways[0].from, POLLIN, 0 }, { ways[1].from, POLLIN, 0 } };

	if (ppoll(p, 2, due == UINT64_MAX ? NULL : &t, NULL) < 0 && errno != EINTR)
		tool_die("poll");
}

static void way_init(struct way *way, int from, int to)
{
	*way = (struct way){ .from = from, .to = to };
	way->frames = tool_alloc(FRAMES * sizeof(*way->frames));
	if (fcntl(from, F_SETFL, O_NONBLOCK))
		tool_die("descriptor %d", from);
}

int main(int argc, char **argv)
{
	struct way ways[2];
	uint64_t delay;
	int a, b;

	if (argc != 4) {
		fputs("usage: bench_delay FD FD MICROSECONDS\n", stderr);
		return 2;
	}
	a = (int)tool_number(argv[1], 0, 1 << 20);
	b = (int)tool_number(argv[2], 0, 1 << 20);
	delay = (uint64_t)(tool_number(argv[3], 0, 1e6) * 1e3);
	way_init(&ways[0], a, b);
	way_init(&ways[1], b, a);
	/* A sleep of 50 us is to be one of 50 us */
	prctl(PR_SET_TIMERSLACK, 1ul);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	for (;;) {
		wait_for(ways);
		for (int i = 0; i < 2; i++) {
			way_take(&ways[i], delay);
			way_give(&ways[i], tool_now());
		}
	}
}
