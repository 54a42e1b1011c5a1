/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The wire format of Active Messages over UDP, version 1: docs/amudp-wire.md. */
#ifndef WIRE_AM_H
#define WIRE_AM_H

#include <assert.h>
#include <linux/types.h>
#include <stddef.h>

#define AM_WIRE_MAGIC 0xA2
#define AM_WIRE_VERSION 1
#define AM_WIRE_MAX_DATAGRAM 65507 /* what UDP over IPv4 carries */

/* The low four bits of am_wire_packet.version_flags; the version stands above. */
enum {
	AM_PACKET_CRC = 1 << 0,	     /* crc is filled in */
	AM_PACKET_SLEEPS = 1 << 1,   /* the sender blocks while it waits: answers take longer */
	AM_PACKET_UNSEALED = 1 << 2, /* the sender takes this receiver's packets without crc */
	AM_PACKET_KNOWN = AM_PACKET_CRC | AM_PACKET_SLEEPS | AM_PACKET_UNSEALED,
};

/* Opens each packet; frames follow, each padded to 8 octets. */
struct am_wire_packet {
	__u8 magic;
	__u8 version_flags;
	__be16 length;	    /* octets of the packet, this header counted */
	__be32 crc;	    /* CRC32c of the packet with this field as 0 */
	__be64 nonce;	    /* the job */
	__be32 source_inc;  /* incarnation of the sending endpoint */
	__be32 dest_inc;    /* incarnation the sender believes in; 0 unknown */
	__be32 source_addr; /* the sending endpoint's name, whatever path it uses */
	__be16 source_port;
	__be16 window; /* KiB that the receiver of this may have unanswered at the sender */
} __attribute__((packed));

static inline unsigned int am_wire_packet_version(const struct am_wire_packet *w)
{
	return w->version_flags >> 4;
}

static inline unsigned int am_wire_packet_flags(const struct am_wire_packet *w)
{
	return w->version_flags & 0xF;
}

enum am_frame_type {
	AM_FRAME_REQUEST = 1,
	AM_FRAME_REPLY = 2,
	AM_FRAME_SACK = 3,
	AM_FRAME_REFUSE = 4,
	AM_FRAME_REFUSE_ACK = 5,
	AM_FRAME_RESET = 6,
	AM_FRAME_MOVE = 7,
	AM_FRAME_MOVE_ACK = 8,
	AM_FRAME_ASK = 9,
	AM_FRAME_ABSENT = 10,
	AM_FRAME_TYPES,
};

/* Opens each frame. ASK and ABSENT are nothing else; their flags are a copy's number. */
struct am_wire_frame {
	__u8 type;
	__u8 flags;
	__be16 length; /* octets of this frame without its padding */
	__be16 slot;   /* of the requester, for replies too */
	__be16 seq;
} __attribute__((packed));

/* am_wire_frame.flags of REQUEST and REPLY */
enum {
	AM_MESSAGE_CATEGORY = 3,      /* amudp_category_t */
	AM_MESSAGE_FRAGMENT = 1 << 2, /* am_wire_fragment follows */
	AM_MESSAGE_GET = 1 << 3,      /* the destination sends its memory back */
	AM_MESSAGE_AUTO = 1 << 4,     /* the handler did not reply: no handler to run */
	AM_MESSAGE_OFFSET = 1 << 5,   /* a __be64 destination offset follows */
	AM_MESSAGE_KNOWN = (1 << 6) - 1,
};

/* am_wire_frame.flags of SACK, REFUSE and REFUSE_ACK */
enum {
	AM_FRAME_OF_REPLY = 1 << 0, /* it speaks of the slot's reply, not of its request */
};

#define AM_COPY_ASKED 255 /* no copy's number: an ASK drew the reply */

/*
 * REQUEST and REPLY: frame, message, [offset], [fragment], [get], 4 * numargs octets of
 * arguments, padding to 8, data.
 */
struct am_wire_message {
	__u8 handler;
	__u8 numargs;
	__u8 copy; /* request: number of this copy; reply: the copy that drew this */
	__u8 reserved;
	__be32 nbytes; /* octets of data of the whole message */
	__be64 tag;    /* of the destination */
} __attribute__((packed));

struct am_wire_fragment {
	__be32 offset; /* of these data in the message */
	__be32 size;   /* data octets of each fragment but the last */
} __attribute__((packed));

struct am_wire_get {
	__be64 source_offset;
} __attribute__((packed));

/* SACK: a map of the fragments behind cumulative, least significant bit first, may follow. */
struct am_wire_sack {
	__be32 cumulative; /* fragments 0..cumulative-1 have arrived */
	__be32 total;	   /* 0: the whole message is here, however many it was */
} __attribute__((packed));

struct am_wire_refuse {
	__u8 reason; /* EBADARGS ... */
	__u8 reserved[7];
} __attribute__((packed));

/* RESET: what was addressed to incarnation `stale` has no owner; this sender is source_inc. */
struct am_wire_reset {
	__be32 stale;
	__be32 reserved;
} __attribute__((packed));

/*
 * MOVE: the endpoint named in the packet can be reached where this came from, and, when it goes
 * over to another interface, at the places that follow. MOVE_ACK has none.
 */
struct am_wire_move {
	__be32 serial; /* grows with each move of this incarnation */
	__be32 reserved;
} __attribute__((packed));

struct am_wire_place {
	__be32 addr;
	__be16 port;
	__be16 reserved;
} __attribute__((packed));

#define AM_WIRE_MAX_PLACES 4

static_assert(sizeof(struct am_wire_packet) == 32, "size");
static_assert(offsetof(struct am_wire_packet, length) == 2, "offset");
static_assert(offsetof(struct am_wire_packet, crc) == 4, "offset");
static_assert(offsetof(struct am_wire_packet, nonce) == 8, "offset");
static_assert(offsetof(struct am_wire_packet, source_inc) == 16, "offset");
static_assert(offsetof(struct am_wire_packet, dest_inc) == 20, "offset");
static_assert(offsetof(struct am_wire_packet, source_addr) == 24, "offset");
static_assert(offsetof(struct am_wire_packet, source_port) == 28, "offset");
static_assert(offsetof(struct am_wire_packet, window) == 30, "offset");
static_assert(sizeof(struct am_wire_frame) == 8, "size");
static_assert(offsetof(struct am_wire_frame, length) == 2, "offset");
static_assert(offsetof(struct am_wire_frame, slot) == 4, "offset");
static_assert(offsetof(struct am_wire_frame, seq) == 6, "offset");
static_assert(sizeof(struct am_wire_message) == 16, "size");
static_assert(offsetof(struct am_wire_message, copy) == 2, "offset");
static_assert(offsetof(struct am_wire_message, nbytes) == 4, "offset");
static_assert(offsetof(struct am_wire_message, tag) == 8, "offset");
static_assert(sizeof(struct am_wire_fragment) == 8, "size");
static_assert(sizeof(struct am_wire_get) == 8, "size");
static_assert(sizeof(struct am_wire_sack) == 8, "size");
static_assert(sizeof(struct am_wire_refuse) == 8, "size");
static_assert(sizeof(struct am_wire_reset) == 8, "size");
static_assert(sizeof(struct am_wire_move) == 8, "size");
static_assert(sizeof(struct am_wire_place) == 8, "size");

#endif
