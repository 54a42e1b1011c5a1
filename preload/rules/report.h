/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_REPORT_H
#define PRELOAD_REPORT_H

#include <stdbool.h>
#include <sys/socket.h>

#include "config/config.h"
#include "config/loadable.h"
#include "config/reason.h"

struct stream_info;
struct stream_stats;

/*
 * What the processes of a command have done: counted for the report, to which each adds when it
 * ends, and told in the log, a line for a connection and at most one line of a kind in a second. A
 * later line of that kind, or the end of the command, tells how many were left out.
 */
void report_init(const struct config *c);

/* --- counts --- */

/* Of a stream, and @why it did not come up or ended, if so */
void report_stream(const struct stream_stats *stats, enum config_reason why);
/* What became of so many besides */
void report_reason(enum config_reason reason, unsigned int n);
/* A child counts from nought, where it does not share what its command has counted */
void report_reset(void);
/*
 * Adds the counts to the report. @last: no program of this process follows. The process of the
 * command itself then tells the user when none of the command's connections was on DDP.
 */
void report_end(bool last);

/* --- connections, each told once --- */

/* The socket @fd stays on TCP, or becomes plain TCP: counted and told (info) */
void report_plain(int fd, enum config_reason reason);
/* A connection is on DDP: told (info) */
void report_up(const struct sockaddr *peer, bool accepted, const struct stream_info *info);
/*
 * A connection in mode on did not come up: told, with advice (warn). Of the peer of the socket
 * @fd, or of that address. To count it is the caller's
 */
void report_failed(int fd, enum config_reason reason);
void report_failed_at(const struct sockaddr *peer, enum config_reason reason);
/* The program @file goes on without the interposer: counted and told (warn); no memory, no lock */
void report_unloadable(const char *file, enum config_loads why);

#endif
