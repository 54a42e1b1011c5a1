/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work requests and their completions; include <warp/rdma.h>. See warp_post(3) and warp_cq(3).
 */
#ifndef WARP_RDMA_WR_H
#define WARP_RDMA_WR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warp_qp;

/* --- work requests ------------------------------------------------------------------------ */

struct warp_sge {
	void *addr;
	uint32_t length;
	uint32_t stag; /* of a region of the pd that holds it; unused with WARP_SEND_INLINE */
};

enum warp_wr_opcode {
	WARP_WR_SEND,
	WARP_WR_SEND_INVALIDATE, /* and the peer's inv_stag becomes invalid */
	WARP_WR_WRITE,
	WARP_WR_READ,
	WARP_WR_IMMEDIATE, /* eight octets that consume a receive */
	WARP_WR_FETCH_ADD, /* 64 bit, RFC 7306 section 5.1.1 */
	WARP_WR_CMP_SWAP,
	WARP_WR_LOCAL_INVALIDATE,
};

enum warp_send_flag {
	WARP_SEND_SIGNALED = 0x1,  /* leave a completion also when it succeeds */
	WARP_SEND_SOLICITED = 0x2, /* Sends, Immediate: raise the peer's solicited event */
	WARP_SEND_FENCE = 0x4,	   /* begin after all earlier Reads and Atomics are complete */
	WARP_SEND_INLINE = 0x8,	   /* Sends, Write: octets are copied by the call */
};

/* Members that an opcode does not use are ignored, except for flags and num_sge */
struct warp_send_wr {
	uint64_t wr_id;
	enum warp_wr_opcode opcode;
	unsigned int flags; /* enum warp_send_flag */
	/*
	 * Sends, Write: the source in any number of pieces, with none a message of zero octets.
	 * Read: the sink, one piece or none. Atomics: the sink, one piece of 8 octets. Others:
	 * none. The array may go when the call returns, the octets when the work request is
	 * complete, with WARP_SEND_INLINE at once.
	 */
	const struct warp_sge *sg;
	unsigned int num_sge;
	uint32_t inv_stag;    /* SEND_INVALIDATE: the peer's; LOCAL_INVALIDATE: ours */
	uint32_t remote_stag; /* WRITE, READ, atomics */
	uint64_t remote_to;   /* atomics: a multiple of 8, or the peer ends the connection */
	uint64_t immediate;   /* travels as a big-endian number */
	uint64_t swap_add;    /* FETCH_ADD: addend; CMP_SWAP: new value */
	/*
	 * FETCH_ADD: a 1 is the top bit of a field, 0: one field of 64 bits. CMP_SWAP: bits to
	 * swap
	 */
	uint64_t mask;
	uint64_t compare, compare_mask; /* CMP_SWAP */
};

struct warp_recv_wr {
	uint64_t wr_id;
	const struct warp_sge *sg; /* the array may go when the call returns */
	unsigned int num_sge;
};

/* --- completions -------------------------------------------------------------------------- */

enum warp_wc_status {
	WARP_WC_SUCCESS,
	WARP_WC_FLUSHED,      /* the connection ended before */
	WARP_WC_LOCAL_LENGTH, /* a receive was too short for its message */
	WARP_WC_LOCAL_PROTECTION,
	WARP_WC_REMOTE_ACCESS, /* the peer's Terminate or ours said so */
	WARP_WC_REMOTE_OPERATION,
	WARP_WC_TRANSPORT, /* the connection was lost */
	WARP_WC_GENERAL,
};

enum warp_wc_flag {
	WARP_WC_WITH_IMMEDIATE = 0x1,
	WARP_WC_WITH_INVALIDATE = 0x2,
	WARP_WC_SOLICITED = 0x4,
};

enum warp_wc_opcode {
	WARP_WC_SEND, /* also Immediate */
	WARP_WC_WRITE,
	WARP_WC_READ,
	WARP_WC_ATOMIC,
	WARP_WC_LOCAL_INVALIDATE,
	WARP_WC_RECV,
};

struct warp_wc {
	uint64_t wr_id;
	struct warp_qp *qp;
	enum warp_wc_status status;
	enum warp_wc_opcode opcode; /* valid in every state */
	/* The rest is for status SUCCESS */
	unsigned int flags; /* enum warp_wc_flag, of a receive */
	uint32_t byte_len;  /* of a receive, Read or atomic; Immediate: 0 */
	uint32_t inv_stag;  /* WITH_INVALIDATE: the one of ours that is invalid now */
	uint64_t immediate; /* WITH_IMMEDIATE */
};

/* "connection ended before", a text for any value; never NULL */
const char *warp_wc_status_text(enum warp_wc_status status);

#ifdef __cplusplus
}
#endif

#endif
