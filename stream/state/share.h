/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the state that processes share it by: how the stream was made, where it connects
 * again, what the peer has mapped, and who has it.
 */
#ifndef STREAM_STATE_SHARE_H
#define STREAM_STATE_SHARE_H

#include <netinet/in.h>
#include <stdint.h>

/* Processes that have a place of their own; those beyond are counted */
#define STREAM_HOLDERS 16
#define STREAM_PROVIDER_MAX 16

enum stream_made_flag {
	STREAM_INITIATOR = 0x01,
	STREAM_ONLY = 0x02, /* as stream_param has them */
	STREAM_PROBE = 0x04,
	STREAM_NO_CRC = 0x08,
	STREAM_MARKERS = 0x10,
	STREAM_DETOUR = 0x20,
};

/* How it was made; each process takes its copy when it comes to the stream, and goes by that */
struct stream_made {
	char provider[STREAM_PROVIDER_MAX];
	uint32_t flags;
	uint32_t ring, chunk; /* bytes */
	uint32_t credits;
	uint32_t offered; /* features */
	uint32_t slots;
	uint32_t start_rtts, decide_rtts;
	uint64_t start_limit;
	uint64_t decide_limit, decide_max;
};

/* A client that connects again, plainly; of an IPv4 address the family and what follows. Both */
struct stream_again {
	struct sockaddr_in6 peer, name;
	uint32_t peer_len; /* 0: nobody said where to */
	uint32_t error;	   /* the errno that its probe came to */
	uint32_t phase;
	uint32_t pad;
	uint64_t pause, limit; /* ns; base/clock.h */
};

/* In struct stream_urgent.octet; the low bits are the byte itself */
enum stream_urgent_bit {
	STREAM_URGENT_WAITS = 0x100, /* for recv(MSG_OOB) */
	STREAM_URGENT_TAKEN = 0x200, /* by that; its place still stops reads */
};

/* The urgent byte that came last, until it is read past, and one that is held */
struct stream_urgent {
	uint64_t at;	  /* * rx: where it lies in the ring, as rx.placed counts */
	uint32_t octet;	  /* * rx: 0: there is none */
	uint32_t in_line; /* *: the program's SO_OOBINLINE */
	uint32_t held;	  /* * tx: bytes of the hold up to an urgent one, that included; 0: none */
	uint32_t lost;	  /* *: the connection has ended out of order, and no byte is to be had */
};

/* Memory of the peer's that it has mapped at @offset; bytes 0: none */
struct stream_mapping {
	uint64_t offset;
	uint64_t to;
	uint32_t stag;
	uint32_t octets;
};

enum stream_holder_kind {
	STREAM_HOLDER_NONE,
	STREAM_HOLDER_LIVE,   /* @pid has it open */
	STREAM_HOLDER_FORK,   /* a child will have, that @pid makes and nobody has named yet */
	STREAM_HOLDER_SPAWN,  /* the same, with a program of its own */
	STREAM_HOLDER_FLIGHT, /* @pid sent it to who will have it */
	STREAM_HOLDER_BUSY,   /* @pid is clearing the slot */
};

/* A process that has the stream open, or will; holder.c. All atomic */
struct stream_holder {
	uint64_t who;	 /* kind and process: changed by compare-and-swap alone */
	uint64_t since;	 /* base_process_clock() when it was entered; 0: a moment ago */
	uint64_t wakeup; /* what to wake for those of it who sleep; 0: it has none */
	uint32_t asleep; /* whether it is to be woken; sleep.c */
	uint32_t space;	 /* base_process.space of the process */
};

#endif
