/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LISTENING_H
#define PRELOAD_LISTENING_H

#include <stdbool.h>
#include <sys/socket.h>

/* What a connection from outside would reach, in this network namespace */
enum listening {
	LISTENING_NOT,
	LISTENING_EXACT, /* a listener of exactly that address */
	LISTENING_ANY,	 /* one of all addresses */
};

/*
 * Of the listeners at the address and port of @addr, asked for over the interface @device. What
 * cannot be asked is not listening.
 */
enum listening listening_at(const struct sockaddr *addr, socklen_t len, unsigned int device);

#endif
