/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a stream is made by, what it has done, and how it comes to another process.
 */
#ifndef STREAM_PARAM_H
#define STREAM_PARAM_H

#include <stdbool.h>
#include <stdint.h>

#include "config/conn_opts.h"

struct rnic_native;
struct sockaddr_storage;
struct stream;

/* A flag of recv, beside MSG_PEEK and MSG_TRUNC */
#define STREAM_STOP 0x01000000

enum stream_level {
	STREAM_READABLE = 0x01, /* bytes (SO_RCVLOWAT), an end or an error are there to be read */
	STREAM_WRITABLE = 0x02,
	STREAM_RDHUP = 0x04, /* the peer sends no more */
	STREAM_HUP = 0x08,   /* both directions are over */
	STREAM_ERROR = 0x10,
	STREAM_SOME = 0x20,    /* bytes, but less than SO_RCVLOWAT: not readable */
	STREAM_STARTED = 0x40, /* start-up is over, one way or the other */
	STREAM_BOUND =
		0x80, /* reads end behind bytes or before them: at a message, or an urgent byte */
	STREAM_URGENT = 0x100,	/* an urgent byte waits for recv(MSG_OOB) */
	STREAM_AT_MARK = 0x200, /* the byte that is next is the urgent one, taken or not */
};

/* Grow when something happened that a waiter may have waited for */
struct stream_edges {
	uint32_t in;  /* bytes or an end came */
	uint32_t out; /* room came */
};

enum stream_await {
	STREAM_AWAIT_NEW = 0x01,      /* it was not awaited: who has looked before looks again */
	STREAM_AWAIT_NOTIFIED = 0x02, /* the wakeup fd was written to for it since */
	STREAM_AWAIT_DEAF = 0x04,     /* it cannot be woken: who sleeps must look by itself */
};

/* How it ended otherwise than in order */
enum stream_broken {
	STREAM_BROKEN = 1,
	STREAM_CUT,	    /* the peer's FIN came in the middle of something */
	STREAM_TIMED_OUT,   /* TCP gave up */
	STREAM_SHARER_DIED, /* a process that has it too, in the middle of something */
	STREAM_DAMAGED,	    /* by what another process wrote to its state */
	STREAM_NO_MEMORY,   /* for its state */
	STREAM_FLOODED,	    /* by messages that bring nothing */
};

/* Of the peer: messages in a row that brought nothing (recv.c) */
struct stream_idle {
	uint64_t moved; /* bytes and messages that had gone either way when it began */
	uint64_t since;
	uint32_t row;
	uint32_t empty; /* of the provider's such frames, those that are counted */
};

struct stream_stats {
	uint64_t tx_octets, rx_octets; /* the program's */
	uint64_t tx_fpdus, rx_fpdus;
	uint64_t queued; /* bytes that a device has not said have left, control ones, too */
	bool opened, broken;
	bool failed; /* it never came up, because of the peer; in the process that saw it */
	bool device; /* one carries it */
	bool last;   /* no other process has it open */
	/* Why a probe came to nothing (errno), in the process that saw it; else 0 */
	int probe_error;
};

/*
 * How another process comes to a stream. Before it does, the process that has it shares it; who
 * comes claims its place in what that left.
 */
enum stream_share {
	STREAM_SHARE_FORK,   /* a child with this one's memory: joined() */
	STREAM_SHARE_SPAWN,  /* a child with a program of its own: adopt() */
	STREAM_SHARE_FLIGHT, /* who receives the descriptor (SCM_RIGHTS): adopt() */
};

/* Slots for mappings, ours and the peer's, at most; rsockets can say more */
#define STREAM_SLOTS 128u

/* Bytes of a stream's state that are its user's */
#define STREAM_EXEC_RECORD 96

struct stream_param {
	struct conn_opts opts; /* its ring is made a power of two */
	bool initiator;
	bool connecting; /* TCP's connect() has not finished yet */
	bool hold;	 /* take up to 64 KiB of writes from the beginning of start-up */
	/*
	 * The active side only tries: when TCP is connected and start-up fails, the connection is
	 * dropped, and -ENOMSG says so, when the descriptor has connected again to @peer, by
	 * the port of @name if that has one, or cannot. Without @peer that is the caller's.
	 * opts.detour: the descriptor connects elsewhere than to @peer, and the same when it
	 * cannot.
	 */
	bool probe;
	const void *peer; /* an address of either family */
	const struct sockaddr_storage *name;
	uint32_t peer_len;
	uint32_t without;	 /* features that are not offered; all: no extension block */
	uint64_t start_limit;	 /* ns that the peer's frame may take; 0: any time */
	uint64_t apart_limit;	 /* at most that, 1 s at least, where a device is not TCP's */
	unsigned int start_rtts; /* it may take at least so many round trips, if there is a limit */
	/*
	 * How long a connection that is not decided is not writable: ns, at least so many round
	 * trips, at most decide_max (0: no bound). Behind that an initiator takes writes as with
	 * @hold; a responder in mode auto may speak_plain(), and a piece of a key that is not
	 * continued for as long is its program's. 0: an initiator waits for the Reply, a responder
	 * may speak at once.
	 */
	uint64_t decide_limit, decide_max;
	unsigned int decide_rtts;
	struct rnic_native
		*native; /* of the provider of opts; NULL: the descriptor carries the bytes */
	/*
	 * Where what other processes need is kept: a folder, empty the one that goes by the user,
	 * NULL: nowhere; then only children by fork() share the stream. To stay where it is as
	 * long as there are streams.
	 */
	const char *dir;
	/* The stream that this process had of the socket, or NULL; @fresh: nobody ever had one */
	struct stream *older;
	bool fresh;
	/* adopt: nobody has announced it, and it is looked for everywhere */
	bool search;
	/* Levels may have changed; called without any lock of the stream */
	void (*changed)(void *ctx);
	/*
	 * Of a probe that does not hold writes, under its locks: may its Request go out, of which
	 * the answer would be waited for so long? 0, -EAGAIN not now, and it is asked again
	 * @when, -ENOMSG: the peer speaks plain TCP. And: it went, and came to nothing. NULL
	 * is fine.
	 */
	int (*may_probe)(void *ctx, uint64_t limit, uint64_t *when);
	void (*probed)(void *ctx);
	/* Under the lock for what comes: an urgent byte has. NULL is fine. */
	void (*urgent)(void *ctx);
	void *ctx;
};

#endif
