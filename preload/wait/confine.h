/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_CONFINE_H
#define PRELOAD_CONFINE_H

#include "preload/sock/sock.h"

/*
 * A connection behind a seccomp filter that forbids sendmsg() and recvmsg(), or to ask for its
 * options: before that stands, its start-up is brought to an end, its file made non-blocking, and
 * what calls ask of it is written down.
 */
void confine(struct sock *s);

/* O_NONBLOCK, SO_RCVTIMEO and SO_SNDTIMEO as the program has set them */
bool confine_is_nonblock(const struct sock *s);
uint64_t confine_timeout(const struct sock *s, int option);

/* F_GETFL and F_SETFL, FIONBIO: libc's affair (CALL_THEIRS) unless it is us who set the flag */
long confine_flags_get(const struct sock *s);
long confine_flags_set(struct sock *s, int flags);
long confine_nonblock_set(struct sock *s, bool on);

#endif
