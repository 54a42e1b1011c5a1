/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream protocol of rsockets in its iWARP form (docs/stream-wire.md): forty octets of private
 * data, then RDMA Writes into the peer's ring and four-octet Sends that say what was written.
 *
 * The private data is big-endian. The messages, and the SGEs written into a target SGL, are in the
 * byte order that bit NET announces: little-endian without it.
 */
#ifndef WIRE_RSOCKETS_H
#define WIRE_RSOCKETS_H

#include <wire/iwarp.h>

#define RS_VERSION 1
#define RS_CONN_DATA_LEN 40
#define RS_SGL_ENTRIES 2
#define RS_DEF_CREDITS 384

enum rs_conn_flag { RS_CONN_NET = 0x01, RS_CONN_IOMAP = 0x02 };

struct rs_buf_desc {
	__be64 addr;
	__be32 key;
	__be32 length;
} WIRE_PACKED;
WIRE_SIZE(struct rs_buf_desc, 16);

struct rs_conn_data {
	__u8 version;
	__u8 flags;
	__be16 credits;
	__u8 reserved[3];
	__u8 target_iomap_size;
	struct rs_buf_desc target_sgl; /* length: entries */
	struct rs_buf_desc data_buf;   /* length: octets */
} WIRE_PACKED;
WIRE_SIZE(struct rs_conn_data, RS_CONN_DATA_LEN);
WIRE_AT(struct rs_conn_data, target_sgl, 8);
WIRE_AT(struct rs_conn_data, data_buf, 24);

/* What the peer writes into a target SGL entry */
struct rs_sge {
	__le64 addr;
	__le32 key;
	__le32 length;
} WIRE_PACKED;
WIRE_SIZE(struct rs_sge, 16);
/* Octets of a target SGL that has no more of them; slots lie behind it */
#define RS_SGL_LEN (RS_SGL_ENTRIES * sizeof(struct rs_sge))

/* What the peer writes into a slot behind the target SGL: memory of its own that we may write to */
struct rs_iomap {
	__le64 offset;
	struct rs_sge sge;
} WIRE_PACKED;
WIRE_SIZE(struct rs_iomap, 24);

/* The four octets of a Send: operation << 29 | data */
#define RS_MSG_LEN 4
#define RS_MSG_DATA_MAX 0x1FFFFFFFu

enum rs_op { RS_OP_DATA = 0, RS_OP_WRITE = 2, RS_OP_SGL = 4, RS_OP_IOMAP_SGL = 6, RS_OP_CTRL = 7 };
enum rs_ctrl { RS_CTRL_DISCONNECT = 0, RS_CTRL_KEEPALIVE = 1, RS_CTRL_SHUTDOWN = 2 };

static inline __u32 rs_msg(enum rs_op op, __u32 data)
{
	return (__u32)op << 29 | data;
}

static inline enum rs_op rs_msg_op(__u32 msg)
{
	return (enum rs_op)(msg >> 29);
}

static inline __u32 rs_msg_data(__u32 msg)
{
	return msg & RS_MSG_DATA_MAX;
}

#endif
