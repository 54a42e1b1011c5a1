/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMAP: RDMA over DDP streams (RFC 5040, RFC 7306). Turns work requests into messages, and
 * messages received into placements and events. Pure, as mpa.h and ddp.h. Sinks are arguments
 * of each call.
 */
#ifndef RDMAP_RDMAP_H
#define RDMAP_RDMAP_H

#include "base/bits.h"
#include "ddp/stag.h"
#include "rdmap/ring.h"
#include "rdmap/state.h"

#define RDMAP_SLOTS(in, out)                                       \
	{                                                          \
		in, out, base_array_size(in), base_array_size(out) \
	}

#define RDMAP_COOKIE_NONE (~0ull) /* completions with it are not reported: the RTR */

/*
 * Set-up before start-up. @in_cap >= config->ird and @out_cap >= config->ord, unless those are
 * MPA_DEPTH_ULP; and at least 1 where a Read may be the RTR. Where rx and tx run at once, @in_cap
 * is to be twice the IRD: an answer may have left, and brought the next request about, before
 * rdmap_tx_commit() has given its slot back.
 */
void rdmap_stream_init(struct rdmap_stream *s, enum mpa_role role, const struct mpa_config *config,
		       __u16 in_cap, __u16 out_cap);
/*
 * MPA start-up is over (state GATED or OPEN): note the depths and the RTR that is due.
 * MPA_E_IRD when they do not fit.
 */
enum iwarp_fault rdmap_stream_started(struct rdmap_stream *s);

/* --- sending ----------------------------------------------------------------------------- */

struct rdmap_wr {
	__u8 op;    /* WRITE READ_REQ SEND SEND_INV SEND_SE SEND_SE_INV IMM IMM_SE ATOMIC_REQ */
	__u8 aop;   /* enum rdmap_aop */
	bool fence; /* wait until no Read or Atomic of ours is outstanding */
	unsigned int nsg;
	const struct iovec *sg; /* Write and Send: what to send */
	__u32 len;		/* octets of sg; READ_REQ: octets wanted; ATOMIC_REQ: 8 */
	__u32 inv_stag;
	__u32 stag; /* remote: Write, Read, Atomic */
	__u64 to;
	__u32 sink_stag; /* local: Read */
	__u64 sink_to;
	__u64 imm; /* the eight octets as a big-endian number */
	__u64 data, mask, compare, compare_mask;
	__u64 cookie; /* Read and Atomic: comes back with their completion */
};

/*
 * Appends the segment of @wr that begins at payload octet @off; returns as ddp_tx_segment().
 * -EAGAIN: the fence, ORD, the gate of an MPA responder, an RTR that must go first or a
 * Response that is half built holds it back (only at @off 0). -EPIPE: the stream takes nothing
 * more. -EINVAL: not a work request, or one that needs a depth where ORD is 0. Between two
 * segments of a message the caller sends no other but a Terminate.
 */
ssize_t rdmap_tx_wr(struct rdmap_stream *s, const struct rdmap_slots *slots, struct mpa_txv *v,
		    const struct rdmap_wr *wr, __u32 off, bool *last);

/*
 * A Send of the @len octets of @sg in one FPDU by itself (mpa_tx_single()). False: something goes
 * before it, or it is not to be sent so: rdmap_tx_wr() says what
 */
bool rdmap_tx_single(const struct rdmap_stream *s, struct mpa_single *f, const struct iovec *sg,
		     unsigned int nsg, __u32 len);
void rdmap_tx_single_count(struct rdmap_stream *s, const struct mpa_single *f);
/* The last one that was counted has not left (mpa_tx_single_strike()) */
void rdmap_tx_single_strike(struct rdmap_stream *s, __u32 octets);

/* The agreed RTR, if one is due: 1 appended, 0 none, -ENOBUFS */
int rdmap_tx_rtr(struct rdmap_stream *s, const struct rdmap_slots *slots, struct mpa_txv *v);

/* Memory that the peer may read or change */
struct rdmap_source {
	/* *@addr stays valid until the octets have left (the caller's lock) */
	enum ddp_stag_error (*get)(void *ctx, __u32 stag, __u64 to, __u64 len, unsigned int access,
				   __u8 **addr);
	/*
	 * The peer reads when it likes, so the program may be writing to the memory: then the
	 * octets that leave are not those of the CRC, which ends the connection. Returns a copy of
	 * the @len octets at @addr, one segment, that stays until they have left; NULL: no room
	 * now. The member may be NULL too, where there is no CRC or nobody writes.
	 */
	const __u8 *(*hold)(void *ctx, const __u8 *addr, size_t len);
	void *ctx;
};

/*
 * The next segment of the answer to the oldest request: 1 appended, 0 nothing owed, -ENOBUFS: no
 * room, or an Atomic must wait for a commit of the answers before it, -EPROTO: FAULTED now
 */
int rdmap_tx_response(struct rdmap_stream *s, const struct rdmap_slots *slots, struct mpa_txv *v,
		      const struct rdmap_source *src);

/*
 * The Terminate of a FAULTED stream: 1 appended (state TERM_SENT), 0 not possible (then only
 * close), -ENOBUFS
 */
int rdmap_tx_terminate(struct rdmap_stream *s, struct mpa_txv *v);

/*
 * A segment counts when the transport has taken it. Take a mark after each segment; if the
 * transport took less, rewind to the mark of the last segment that it took at least in part;
 * then commit, which frees the requests answered.
 */
struct rdmap_tx_mark {
	__u64 fpdus, octets;
	__u32 msn[DDP_QUEUES];
	__u32 in_next, in_sent, out_tail;
	__u16 phase;
	__u8 rtr, state;
};

void rdmap_tx_mark(const struct rdmap_stream *s, struct rdmap_tx_mark *m);
void rdmap_tx_rewind(struct rdmap_stream *s, const struct rdmap_tx_mark *m);
void rdmap_tx_commit(struct rdmap_stream *s);

static inline __u32 rdmap_outstanding(const struct rdmap_stream *s)
{
	/* Pairs with request_done() in rdmap_rx.c */
	return rdmap_ring_count(__atomic_load_n(&s->out_head, __ATOMIC_ACQUIRE), s->out_tail,
				s->out_cap);
}

/* --- receiving --------------------------------------------------------------------------- */

struct rdmap_recv {
	__u8 op; /* SEND.. IMM_SE */
	bool solicited;
	bool invalidated;
	__u32 inv_stag;
	__u64 len; /* Immediate: 8 */
	__u64 imm;
};

struct rdmap_sink {
	/*
	 * Tagged octets of a Write (DDP_REMOTE_WRITE) or of our Read (DDP_LOCAL_WRITE): check
	 * and place, or say why not. Never called for zero octets.
	 */
	enum iwarp_fault (*place)(void *ctx, const struct ddp_seg *seg, unsigned int access);
	/*
	 * QN 0: how many receives are posted; octets of the one for the message at hand into
	 * *@len
	 */
	unsigned int (*recv_ready)(void *ctx, __u64 *len);
	/* The segment's octets belong at seg->mo of that receive; they are known to fit */
	void (*recv_place)(void *ctx, const struct ddp_seg *seg);
	void (*recv_done)(void *ctx, const struct rdmap_recv *recv);
	enum ddp_stag_error (*invalidate)(void *ctx, __u32 stag);
	/* A Read or Atomic of ours is complete; @value: what the atomic found */
	void (*done)(void *ctx, __u64 cookie, __u64 value);
	/* Requests or room for work requests came up: the tx side has something to do */
	void (*kick)(void *ctx);
	void *ctx;
};

/*
 * One ULPDU. IWARP_OK, or the fault: then the state is FAULTED with term filled in. A received
 * Terminate makes it TERM_RCVD. In any state but OPEN the ULPDU is dropped.
 */
enum iwarp_fault rdmap_rx(struct rdmap_stream *s, const struct rdmap_slots *slots,
			  const __u8 *ulpdu, size_t len, const struct rdmap_sink *sink);

/* A fault found outside rdmap_rx(): by MPA, or locally. The first one stays. */
void rdmap_fault(struct rdmap_stream *s, enum iwarp_fault f);

/* "DDP, untagged buffer: no buffer available": a text for any fault number */
const char *rdmap_fault_text(__u32 fault);

#endif
