/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MPA: marker PDU aligned framing over a stream (RFC 5044, RFC 6581).
 *
 * Nothing here does I/O, allocates or keeps a pointer: octets and buffers are arguments of
 * each call, and struct mpa_conn is plain data that may live in memory shared by processes.
 * The caller serialises: the tx and the rx members are touched by their own direction only,
 * the others by start-up. State and fault are receiving's; sending looks at state through
 * mpa_conn_may_send().
 */
#ifndef MPA_MPA_H
#define MPA_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include <wire/iwarp.h>
#include <wire/iwarp_fault.h>

#define MPA_DEPTH_ULP MPA_ENH_DEPTH /* an IRD or ORD that is left to the ULP */

enum mpa_role { MPA_INITIATOR, MPA_RESPONDER };

enum mpa_state {
	MPA_START,     /* Request not yet sent or not yet received */
	MPA_REQUESTED, /* initiator: waits for the Reply; responder: owes it */
	MPA_GATED,     /* responder: may not send before the first FPDU has come */
	MPA_OPEN,      /* full operation */
	MPA_REJECTED,  /* Reply with R */
	MPA_FAILED,    /* conn->fault says why */
};

enum mpa_flag {
	MPA_F_CRC = 0x01,	 /* both directions */
	MPA_F_TX_MARKERS = 0x02, /* the peer asked for them */
	MPA_F_RX_MARKERS = 0x04, /* we asked for them */
	MPA_F_ENHANCED = 0x08,	 /* RFC 6581 data in both frames */
	MPA_F_P2P = 0x10,	 /* A agreed: the first FPDU is the RTR */
};

/* Ready-to-receive forms, as a set */
enum mpa_rtr { MPA_RTR_SEND = 0x1, MPA_RTR_WRITE = 0x2, MPA_RTR_READ = 0x4 };

/* What this end wants; the same for both roles */
struct mpa_config {
	__u8 rev;  /* 1 or 2, the highest to speak */
	__u8 want; /* MPA_F_CRC, MPA_F_RX_MARKERS, MPA_F_ENHANCED, MPA_F_P2P */
	__u8 rtr;  /* RTR forms offered (initiator) or supported (responder) */
	__u16 ird; /* inbound and outbound read depth, up to 0x3FFE, or MPA_DEPTH_ULP */
	__u16 ord;
};

struct mpa_conn {
	__u8 role;
	__u8 state;
	__u8 flags; /* agreed */
	__u8 rev;
	__u8 rtr; /* the form agreed; 0 without P2P */
	__u8 pad[3];
	struct mpa_config config;
	__u16 ird, ord;		  /* ours as negotiated */
	__u16 peer_ird, peer_ord; /* as the peer's frame had them */
	__u16 emss, mulpdu;
	__u16 tx_phase, rx_phase; /* octets since the last marker position, 0..511 */
	__u32 fault;		  /* enum iwarp_fault of receiving or start-up */
	__u64 tx_fpdus, rx_fpdus;
	__u64 tx_octets, rx_octets; /* FPDU octets, markers included */
};

/* A start-up frame taken apart; pd points into the octets given */
struct mpa_startup {
	__u8 flags; /* enum mpa_rr_flag, the reserved bits cleared */
	__u8 rev;
	__u8 rtr; /* with p2p: forms set */
	bool p2p;
	__u16 ird, ord; /* MPA_DEPTH_ULP when the frame had no enhanced data */
	__u16 pd_len;	/* the ULP's private data alone */
	const __u8 *pd;
};

void mpa_conn_init(struct mpa_conn *c, enum mpa_role role, const struct mpa_config *config);

/*
 * May an FPDU be sent now? (A Terminate may also leave from MPA_FAILED after both frames
 * were exchanged.)
 */
static inline bool mpa_conn_may_send(const struct mpa_conn *c)
{
	/* Pairs with conn_set_state() in mpa_rx.c: receiving opens the gate for sending. */
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == MPA_OPEN;
}

/*
 * Start-up frames. The put calls write one whole frame, which is to be handed to TCP in one
 * piece, into @out (room for MPA_START_MAX) and its length into *@len. Private data: 512
 * octets, 508 with enhanced data, else -EMSGSIZE.
 *
 * The get calls look at the @n octets at @p. 0: *@used octets were the frame. -EAGAIN:
 * *@used is how many octets the frame needs in all, as far as known: read no more than
 * that. -EPROTO: c->fault says what is wrong, the connection is to be closed (MPA_E_IRD and
 * MPA_E_RTR: after a Terminate). -ECONNREFUSED (reply only): rejected, *@in is valid. A
 * wrong octet is reported as soon as it is there, not when the frame is complete.
 *
 * A responder may change c->config between the Request and its answer. A call out of turn
 * is -EINVAL.
 */
int mpa_start_request_put(struct mpa_conn *c, const void *pd, size_t pd_len, __u8 *out,
			  size_t *len);
int mpa_start_request_get(struct mpa_conn *c, const __u8 *p, size_t n, struct mpa_startup *in,
			  size_t *used);
int mpa_start_reply_put(struct mpa_conn *c, const void *pd, size_t pd_len, __u8 *out, size_t *len);
int mpa_start_reject_put(struct mpa_conn *c, const void *pd, size_t pd_len, __u8 *out, size_t *len);
int mpa_start_reply_get(struct mpa_conn *c, const __u8 *p, size_t n, struct mpa_startup *in,
			size_t *used);

/* RFC 5044 section 4.5; the result is within MPA_MULPDU_MIN..MAX */
__u16 mpa_mulpdu(unsigned int emss, bool markers);
/* Of an FPDU without markers */
static inline __u32 mpa_fpdu_octets(__u32 ulpdu)
{
	return ((MPA_LEN_FIELD + ulpdu + 3) & ~3u) + MPA_CRC_LEN;
}

/* To be called when start-up is done and whenever the effective MSS has changed */
void mpa_conn_set_emss(struct mpa_conn *c, unsigned int emss);

/*
 * Octets on their way out: iovec entries that point at scratch (headers, markers, trailers)
 * and at the caller's payload. Both arrays belong to the caller and stay until the octets
 * have left.
 */
struct mpa_txv {
	struct iovec *iov;
	__u8 *scratch;
	__u32 niov, iov_cap;
	__u32 used, scratch_cap;
	__u64 octets; /* sum of iov */
};

/* What one FPDU with @npl payload pieces and @ulpdu octets can need of a txv at most */
#define MPA_TXV_MARKERS(ulpdu) ((ulpdu) / 508 + 3)
#define MPA_TXV_IOV(npl, ulpdu) ((npl) + 4 + 2 * MPA_TXV_MARKERS(ulpdu))
#define MPA_TXV_SCRATCH(ulpdu) (IWARP_HDR_MAX + 16 + 4 * MPA_TXV_MARKERS(ulpdu))

/*
 * Appends one FPDU: @hdr (copied) and the @npl pieces at @pl (referred to), together one
 * ULPDU of at most MPA_MULPDU_MAX. -ENOBUFS: no room in @v, nothing has changed. -EMSGSIZE:
 * ULPDU too long.
 */
int mpa_tx_fpdu(struct mpa_conn *c, struct mpa_txv *v, const void *hdr, size_t hdr_len,
		const struct iovec *pl, unsigned int npl);

/*
 * One FPDU by itself, without markers: what goes before its payload and behind it. Nothing of the
 * connection changes before it is counted, so one that does not leave need not be taken back.
 */
#define MPA_SINGLE_HEAD (MPA_LEN_FIELD + IWARP_HDR_MAX)
#define MPA_SINGLE_TAIL (2 * MPA_CRC_LEN)

struct mpa_single {
	__u8 head[MPA_SINGLE_HEAD]; /* the layers above write behind the length */
	__u8 tail[MPA_SINGLE_TAIL];
	__u32 head_len, tail_len;
	__u32 octets; /* with the payload */
};

/*
 * @hdr_len octets of header stand in @f; @pl: @npl pieces, @len octets. False: there are markers,
 * or it is too long for one FPDU
 */
bool mpa_tx_single(const struct mpa_conn *c, struct mpa_single *f, __u32 hdr_len,
		   const struct iovec *pl, unsigned int npl, __u32 len);
/* It has left, at least in part */
void mpa_tx_single_count(struct mpa_conn *c, const struct mpa_single *f);
/* The last one that was counted, of @octets, has not left */
void mpa_tx_single_strike(struct mpa_conn *c, __u32 octets);

struct mpa_fpdu {
	__u8 *ulpdu;
	__u32 len;
	__u32 used; /* octets of the stream that it took; with -EAGAIN: octets needed in all */
};

/*
 * Takes the first FPDU of the @n octets at @p, which are the stream from where the last one
 * ended. Nothing is handed up before its CRC is good. Markers are squeezed out in place, so
 * @p must be writable and holds rubbish for the taken part afterwards, except for the
 * ULPDU. 0, -EAGAIN, or -EPROTO with c->fault; after that every call fails alike.
 */
int mpa_rx_fpdu(struct mpa_conn *c, __u8 *p, size_t n, struct mpa_fpdu *out);

/*
 * The stream ended: 0 at an FPDU boundary (@left octets unparsed == 0), else -ECONNRESET
 * and c->fault is MPA_E_CLOSED. Before the end of start-up there is no such boundary; a
 * fault that came first stays.
 */
int mpa_rx_end(struct mpa_conn *c, size_t left);

#endif
