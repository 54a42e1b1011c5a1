/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_CATCH_UP_H
#define PRELOAD_CATCH_UP_H

struct sock;

/* A socket that was new here, and may have been connected by another process: its stream */
void sock_catch_up(struct sock *s, int fd);
/* @fd cannot be used here because of @err: from now on it stands for a socket without connection */
void sock_put_away(int fd, int err);

#endif
