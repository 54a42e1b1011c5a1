/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output of workers: lines of many processes must not be mixed within a line, unless the user wants
 * to see parts of lines at once. A line longer than the buffer is passed on in parts.
 *
 * No call waits for the reader. What it does not take stays with its stream, which then owns the
 * target: nothing else is written there, so nothing else is read that would go there, and the ranks
 * come to wait as they would for a pipe. When a signal ends the job, the reader has a while, and
 * what it has not taken then is thrown away.
 */
#include "am/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"

#define WAIT_MS 50
#define READER_GRACE_NS (2 * BASE_NS_PER_S) /* what a reader has, once the job is to end */

static int descriptors[AM_CONSOLE_TARGETS] = { STDOUT_FILENO, STDERR_FILENO };
static bool joint; /* both targets are one file, and have one owner: that of the first */

static struct am_console *owners[AM_CONSOLE_TARGETS];
static struct am_console own = { .in = -1, .target = AM_CONSOLE_STDERR };
static const volatile sig_atomic_t *interrupted;
static uint64_t grace_until;
static bool failed;

/*
 * A terminal says that it can be written to where it has room for one byte, and then waits for
 * more. So we open it once more, for us alone; where that cannot be had, it is as it is.
 */
static int descriptor_take(int fd)
{
	char path[32];
	int own_fd;

	if (!isatty(fd))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own_fd < 0 ? fd : own_fd;
}

static bool is_same_file(int a, int b)
{
	struct stat st[2];

	return fstat(a, &st[0]) == 0 && fstat(b, &st[1]) == 0 && st[0].st_dev == st[1].st_dev &&
	       st[0].st_ino == st[1].st_ino;
}

void am_console_init(const volatile sig_atomic_t *signal_number)
{
	int i;

	interrupted = signal_number;
	joint = is_same_file(STDOUT_FILENO, STDERR_FILENO);
	for (i = 0; i < AM_CONSOLE_TARGETS; i++)
		descriptors[i] =
			descriptor_take(i == AM_CONSOLE_STDOUT ? STDOUT_FILENO : STDERR_FILENO);
}

/* The stream that is being written where this target is */
static struct am_console **owner_of(enum am_console_target target)
{
	return &owners[joint ? AM_CONSOLE_STDOUT : target];
}

bool am_console_failed(void)
{
	return failed;
}

void am_console_open(struct am_console *c, int in, enum am_console_target target, bool parts)
{
	*c = (struct am_console){ .in = in, .target = target, .parts = parts };
}

bool am_console_left(const struct am_console *c)
{
	return c->in >= 0 || c->due;
}

bool am_console_takes(const struct am_console *c)
{
	return c->in >= 0 && !*owner_of(c->target);
}

int am_console_waits(enum am_console_target target)
{
	const struct am_console *c = owners[target];

	return c ? descriptors[c->target] : -1;
}

/* The reader's time begins when somebody first waits after the signal. */
static bool grace_is_over(void)
{
	if (*interrupted && !grace_until)
		grace_until = base_now() + READER_GRACE_NS;
	return grace_until && base_now() >= grace_until;
}

static bool is_writable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, ms) > 0;
}

static void written(struct am_console *c, size_t n)
{
	memmove(c->buffer, c->buffer + n, c->used - n);
	c->used -= n;
	c->due -= n;
}

/* A reader that has left wants no more: the job goes on. All else is a loss. */
static void failure_tell(int error)
{
	if (error == EPIPE || failed)
		return;
	failed = true;
	am_console_say("output of the job is lost, the console cannot write it: %s",
		       strerror(error));
}

/* Not more at once than a pipe with room takes without waiting */
static void part_write(struct am_console *c)
{
	ssize_t n = write(descriptors[c->target], c->buffer, base_min(c->due, (size_t)PIPE_BUF));
	int error = errno;

	if (n > 0)
		written(c, (size_t)n);
	if (n < 0 && error != EINTR && error != EAGAIN) {
		written(c, c->due);
		failure_tell(error);
	}
}

void am_console_resume(enum am_console_target target)
{
	struct am_console *c;

	while ((c = owners[target])) {
		if (is_writable(descriptors[c->target], 0))
			part_write(c);
		else if (grace_is_over())
			written(c, c->due);
		else
			return;
		if (!c->due)
			owners[target] = own.due && owner_of(own.target) == &owners[target] ? &own
											    : NULL;
	}
}

static void begin(struct am_console *c)
{
	struct am_console **owner = owner_of(c->target);

	if (!c->due || *owner)
		return;
	*owner = c;
	am_console_resume((enum am_console_target)(owner - owners));
}

/* Whole lines; all of a line that does not fit. */
static size_t lines_due(const struct am_console *c)
{
	const char *last = memrchr(c->buffer, '\n', c->used);

	if (c->parts || (!last && c->used == sizeof(c->buffer)))
		return c->used;
	return last ? (size_t)(last + 1 - c->buffer) : 0;
}

void am_console_forward(struct am_console *c)
{
	ssize_t n = read(c->in, c->buffer + c->used, sizeof(c->buffer) - c->used);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		c->used += (size_t)n;
		c->due = lines_due(c);
	} else {
		close(c->in);
		c->in = -1;
		c->due = c->used;
	}
	begin(c);
}

void am_console_say(const char *fmt, ...)
{
	char text[512];
	va_list args;
	size_t n;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (own.used + sizeof(text) + 16 > sizeof(own.buffer))
		return; /* the reader has not taken dozens of them */
	n = (size_t)snprintf(own.buffer + own.used, sizeof(own.buffer) - own.used,
			     "*** AMUDP: %s\n", text);
	own.used += n;
	own.due = own.used;
	begin(&own);
}

void am_console_drain(void)
{
	int i;

	for (i = 0; i < AM_CONSOLE_TARGETS; i++) {
		for (am_console_resume(i); owners[i]; am_console_resume(i))
			is_writable(am_console_waits(i), WAIT_MS);
	}
}
