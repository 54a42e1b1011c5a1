/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_CONSOLE_H
#define AM_CONSOLE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* One stream of a worker's output on its way to ours, passed on by whole lines. */
struct am_console {
	int in;
	int out;
	bool parts; /* of lines are passed on, too, as they come */
	size_t used;
	char buffer[8192];
};

/* Where the number of the signal that ends the job will stand. */
void am_console_init(const volatile sig_atomic_t *signal_number);

/* Output could not be written, though its reader has not left: that has been said. */
bool am_console_failed(void);

/* Passes on what is there; false at the end of the stream, after the rest is out. */
bool am_console_forward(struct am_console *c);

#endif
