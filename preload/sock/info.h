/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_INFO_H
#define PRELOAD_INFO_H

#include <stdbool.h>
#include <warp/ddp.h>

#include "config/reason.h"

struct sock;

void info_get(struct sock *s, struct ddp_info *out);
/* The same of a socket that is the kernel's; false: it is no TCP socket */
bool info_plain(int fd, struct ddp_info *out);
/* How its stream has ended, or why it did not come up; CONFIG_REASON_NONE: neither */
enum config_reason info_end(struct sock *s);
/* Its line in the log, once, as soon as start-up is over; cheap when it is told already */
void info_tell(struct sock *s);
/* The same at the program's close() */
void info_tell_close(struct sock *s);
/* What became of the stream of a socket that is about to lose it is told by the socket then */
void info_keep(struct sock *s);

/* For what is not to be on DDP because of @err */
enum config_reason sock_reason(int err);

/* Its stream's counts go to the report, once */
void sock_report(struct sock *s);
/* The same for all that there are, also for one that is closed while another thread is in a call */
void sock_report_all(void);

#endif
