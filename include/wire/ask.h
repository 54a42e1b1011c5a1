/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The question whether there is a listener for DDP, and its answer: one datagram of UDP each
 * (docs/stream-wire.md). Big-endian. Both have the same length, so that an answer that goes
 * elsewhere, by a forged source, is no more than what was sent for it.
 */
#ifndef WIRE_ASK_H
#define WIRE_ASK_H

#include <wire/iwarp.h>

#define ASK_MAGIC "WASK"
#define ASK_VERSION 1
#define ASK_LEN 16

enum ask_kind {
	ASK_QUESTION = 1,
	ASK_YES = 2,
	ASK_NO = 3,
};

struct ask_message {
	__u8 magic[4];
	__u8 version;
	__u8 kind;    /* enum ask_kind */
	__be16 port;  /* of TCP; the address is the one that the question was sent to */
	__be64 nonce; /* given back */
} WIRE_PACKED;
WIRE_SIZE(struct ask_message, ASK_LEN);
WIRE_AT(struct ask_message, version, 4);
WIRE_AT(struct ask_message, kind, 5);
WIRE_AT(struct ask_message, port, 6);
WIRE_AT(struct ask_message, nonce, 8);

#endif
