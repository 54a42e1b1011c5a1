/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an RDMAP stream is between two calls: plain data of fixed layout, which may live in
 * memory that processes share.
 *
 * Two directions may run at once under a lock each (tx, rx). What both touch are the ring
 * indices, each written by one side only (named below), and state and term, written by whoever
 * finds the first fault.
 */
#ifndef RDMAP_STATE_H
#define RDMAP_STATE_H

#include "ddp/ddp.h"

enum rdmap_state {
	RDMAP_OPEN,
	RDMAP_FAULTED,	 /* we found a fault; stream->term is still to be sent */
	RDMAP_TERM_SENT, /* nothing more may be sent or is taken in */
	RDMAP_TERM_RCVD, /* stream->peer_term says what the peer found */
};

/*
 * A Terminate, ours or the peer's. hdr: DDP header (14 or 18), then the 28 octets of a Read
 * Request when R is set
 */
struct rdmap_term_info {
	__u32 fault; /* enum iwarp_fault, also values that it does not name */
	__u16 seg_len;
	__u8 hdrct; /* enum rdmap_term_hdrct */
	__u8 ddp_len;
	__u8 hdr[DDP_UNTAGGED_LEN + sizeof(struct rdmap_read_req)];
	__u8 swapped; /* came in siw's bit-field form */
	__u8 pad;
};

/* The peer's Read and Atomic Requests that wait for their answer: IRD of them at most */
struct rdmap_inbound {
	__u8 atomic;
	__u8 aop;
	__u8 executed; /* the atomic has been done, value is what it found */
	__u8 rsvdulp;  /* as received, for a Terminate */
	__u8 ctl;
	__u8 pad[3];
	__u32 msn;
	__u32 src_stag;
	__u64 src_to;
	union {
		struct {
			__u64 sink_to;
			__u32 sink_stag;
			__u32 size;
		} read;
		struct {
			__u64 data, mask, compare, compare_mask;
			__u64 value;
			__u32 req_id;
		} op;
	};
};

/* Our Reads and Atomics that wait for theirs: ORD of them at most */
struct rdmap_outbound {
	__u64 cookie;
	__u64 sink_to;
	__u32 sink_stag;
	__u32 size;
	__u32 got; /* Read: octets placed */
	__u32 req_id;
	__u8 atomic;
	__u8 pad[7];
};

struct rdmap_stream {
	struct ddp_stream ddp;
	__u8 state;
	__u8 rtr;   /* enum rdmap_rtr_state; an initiator's is tx's, a responder's is rx's */
	__u8 began; /* rx: a message has come */
	__u8 pad;
	__u16 in_cap, out_cap; /* entries of the two arrays; the limits are mpa.ird and mpa.ord */
	/* Ring indices count as rdmap/ring.h says */
	__u32 in_head;	/* tx: requests answered and gone for good */
	__u32 in_next;	/* tx: the one to be answered; in_head follows at a commit */
	__u32 in_sent;	/* tx: octets of it that were built */
	__u32 in_tail;	/* rx */
	__u32 out_head; /* rx */
	__u32 out_tail; /* tx */
	__u32 rx_empty; /* rx: segments that brought nothing, ever */
	struct rdmap_term_info term, peer_term;
};

/* By who may not know whether the other direction is just setting it */
static inline enum rdmap_state rdmap_state_of(const struct rdmap_stream *s)
{
	return (enum rdmap_state)__atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
}

enum rdmap_rtr_state { RDMAP_RTR_NONE, RDMAP_RTR_TO_SEND, RDMAP_RTR_TO_COME };

/*
 * The arrays, which belong to the caller, and how long they are: at least in_cap and out_cap, which
 * are not believed
 */
struct rdmap_slots {
	struct rdmap_inbound *in;
	struct rdmap_outbound *out;
	__u16 ins, outs;
};

#endif
