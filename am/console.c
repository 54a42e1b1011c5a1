/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output of workers: lines of many processes must not be mixed within a line, unless the user wants
 * to see parts of lines at once. A line longer than the buffer is passed on in parts.
 */
#include "am/console.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"

#define WAIT_MS 50
#define HURRY_NS (2 * BASE_NS_PER_S) /* what a reader has, once the job is to end */

static const volatile sig_atomic_t *interrupted;
static uint64_t hurry_until;
static bool failed;

void am_console_init(const volatile sig_atomic_t *signal_number)
{
	interrupted = signal_number;
}

bool am_console_failed(void)
{
	return failed;
}

static bool hurry_is_over(void)
{
	return hurry_until && base_now() >= hurry_until;
}

/* Waits for a reader that does not read, but for a while only when a signal ends the job. */
static bool wait_writable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	while (poll(&pfd, 1, hurry_is_over() ? 0 : WAIT_MS) <= 0) {
		if (*interrupted && !hurry_until)
			hurry_until = base_now() + HURRY_NS;
		if (hurry_is_over())
			return false;
	}
	return true;
}

/* A reader that has left wants no more: the job goes on. All else is a loss. */
static void failure_tell(int error)
{
	if (error == EPIPE || failed)
		return;
	failed = true;
	fprintf(stderr, "*** AMUDP: output of the job is lost, the console cannot write it: %s\n",
		strerror(error));
}

/* Not more at once than a pipe with room takes without waiting */
static void put(int fd, const char *p, size_t n)
{
	ssize_t done;

	while (n && wait_writable(fd)) {
		done = write(fd, p, base_min(n, (size_t)PIPE_BUF));
		if (done < 0 && errno != EINTR && errno != EAGAIN) {
			failure_tell(errno);
			return;
		}
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		}
	}
}

static void lines_put(struct am_console *c)
{
	const char *last = memrchr(c->buffer, '\n', c->used);
	size_t n = last ? (size_t)(last + 1 - c->buffer) : 0;

	if (c->parts || (!last && c->used == sizeof(c->buffer)))
		n = c->used;
	put(c->out, c->buffer, n);
	memmove(c->buffer, c->buffer + n, c->used - n);
	c->used -= n;
}

bool am_console_forward(struct am_console *c)
{
	ssize_t n = read(c->in, c->buffer + c->used, sizeof(c->buffer) - c->used);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0) {
		put(c->out, c->buffer, c->used);
		c->used = 0;
		return false;
	}
	c->used += (size_t)n;
	lines_put(c);
	return true;
}
