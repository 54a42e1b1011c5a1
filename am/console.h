/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_CONSOLE_H
#define AM_CONSOLE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum am_console_target {
	AM_CONSOLE_STDOUT,
	AM_CONSOLE_STDERR,
	AM_CONSOLE_TARGETS,
};

/* One stream of a worker's output on its way to ours, passed on by whole lines. */
struct am_console {
	int in; /* negative: at its end, or not open */
	enum am_console_target target;
	bool parts; /* of lines are passed on, too, as they come */
	size_t used;
	size_t due; /* bytes of used that are to be written now */
	char buffer[8192];
};

/* Where the number of the signal that ends the job will stand. */
void am_console_init(const volatile sig_atomic_t *signal_number);

void am_console_open(struct am_console *c, int in, enum am_console_target target, bool parts);
/* True while more may come out of it. */
bool am_console_left(const struct am_console *c);

/* True while nothing else is being written where this stream goes: am_console_forward then. */
bool am_console_takes(const struct am_console *c);
/* Reads what is there, and passes on what can be passed on without waiting. */
void am_console_forward(struct am_console *c);

/* The descriptor that must be writable for am_console_resume to get on; -1: nothing waits. */
int am_console_waits(enum am_console_target target);
void am_console_resume(enum am_console_target target);

/* A line of the console's own, on standard error, between the lines of others. */
void am_console_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Waits until all that is due has been written, or given up. */
void am_console_drain(void);

/* Output could not be written, though its reader has not left: that has been said. */
bool am_console_failed(void);

#endif
