/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The extension block of the stream protocol (docs/stream-wire.md): behind the forty octets of
 * rsockets' connection data, a head and values of type and length. Big-endian. rsockets does not
 * look behind its forty octets.
 */
#ifndef WIRE_STREAM_EXT_H
#define WIRE_STREAM_EXT_H

#include <wire/rsockets.h>

#define STREAM_EXT_MAGIC "WARP"
#define STREAM_EXT_VERSION 1
#define STREAM_EXT_MAX 127 /* octets of a block with its head */

struct stream_ext_head {
	__u8 magic[4];
	__u8 version;
	__u8 reserved;
	__be16 length; /* octets of the values behind the head */
} WIRE_PACKED;
WIRE_SIZE(struct stream_ext_head, 8);
WIRE_AT(struct stream_ext_head, version, 4);
WIRE_AT(struct stream_ext_head, length, 6);

enum stream_ext_type { STREAM_EXT_FEATURES = 1, STREAM_EXT_WINDOW = 2, STREAM_EXT_DEPTH = 3 };

struct stream_ext_tlv {
	__u8 type;
	__u8 length; /* octets of the value */
} WIRE_PACKED;
WIRE_SIZE(struct stream_ext_tlv, 2);

struct stream_ext_features {
	__be32 bits; /* enum stream_feature */
} WIRE_PACKED;
WIRE_SIZE(struct stream_ext_features, 4);

/* How many octets the peer may send before the first WINDOW message */
struct stream_ext_window {
	__be64 octets;
} WIRE_PACKED;
WIRE_SIZE(struct stream_ext_window, 8);

/* Of one-sided operations; MPA's own numbers are those of rsockets */
struct stream_ext_depth {
	__be16 ird;
	__be16 ord;
} WIRE_PACKED;
WIRE_SIZE(struct stream_ext_depth, 4);
WIRE_AT(struct stream_ext_depth, ord, 2);

/* In force is what both ends say */
enum stream_feature {
	STREAM_FEATURE_CUT = 0x01,	/* takes FPDUs however TCP's segments cut them */
	STREAM_FEATURE_ABORT = 0x02,	/* knows RS_CTRL_ABORT */
	STREAM_FEATURE_INLINE = 0x04,	/* octets travel in Sends, under a window of octets */
	STREAM_FEATURE_MESSAGES = 0x08, /* user messages; needs INLINE */
	STREAM_FEATURE_ONESIDED = 0x10, /* Writes, Reads and Atomics on registered memory */
	STREAM_FEATURE_URGENT = 0x20,	/* urgent octets; needs INLINE */
	STREAM_FEATURE_HELD = 0x40,	/* says when no octets are held any more; needs INLINE */
};

/* Operations beyond rsockets', in the place of DATA and SGL; a body follows the four octets */
#define RS_OP_INLINE 1	/* the octets, as many as the value says */
#define RS_OP_MESSAGE 3 /* a part of a user message, as many octets as the value says */
#define RS_OP_WINDOW 5	/* struct stream_window */

#define STREAM_WINDOW_HELD 1 /* in the value of WINDOW: the sender holds octets, with HELD */
#define STREAM_INLINE_URGENT 0x10000000u /* in the value of INLINE: its last octet is urgent */
#define STREAM_MESSAGE_MORE 0x10000000u	 /* in the value: not the last part */
#define STREAM_MESSAGE_COST 16 /* octets of the window that a message takes beside its own */

/* Little-endian, as the messages are: how many octets the peer may have sent, ever */
struct stream_window {
	__le64 limit;
} WIRE_PACKED;
WIRE_SIZE(struct stream_window, 8);

/* What a CTRL message can say beyond rsockets' */
#define RS_CTRL_ABORT 3

#endif
