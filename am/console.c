/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output of workers: lines of many processes must not be mixed within a line, unless the user wants
 * to see parts of lines at once. A line longer than the buffer is passed on in parts.
 */
#include "am/console.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Standard output may be one that another program has made non-blocking. */
static bool may_again(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	if (errno != EAGAIN)
		return errno == EINTR;
	poll(&pfd, 1, -1);
	return true;
}

/* A reader that has gone knows. */
static void loss_say(int fd)
{
	static bool said;

	if (fd != STDOUT_FILENO || errno == EPIPE || said)
		return;
	said = true;
	fprintf(stderr, "*** AMUDP: what the ranks print is lost: %s\n", strerror(errno));
}

static void put(int fd, const char *p, size_t n)
{
	ssize_t done;

	while (n) {
		done = write(fd, p, n);
		if (done < 0 && !may_again(fd)) {
			loss_say(fd); /* and the job goes on */
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
