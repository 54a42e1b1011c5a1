/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LISTENS_H
#define PRELOAD_LISTENS_H

#include <stdbool.h>
#include <sys/socket.h>

struct sock;

/* What a socket has as a listener */
struct sock_listening {
	enum { LISTENS_PLAIN, LISTENS_UNTOLD, LISTENS_TOLD } serves; /* are other hosts told? */
	bool counted;						     /* in ports[]; atomic */
	int announced; /* preload/rules/host.h; -1. Atomic */
};

/* Is there a listener for DDP in this process that a connection to @addr would reach? */
bool listens_here(const struct sockaddr *addr, socklen_t len);

/*
 * Is there memory for a connection more, or is that plain in any case? Closed ones of which the
 * peers have all are let go
 */
bool listens_room(const struct sock *s);
/* Are its connections on DDP, or none at all? */
bool listens_strictly(const struct sock *s);

/* The socket, which was new, is one from now on, for the kernel's or a device's connections */
void listens_begin(struct sock *s);
/* It has a connection: others are told of the listener again, where nobody could be before */
void listens_again(struct sock *s);
/* Nobody is told of it any more; harmless for others */
void listens_end(struct sock *s);

#endif
