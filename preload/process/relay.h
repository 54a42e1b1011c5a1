/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A relay: a process that has a stream, for a program that cannot load us and has one end of a
 * local socket in its place.
 */
#ifndef PRELOAD_RELAY_H
#define PRELOAD_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/sock/sock.h"
#include "stream/stream.h"

/* Octets on their way in one direction */
struct relay_way {
	uint8_t *octets;
	size_t at, end;
	bool ended; /* no more of them come in */
	bool told;  /* and who gets them knows */
};

/* A stream and our end of the local socket; what is not named is nought */
struct relay_line {
	struct stream *stream;
	int local;
	/*
	 * The program may be a server whose peer waits for its first words, not for DDP: ns that a
	 * Request may take. 0: the peer is for DDP
	 */
	uint64_t grace;
	uint64_t linger; /* ns that a peer which acknowledges nothing is given at the end */
	uint64_t grace_end, linger_end;
	uint64_t acked; /* octets, as of the last look */
	bool plain;	/* the peer speaks TCP */
	bool late;	/* we do, and listen whether it does */
	bool gone;	/* the program has closed its end */
	bool closing, over;
	struct relay_way out, in; /* to the peer, from it */
};

/* -ENOMEM */
int relay_line_init(struct relay_line *l);
void relay_line_uninit(struct relay_line *l);
/* What @fds of relay_serve() has room for */
#define RELAY_POLLS(n) (2 * (size_t)(n) + 1)
/* Until all of them are over */
void relay_serve(struct relay_line *lines, unsigned int n, struct pollfd *fds);

/*
 * Two ends of a local socket, close-on-exec: for the program, which waits as it would at @fd, and
 * for the relay; -errno
 */
int relay_pair(int fd, int *local, int *far);
/*
 * Notes why the program that is to have @fd cannot go on with it: of its own making, or for what
 * hand_over() came to
 */
void relay_explain(int fd, int err, bool loads);
/* Is that number a relay's? */
bool relay_is_behind(int fd);

/* The name of its process */
#define RELAY_NAME "warpsock-relay"

/* What a relay is told of a line when it goes on as another program */
struct relay_given {
	int fd, local;
	uint64_t grace;
};

/* In that program, until all of them are over; 0 or -errno */
int relay_go_on(const struct relay_given *given, unsigned int n);

/* What a relay is to take over: the number by which the process has it, the relay's local end */
struct relay_ask {
	struct sock *sock;
	int fd, local;
};

/*
 * A process that serves these when the program of this one, or of a guest, has been executed;
 * @before: the process that has the streams until then, 0: none. *@out: a descriptor for the time
 * until then
 */
int relay_create(const struct relay_ask *asks, unsigned int n, uint32_t before, int *out);
/* The program is not executed after all */
void relay_cancel(int go);

#endif
