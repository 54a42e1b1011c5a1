/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The iWARP wire format: MPA (RFC 5044, 6581), DDP (RFC 5041), RDMAP (RFC 5040, 7306).
 *
 * Layout and numbers only. Everything is big-endian except the MPA CRC field, whose 32-bit value
 * is sent least significant octet first. Bit 0 of the RFC drawings is the most significant bit of
 * an octet.
 */
#ifndef WIRE_IWARP_H
#define WIRE_IWARP_H

#include <linux/types.h>

#ifdef __cplusplus
#define WIRE_ASSERT static_assert
#else
#define WIRE_ASSERT _Static_assert
#endif

#define WIRE_PACKED __attribute__((packed))
#define WIRE_SIZE(type, size) WIRE_ASSERT(sizeof(type) == (size), #type)
#define WIRE_AT(type, field, at) \
	WIRE_ASSERT(__builtin_offsetof(type, field) == (at), #type "." #field)

/* MPA start-up frames, RFC 5044 section 7.1.1 */
#define MPA_KEY_REQ "MPA ID Req Frame"
#define MPA_KEY_REP "MPA ID Rep Frame"
#define MPA_KEY_LEN 16
#define MPA_RR_LEN 20  /* the fixed part */
#define MPA_PD_MAX 512 /* private data, the enhanced octets included */
#define MPA_ENH_LEN 4  /* enhanced connection data */
#define MPA_START_MAX (MPA_RR_LEN + MPA_PD_MAX)

enum mpa_rr_flag { MPA_RR_M = 0x80, MPA_RR_C = 0x40, MPA_RR_R = 0x20, MPA_RR_S = 0x10 };

struct mpa_rr {
	char key[MPA_KEY_LEN];
	__u8 flags;
	__u8 rev;
	__be16 pd_len;
} WIRE_PACKED;
WIRE_SIZE(struct mpa_rr, 20);
WIRE_AT(struct mpa_rr, pd_len, 18);

/* RFC 6581 section 9: first private data octets when S is set */
enum mpa_enh_bit {
	MPA_ENH_A = 0x8000,	/* in ird: peer-to-peer, an RTR is wanted */
	MPA_ENH_B = 0x4000,	/* in ird: RTR may be a zero-length Send */
	MPA_ENH_C = 0x8000,	/* in ord: RTR may be a zero-length Write */
	MPA_ENH_D = 0x4000,	/* in ord: RTR may be a zero-length Read */
	MPA_ENH_DEPTH = 0x3FFF, /* the number itself; all ones: not negotiated */
};

struct mpa_enh {
	__be16 ird;
	__be16 ord;
} WIRE_PACKED;
WIRE_SIZE(struct mpa_enh, 4);

/* FPDU framing, RFC 5044 section 4 */
#define MPA_LEN_FIELD 2
#define MPA_CRC_LEN 4
#define MPA_MARKER_EVERY 512
#define MPA_MARKER_LEN 4
#define MPA_MULPDU_MIN 128
#define MPA_MULPDU_MAX 64768
#define MPA_ULPDU_MAX 65535 /* what the length field can say; siw on loopback exceeds MULPDU_MAX */

struct mpa_marker {
	__be16 reserved;
	__be16 fpduptr;
} WIRE_PACKED;
WIRE_SIZE(struct mpa_marker, 4);

/* DDP, RFC 5041 section 4 */
enum ddp_ctl { DDP_T = 0x80, DDP_L = 0x40, DDP_RSVD = 0x3C, DDP_DV = 0x03, DDP_DV1 = 0x01 };

struct ddp_tagged {
	__u8 ctl;
	__u8 rsvdulp;
	__be32 stag;
	__be64 to;
} WIRE_PACKED;
WIRE_SIZE(struct ddp_tagged, 14);
WIRE_AT(struct ddp_tagged, to, 6);

struct ddp_untagged {
	__u8 ctl;
	__u8 rsvdulp;
	__be32 rsvdulp32; /* RDMAP: Invalidate STag */
	__be32 qn;
	__be32 msn;
	__be32 mo;
} WIRE_PACKED;
WIRE_SIZE(struct ddp_untagged, 18);
WIRE_AT(struct ddp_untagged, qn, 6);
WIRE_AT(struct ddp_untagged, mo, 14);

#define DDP_TAGGED_LEN 14
#define DDP_UNTAGGED_LEN 18
#define DDP_QUEUES 4

/* RDMAP, RFC 5040 section 4, RFC 7306 */
enum rdmap_ctl { RDMAP_RV = 0xC0, RDMAP_RV1 = 0x40, RDMAP_RSV = 0x30, RDMAP_OP = 0x0F };

enum rdmap_opcode {
	RDMAP_WRITE = 0x0,
	RDMAP_READ_REQ = 0x1,
	RDMAP_READ_RESP = 0x2,
	RDMAP_SEND = 0x3,
	RDMAP_SEND_INV = 0x4,
	RDMAP_SEND_SE = 0x5,
	RDMAP_SEND_SE_INV = 0x6,
	RDMAP_TERMINATE = 0x7,
	RDMAP_IMM = 0x8,
	RDMAP_IMM_SE = 0x9,
	RDMAP_ATOMIC_REQ = 0xA,
	RDMAP_ATOMIC_RESP = 0xB,
	RDMAP_OPCODES = 0xC,
};

enum rdmap_qn { RDMAP_QN_SEND = 0, RDMAP_QN_READ = 1, RDMAP_QN_TERM = 2, RDMAP_QN_ATOMIC = 3 };

struct rdmap_read_req {
	__be32 sink_stag;
	__be64 sink_to;
	__be32 size;
	__be32 src_stag;
	__be64 src_to;
} WIRE_PACKED;
WIRE_SIZE(struct rdmap_read_req, 28);
WIRE_AT(struct rdmap_read_req, src_to, 20);

#define RDMAP_IMM_LEN 8

enum rdmap_aop { RDMAP_FETCH_ADD = 0, RDMAP_CMP_SWAP = 2, RDMAP_AOP_MASK = 0xF };

struct rdmap_atomic_req {
	__be32 aopcode; /* low four bits */
	__be32 req_id;
	__be32 stag;
	__be64 to;
	__be64 data; /* add or swap */
	__be64 mask;
	__be64 compare;
	__be64 compare_mask;
} WIRE_PACKED;
WIRE_SIZE(struct rdmap_atomic_req, 52);
WIRE_AT(struct rdmap_atomic_req, data, 20);

struct rdmap_atomic_resp {
	__be32 req_id;
	__be64 value; /* as it was before */
} WIRE_PACKED;
WIRE_SIZE(struct rdmap_atomic_resp, 12);

/* Terminate, RFC 5040 section 4.8: the control word, then what hdrct announces */
enum rdmap_term_hdrct { RDMAP_TERM_M = 0x80, RDMAP_TERM_D = 0x40, RDMAP_TERM_R = 0x20 };

struct rdmap_term {
	__u8 layer_etype;
	__u8 code;
	__u8 hdrct;
	__u8 reserved;
} WIRE_PACKED;
WIRE_SIZE(struct rdmap_term, 4);

#define RDMAP_HDR_MAX 52 /* longest RDMAP header: Terminate with all, Atomic Request */
#define IWARP_HDR_MAX (DDP_UNTAGGED_LEN + RDMAP_HDR_MAX)

#endif
