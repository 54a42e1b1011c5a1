/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-ddp: the parts of the example to each other.
 */
#ifndef APPS_EXAMPLES_DDP_H
#define APPS_EXAMPLES_DDP_H

#include <stddef.h>
#include <stdint.h>
#include <warp/ddp.h>

#define DDP_PORT "7177"
#define DDP_ROOM 4096

/* The server's memory, which the client writes, reads and changes */
struct ddp_table {
	uint64_t counter;
	uint64_t finished; /* not 0: the client is done */
	char text[DDP_ROOM - 16];
};

/* How the client is told of it, in a user message; both ends are of one byte order */
struct ddp_place {
	uint64_t to;
	uint32_t stag;
	uint32_t length;
};

/* A call that failed, with errno: 3, the exit status */
int ddp_failed(const char *call);
/* Sets DDP_MODE: 0, or the exit status after a sentence that says what to do */
int ddp_mode_set(int fd);
/* One line of DDP_INFO; 0 or the exit status */
int ddp_info_print(int fd, const char *who);

/* --- ddp_calls.c: each is one call of libc; 0 or -1 with errno --- */

int ddp_register(int fd, void *addr, size_t len, unsigned int access, uint32_t *stag);
/* A user message out, and the next one in: its length or -1 (EBADMSG: octets were next) */
int ddp_message_send(int fd, const void *p, size_t len);
long ddp_message_recv(int fd, void *p, size_t room);
/* Begins an operation: @type and the struct that belongs to it */
int ddp_begin(int fd, int type, const void *what, size_t len);
/* Waits for the next completion */
int ddp_complete(int fd, struct ddp_completion *c);

int ddp_server(const char *host, const char *port);
int ddp_client(const char *host, const char *port, const char *text);

#endif
