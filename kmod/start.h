/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Start-up in the kernel, of sockets that a listener with DDP_MODE has accepted. All with the
 * socket's lock.
 */
#ifndef KMOD_START_H
#define KMOD_START_H

#include <linux/types.h>

#include "mpa/mpa.h"

struct conn;

/* What the listener's options say */
struct conn_wanted {
	bool on, no_crc, markers;
};

struct conn_start {
	unsigned long until; /* jiffies */
	__u32 have, need;
	bool asked; /* the Request is whole */
	int error;
	__u8 frame[MPA_START_MAX];
};

/* -ENOMEM */
int conn_start_begin(struct conn *c, const struct conn_wanted *wanted);
void conn_start_end(struct conn *c);

/* In any context: takes in the Request, and no octet more; true: conn_start_run() has to act */
bool conn_start_pump(struct conn *c);
/* Process context: answers, or ends the connection */
void conn_start_run(struct conn *c);

#endif
