/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a stream connection is between two calls: plain data of fixed layout without pointers,
 * in memory that processes may share.
 *
 * Each member names the lock that guards it; those marked with an asterisk are written under
 * that lock and read without it (__atomic), by the other direction or by whoever asks for levels.
 * Indices and lengths are checked when they are read: another process may have written them.
 */
#ifndef STREAM_STATE_H
#define STREAM_STATE_H

#include <stdint.h>

#include <wire/stream_ext.h>

#include "base/lock.h"
#include "rnic/rnic_stream.h"
#include "stream/param.h"
#include "stream/state/share.h"

#define STREAM_MAGIC 0x57415251u
#define STREAM_VERSION 16
#define STREAM_NO_MESSAGE (~0ull)

/*
 * The ring that the peer writes to is address space: two halves, granted in turn. By default a half
 * is some of the longest segments, so that neither a grant nor a short segment comes with each.
 */
#define STREAM_HALF (256 * 1024u)
#define STREAM_RING (2 * STREAM_HALF)
#define STREAM_RING_MIN (8 * 1024u)
#define STREAM_RING_MAX (64 * 1024 * 1024u)
#define STREAM_CREDITS RS_DEF_CREDITS
/*
 * Bytes that wait for their reader lie in spans, or in chunks, which are taken on demand: the last
 * freed is the first used again. A ring is so many chunks, less one, or fewer.
 */
#define STREAM_CHUNK_MIN 4096u
#define STREAM_CHUNKS 33
#define STREAM_NO_CHUNK 0xFF

/* Bytes that wait where they were received: bytes of the block's `in` (span.c) */
#define STREAM_SPANS 24

struct stream_span {
	uint32_t off, len;
};

/* Bytes written before the connection is open */
#define STREAM_HOLD (64 * 1024u)

enum stream_stage {
	STREAM_CONNECTING,    /* TCP's connect() is under way */
	STREAM_SINGLE_FLIGHT, /* a probe waits for what comes of another one (single_flight.c) */
	STREAM_STARTING,      /* MPA's start-up is */
	STREAM_AGAIN,	      /* a probe came to nothing: TCP connects once more (again.c) */
	STREAM_OPEN,
	STREAM_PLAIN,  /* the peer speaks no MPA; nothing was consumed */
	STREAM_FAILED, /* never came up; error says why */
};

enum stream_end {
	STREAM_IN_ENDED = 0x01,	 /* the peer sends no more: SHUTDOWN, DISCONNECT, FIN, broken */
	STREAM_OUT_ENDED = 0x02, /* the peer takes no more: DISCONNECT, FIN, broken */
	STREAM_SHUT_RD = 0x04,	 /* ours */
	STREAM_SHUT_WR = 0x08,
	STREAM_CLOSED = 0x10, /* the last descriptor is gone: what arrives is thrown away */
	STREAM_DRY = 0x20,    /* the transport brings nothing more: FIN or broken */
	STREAM_SAID = 0x40,   /* our DISCONNECT is due or sent */
	STREAM_LEFT = 0x80,   /* the peer has ended in good order: DISCONNECT, or FIN */
	STREAM_LOST = 0x100, /* bytes were written behind that, and dropped: as after TCP's reset */
};

enum stream_due {
	STREAM_DUE_GRANT = 0x01, /* an SGL message whose Write has gone */
	STREAM_DUE_SHUTDOWN = 0x02,
	STREAM_DUE_DISCONNECT = 0x04,
	STREAM_DUE_FIN = 0x08,
	STREAM_DUE_ABORT = 0x10,
	/* In the books; who finds that it is not sent finds why */
	STREAM_DUE_GRANTING = 0x20,
};

/* A buffer of the peer's that we may write to */
struct stream_entry {
	uint64_t to;
	uint32_t stag;
	uint32_t room;
};

/* The peer's private data; written once, before the stage is OPEN */
struct stream_peer {
	uint64_t sgl_to;
	uint32_t sgl_stag;
	uint32_t sgl_entries;
	uint16_t credits;
	uint16_t ird, ord; /* of one-sided operations; 0: it has none */
	uint16_t reserve;  /* credits that DATA leaves to control messages */
	uint16_t slots;	   /* for mappings of ours */
};

struct stream_tx {
	uint64_t octets;  /* *: accepted from the program */
	uint64_t placed;  /* *: INLINE: bytes of the peer's window used, ever */
	uint64_t granted; /* *: bytes of our ring that the peer was told of, ever */
	uint32_t filled;  /* *: entries used up; entry[filled % 2] is in use */
	uint32_t owed;	  /* the message of a Write that has gone alone; 0: none */
	uint32_t due;	  /* *: enum stream_due */
	uint32_t blocked; /* *: the transport took less than it was given */
	uint32_t hold_at, hold_end;
	uint32_t message_at;	/* a user message in the hold, from here on to go */
	uint32_t message_end;	/* *: 0: none */
	uint32_t message_none;	/* it has no bytes */
	uint32_t want;		/* *: room that a message did not find */
	uint64_t messages;	/* *: sent, ever */
	uint16_t sent;		/* *: DATA messages, ever */
	uint16_t limit;		/* *: how many the peer may send, as it was told */
	uint32_t write_retries; /* *: that were sent (write_retry.c) */
};

struct stream_rx {
	uint64_t placed;    /* bytes that the peer wrote into our ring, ever */
	uint64_t delivered; /* *: those that a DATA message has told of */
	uint64_t consumed;  /* *: those that the program has read */
	uint64_t window;    /* *: INLINE: bytes that we may have sent, ever */
	struct stream_entry entry[RS_SGL_ENTRIES];
	uint32_t entries; /* *: entries told of, ever; valid are those from tx.filled on */
	uint16_t limit;	  /* *: how many DATA messages we may send */
	uint16_t got;	  /* *: DATA messages, ever */
	struct rs_sge sge;
	uint64_t message_first; /* *: the first user message not read, by its place in the ring */
	uint64_t message_last;	/* the last one, and the one that comes now */
	uint64_t message_at;
	uint64_t message_part; /* bytes of it in the parts that are here */
	uint64_t messages;     /* *: received, ever */
	uint64_t headers;      /* *: bytes of what was consumed that are messages' headers */
	struct stream_idle idle;
	struct rs_iomap map;
	uint8_t map_here; /* map was written to slot map_here - 1, its message has not come */
	uint8_t maps;	  /* slots up to the last one that has ever had a mapping */
	uint8_t message_open;
	uint8_t sge_here; /* sge was written, its SGL message has not come */
	uint8_t msg_len;
	uint8_t msg[RS_MSG_LEN];
	uint8_t body[sizeof(struct stream_window)];
	uint8_t settled;	      /* HELD: the peer has said that it holds nothing any more */
	uint8_t chunks_free, more;    /* more *: the last look stopped at its bound */
	uint8_t span_first, span_end; /* of span[]: those that are there */
	uint64_t span_from, span_to;  /* bytes that are in spans, where there are any */
	struct stream_span span[STREAM_SPANS];
	uint8_t chunk_of[STREAM_CHUNKS]; /* by place in the ring of chunks, STREAM_NO_CHUNK */
	uint8_t free_chunk[STREAM_CHUNKS];
};

struct stream_state {
	uint32_t magic, version;
	uint32_t size;	 /* of this struct */
	uint32_t owner;	 /* * tx: the process of one-sided operations; 0: none */
	uint64_t octets; /* of the mapping */
	uint64_t cookie; /* of its socket */
	struct stream_made made;
	struct base_lock rx_lock, tx_lock; /* in this order */
	uint32_t holders;	       /* * atomic: about how many there are, for a quick look */
	uint32_t overflow;	       /* * atomic: those that found no slot */
	uint32_t closer;	       /* * atomic: it was closed for good by this process */
	uint32_t common;	       /* * atomic: another process may have come to it, ever */
	uint32_t stage;		       /* * both locks; enum stream_stage */
	uint32_t ends;		       /* * atomic; enum stream_end */
	uint32_t error;		       /* * atomic; errno that one call is still to be told */
	uint32_t may_send;	       /* * the transport's start-up gate is open */
	uint32_t in_edge, out_edge;    /* * atomic */
	uint32_t broken;	       /* * enum stream_broken */
	uint32_t aborted;	       /* * the peer's ABORT has come */
	uint32_t refused;	       /* tx: a job was told of the peer's Terminate */
	uint32_t features;	       /* *: in force; written once, before the stage is OPEN */
	uint32_t lowat;		       /* * the program's SO_RCVLOWAT */
	uint32_t late;		       /* * the program spoke TCP before a Request came */
	uint32_t hold;		       /* * tx: writes are taken before the connection is open */
	uint32_t rejected;	       /* both: we have sent a Reply that says no */
	uint32_t heard;		       /* * responder: bytes of a Request have been taken in */
	uint32_t start_events;	       /* * what start-up waits for */
	uint32_t lowat_was, lowat_now; /* both: the socket's own SO_RCVLOWAT, 0: as it is; ours */
	uint64_t start_deadline;       /* * of the peer's frame, then of a retry Write; or none */
	uint64_t decide_deadline; /* * until then it is not writable; BASE_NEVER: passed, or none */
	uint32_t sgl_stag, ring_stag;
	uint64_t sgl_to, ring_to;
	uint64_t first_window; /* the peer's */
	struct stream_peer peer;
	struct stream_again again;
	struct stream_urgent urgent;
	struct stream_tx tx;
	struct stream_rx rx;
	struct stream_holder holder[STREAM_HOLDERS];
	uint8_t exec_record[STREAM_EXEC_RECORD]
		__attribute__((aligned(8))); /* its user's; not ours to judge */
	uint8_t rnic[RNIC_STREAM_STATE] __attribute__((aligned(8)));
} __attribute__((aligned(64)));

#endif
