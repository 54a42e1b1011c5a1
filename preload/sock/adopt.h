/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ADOPT_H
#define PRELOAD_ADOPT_H

enum sock_adopt_way {
	SOCK_ADOPT_INHERITED,
	SOCK_ADOPT_RECEIVED, /* in a message */
	SOCK_ADOPT_PEEKED,   /* in one that is still to be received */
};

/*
 * The socket at @fd may be one of other processes', or of the program before this one. 0: it is
 * in the table, by one number more if this process had it already; -ENOENT: it is none of ours.
 * Else it cannot be used here, and @fd stands for a dead socket.
 */
int sock_adopt(int fd, enum sock_adopt_way way);

#endif
