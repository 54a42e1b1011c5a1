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
/* This process had the socket at @fd before; with a reference, or NULL */
struct sock *exec_record_find(uint64_t cookie);

#endif
