/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EXEC_RECORD_H
#define PRELOAD_EXEC_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/sock/sock.h"

/*
 * What a socket is to its program, and the stream below does not know, from one process to
 * another.
 */

/* It carries frames, or may come to; or it does not after all */
void exec_record_mark(int fd, bool on);
bool exec_record_is_marked(int fd);
/* Before another process may come to the stream: into its state */
void exec_record_write(struct sock *s);
/* As long as a stream is new here: what was written */
void exec_record_read(struct sock *s);
/* A socket that was new here, and may have been connected by another process: its stream */
void exec_record_catch_up(struct sock *s, int fd);
enum exec_record_way {
	EXEC_RECORD_INHERITED,
	EXEC_RECORD_RECEIVED, /* in a message */
	EXEC_RECORD_PEEKED,   /* in one that is still to be received */
};

/*
 * The socket at @fd may be one of other processes', or of the program before this one. 0: it is
 * in the table, by one number more if this process had it already; -ENOENT: it is none of ours.
 * Else it cannot be used here, and @fd stands for a dead socket.
 */
int exec_record_adopt(int fd, enum exec_record_way way);
/* This process had the socket at @fd before; with a reference, or NULL */
struct sock *exec_record_find(uint64_t cookie);

#endif
