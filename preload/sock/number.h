/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_NUMBER_H
#define PRELOAD_NUMBER_H

#include <stdbool.h>

struct sock;

/* Work on it goes by an internal descriptor from now on; -errno */
int sock_own(struct sock *s);
/* It gets the stream that another process has made: as stream_adopt() */
int sock_stream_find(struct sock *s);
/* The same for one that was new until another process connected it, with what that has recorded */
int sock_overtake(struct sock *s);

/* Around fork() */
void number_before_fork(void);
void number_after_fork(bool child);

#endif
