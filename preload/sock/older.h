/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_OLDER_H
#define PRELOAD_OLDER_H

struct sock;
struct stream;

/* The socket has @fresh from now on; the stream that it had, if any, goes or stays behind it */
void older_replace(struct sock *s, struct stream *fresh);
/*
 * Those that stayed go, unless another thread may be in a call on one. The caller has a reference
 * of its own, no lock, and is not called by a set
 */
void older_drop(struct sock *s);
/* A stream, and those behind it; NULL: none */
void older_destroy(struct stream *stream);

#endif
