/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of a socket: four words, each with the moves that it may make. Who carries its bytes
 * follows from them: the kernel, unless it is SOCK_STREAM_ON, then a device if the stream has a
 * carrier (sock_on_device()), else the software provider.
 */
#ifndef PRELOAD_SOCK_STATE_H
#define PRELOAD_SOCK_STATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What it is
 *
 *	NEW --listen()--> LISTENER
 *	NEW --connect() or accept() by DDP, another process connected it--> STREAM_ON
 *	STREAM_ON --the attempt failed, connect() to nowhere--> NEW
 *	NEW, STREAM_ON --no DDP--> PLAIN
 */
enum sock_role {
	SOCK_NEW,
	SOCK_LISTENER,
	SOCK_STREAM_ON, /* sock->stream is there */
	SOCK_PLAIN,	/* given back to the kernel, for good */
};

/*
 * How far its connection is
 *
 *	NEW --connect()--> CONNECTING --Reply--> OPEN
 *	NEW --accept()--> UNDECIDED --Request--> OPEN
 *	                  UNDECIDED --the program writes first--> SPOKEN
 *	each --its stream goes--> NEW
 *
 * One that comes from another process begins as it was there.
 */
enum sock_start {
	SOCK_START_NEW,	       /* there is none, or nothing is known of it */
	SOCK_START_CONNECTING, /* a client's: that its peer speaks DDP has not been noted yet */
	SOCK_START_UNDECIDED,  /* a server's: no Request has come */
	SOCK_START_SPOKEN,     /* what it writes is TCP's, and a Request would come too late */
	SOCK_START_OPEN,
};

/*
 * Which processes have it
 *
 *	ONE --fork(), or inherited, and it is new--> NEW_ELSEWHERE
 *	NEW_ELSEWHERE --connected here, or found to be connected--> ONE
 *	ONE, NEW_ELSEWHERE --another one may use its stream--> SHARED
 *	SHARED --the others have gone--> ONE
 *	SHARED --it is new again, fork()--> NEW_ELSEWHERE
 */
enum sock_tenure {
	SOCK_OF_ONE,
	SOCK_NEW_ELSEWHERE, /* another process may connect it */
	SOCK_SHARED,	    /* or was, when others.c looked last */
};

/*
 * Whose number sock->fd is
 *
 *	PROGRAM --the program may give it to another file--> INTERNAL
 *	PROGRAM --close()--> NONE
 */
enum sock_number {
	SOCK_NUMBER_PROGRAM,
	SOCK_NUMBER_INTERNAL, /* a duplicate, until the socket is released */
	SOCK_NUMBER_NONE,
};

/* Of each state the bits of those that may follow it; none: it is the last one */
struct sock_moves {
	unsigned int states;
	uint8_t next[5];
};

extern const struct sock_moves sock_role_moves, sock_start_moves, sock_tenure_moves,
	sock_number_moves;

/*
 * Moves *@state, which is atomic. False: it was there already, or no move leads there, which is a
 * defect unless another thread has brought it to its last state.
 */
bool sock_state_move(const struct sock_moves *moves, uint32_t *state, uint32_t to);
/* The same if it is at @from */
bool sock_state_leave(const struct sock_moves *moves, uint32_t *state, uint32_t from, uint32_t to);

#endif
