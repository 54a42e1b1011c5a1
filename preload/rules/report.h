/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_REPORT_H
#define PRELOAD_REPORT_H

#include "config/reason.h"

struct stream_stats;

/*
 * What this process has done, added up, and written into a file at its end. Several processes
 * may have the same file: each adds its own to what it finds there.
 */
/* Of a stream, and @why it did not come up or ended, if so */
void report_stream(const struct stream_stats *stats, enum config_reason why);
/* A connection that stays on TCP, and why */
void report_plain(enum config_reason reason);
/* What became of so many besides */
void report_reason(enum config_reason reason, unsigned int n);
/* A child counts from nought */
void report_reset(void);
void report_write(const char *path);

#endif
