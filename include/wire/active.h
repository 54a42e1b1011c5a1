/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The messages of Active RDMA, version 1: docs/active-wire.md. */
#ifndef WIRE_ACTIVE_H
#define WIRE_ACTIVE_H

#include <assert.h>
#include <linux/types.h>
#include <stddef.h>

enum {
	ACTIVE_WIRE_MAGIC = 0xAC,
	ACTIVE_WIRE_VERSION = 1,
	ACTIVE_WIRE_HASH = 32,
	ACTIVE_WIRE_REGIONS_MAX = 64, /* of one run */
	ACTIVE_WIRE_NAME_MAX = 255,
	ACTIVE_WIRE_ARGS_MAX = 16384,
	ACTIVE_WIRE_OUTPUT_MAX = 65536,
	ACTIVE_WIRE_TEXT_MAX = 1024,
	ACTIVE_WIRE_OBJECT_MAX = 32 << 20,
	/* The longest message of a client (a RUN with all that it may have), and of a server */
	ACTIVE_WIRE_REQUEST_MAX = 17223,
	ACTIVE_WIRE_ANSWER_MAX = 66624,
	ACTIVE_WIRE_KEY = 16,
	ACTIVE_WIRE_DATA_MAX = 1024, /* behind the head of a datagram */
};

enum active_type {
	ACTIVE_HELLO = 1,
	ACTIVE_LOAD = 2,
	ACTIVE_RUN = 3,
	ACTIVE_CANCEL = 4,
	ACTIVE_INSTALL = 5, /* a RUN without arguments; its RESULT has a struct active_wire_place */
	ACTIVE_ASK = 6,	    /* a datagram: struct active_wire_ask */
	/* Answers */
	ACTIVE_WELCOME = 0x81,
	ACTIVE_LOADED = 0x82,
	ACTIVE_RESULT = 0x83,
	ACTIVE_CANCEL_DONE = 0x84,
	ACTIVE_TOLD = 0x86, /* a datagram: struct active_wire_told */
};

enum active_code {
	ACTIVE_OK,
	ACTIVE_FUEL,	    /* or the deadline */
	ACTIVE_ADDRESS,	    /* no region there */
	ACTIVE_RIGHTS,	    /* the region does not allow it */
	ACTIVE_ALIGN,	    /* a misaligned atomic */
	ACTIVE_DEPTH,	    /* too many functions deep */
	ACTIVE_HELPER,	    /* a helper refused */
	ACTIVE_UNKNOWN,	    /* no object of this hash */
	ACTIVE_REFUSED,	    /* loader or verifier; the text says why */
	ACTIVE_BUSY,	    /* too much is queued already */
	ACTIVE_CANCELLED,   /* the client asked for it */
	ACTIVE_MALFORMED,   /* the request makes no sense */
	ACTIVE_NO_FUNCTION, /* the object has none of this name */
	ACTIVE_CODES,
};

enum {
	ACTIVE_RIGHT_READ = 1,
	ACTIVE_RIGHT_WRITE = 2,
	ACTIVE_RIGHT_ATOMIC = 4,
	ACTIVE_RIGHT_RUN = 8
};

/* Opens each message, which is one Send */
struct active_wire_head {
	__u8 magic;
	__u8 version;
	__u8 type;
	__u8 zero;
	__be32 length; /* octets of the message, this header counted */
	__be64 id;     /* the client's; the answer has the same */
} __attribute__((packed));

/* HELLO has no more than the head. Followed by the regions that the client may use */
struct active_wire_welcome {
	__be32 window; /* runs that the client may have without an answer */
	__be16 regions;
	__be16 zero;
} __attribute__((packed));

/* Followed by the name */
struct active_wire_region {
	__be64 addr; /* where programs see it; also the tagged offset of RDMA */
	__be64 size;
	__be32 stag; /* for RDMA Read, Write and atomics; 0: none */
	__be16 rights;
	__be16 name; /* octets */
} __attribute__((packed));

/* Followed by a part of the object */
struct active_wire_load {
	__u8 hash[ACTIVE_WIRE_HASH]; /* SHA-256 of the whole object */
	__be32 size;		     /* of the whole object */
	__be32 offset;		     /* of this part */
} __attribute__((packed));

/* Followed by regions, the name of the function, and the arguments */
struct active_wire_run {
	__u8 hash[ACTIVE_WIRE_HASH];
	__be64 fuel;
	__be32 deadline; /* microseconds from its arrival; 0: none */
	__be32 args;	 /* octets */
	__be32 output;	 /* octets that the client takes */
	__be16 regions;
	__be16 name; /* octets; 0: the object's first function */
} __attribute__((packed));

struct active_wire_grant {
	__be32 region; /* the number that WELCOME gave it */
	__be32 rights;
} __attribute__((packed));

/* Followed by the text and, in RESULT, by the output */
struct active_wire_answer {
	__be32 code;
	__be32 pc;
	__be64 value;
	__be64 addr;
	__be64 fuel; /* that was used */
	__be32 len;
	__be32 output; /* octets */
	__be16 rights;
	__be16 text; /* octets */
	__be32 zero;
} __attribute__((packed));

/* Where a program is that the server has put into its kernel */
struct active_wire_place {
	__u8 key[ACTIVE_WIRE_KEY];
	__be32 addr; /* IPv4 */
	__be16 port; /* UDP */
	__be16 zero;
	__be64 fuel; /* the most that a run there can have */
} __attribute__((packed));

/* A datagram: followed by the arguments, and by octets that the answer's output may need */
struct active_wire_ask {
	__u8 magic;
	__u8 version;
	__u8 type;
	__u8 zero;
	__be32 args; /* octets */
	__be64 id;
	__u8 key[ACTIVE_WIRE_KEY];
	__be64 fuel;   /* 0: as much as there is */
	__be32 output; /* octets that the client takes; those behind the head have room for them */
	__be32 zero2;
	__be64 zeros[2];
} __attribute__((packed));

/* Its answer, as long as the datagram was: followed by the output, then zeros */
struct active_wire_told {
	__u8 magic;
	__u8 version;
	__u8 type;
	__u8 zero;
	__be32 output; /* octets */
	__be64 id;
	__be32 code; /* enum active_code */
	__be32 pc;
	__be64 value;
	__be64 addr;
	__be64 fuel; /* that was used */
	__be32 len;
	__be32 rights;
	__be64 zeros;
} __attribute__((packed));

static_assert(sizeof(struct active_wire_head) == 16, "head");
static_assert(offsetof(struct active_wire_head, id) == 8, "head.id");
static_assert(sizeof(struct active_wire_welcome) == 8, "welcome");
static_assert(sizeof(struct active_wire_region) == 24, "region");
static_assert(offsetof(struct active_wire_region, name) == 22, "region.name");
static_assert(sizeof(struct active_wire_load) == 40, "load");
static_assert(offsetof(struct active_wire_load, size) == 32, "load.size");
static_assert(sizeof(struct active_wire_run) == 56, "run");
static_assert(offsetof(struct active_wire_run, fuel) == 32, "run.fuel");
static_assert(offsetof(struct active_wire_run, regions) == 52, "run.regions");
static_assert(sizeof(struct active_wire_grant) == 8, "grant");
static_assert(sizeof(struct active_wire_place) == 32, "place");
static_assert(sizeof(struct active_wire_ask) == 64, "ask");
static_assert(offsetof(struct active_wire_ask, key) == 16, "ask.key");
static_assert(offsetof(struct active_wire_ask, fuel) == 32, "ask.fuel");
static_assert(sizeof(struct active_wire_told) == 64, "told");
static_assert(offsetof(struct active_wire_told, code) == 16, "told.code");
static_assert(offsetof(struct active_wire_told, fuel) == 40, "told.fuel");
static_assert(sizeof(struct active_wire_answer) == 48, "answer");
static_assert(offsetof(struct active_wire_answer, fuel) == 24, "answer.fuel");
static_assert(offsetof(struct active_wire_answer, text) == 42, "answer.text");

#endif
