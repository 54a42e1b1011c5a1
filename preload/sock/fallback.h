/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that does not become one of DDP, or of a device's.
 */
#ifndef PRELOAD_FALLBACK_H
#define PRELOAD_FALLBACK_H

#include <stdbool.h>
#include <sys/socket.h>

#include "config/reason.h"

struct sock;

/* Before the connect() of a client: its addresses, so that it may connect again */
void sock_remember(struct sock *s, const struct sockaddr *peer, socklen_t len);
/*
 * Start-up said -ENOMSG, the peer speaks plain TCP: the same, for a client that has tried over a
 * new TCP connection, which is under way when this returns
 */
void sock_fall_back(struct sock *s);
/* The program speaks first, and no Request has come: its octets are TCP's from now on */
bool sock_speak_plain(struct sock *s);
/*
 * A device could not begin: anew over the socket. As sock_progress(), which has said @err
 */
int sock_leave_device(struct sock *s, int err);

/* Around fork(): its lock comes before those of sockets and sets */
void fallback_before_fork(void);
void fallback_after_fork(void);
/* In a child that nobody prepared for */
void fallback_renew(void);

#endif
