/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream from start-up on, and how its tx side is taken back when the transport takes less
 * than was built.
 *
 * Invariant of the rings (* = moved by): in_head* tx, in_next* tx, in_tail* rx, in this order;
 * out_head* rx, out_tail* tx. How deep they may be filled is negotiated (RFC 6581 section 9.1);
 * that they are never filled beyond their slots does not depend on it.
 */
#include "base/bits.h"
#include "rdmap/rdmap.h"

void rdmap_stream_init(struct rdmap_stream *s, enum mpa_role role, const struct mpa_config *config,
		       __u16 in_cap, __u16 out_cap)
{
	memset(s, 0, sizeof(*s));
	ddp_stream_init(&s->ddp, role, config);
	s->in_cap = in_cap;
	s->out_cap = out_cap;
}

static __u16 depth(__u16 agreed, __u16 cap)
{
	return agreed == MPA_DEPTH_ULP ? cap : base_min(agreed, cap);
}

/* The peer keeps to the smaller one of what it announced for itself and what we promised */
static bool inbound_fits(const struct rdmap_stream *s)
{
	const struct mpa_conn *c = &s->ddp.mpa;
	__u16 most = base_min(c->ird, c->peer_ord);

	return most <= s->in_cap || c->ird == MPA_DEPTH_ULP;
}

enum iwarp_fault rdmap_stream_started(struct rdmap_stream *s)
{
	struct mpa_conn *c = &s->ddp.mpa;
	bool p2p = c->flags & MPA_F_P2P, fits = inbound_fits(s);

	c->ird = depth(c->ird, s->in_cap);
	c->ord = depth(c->ord, s->out_cap);
	if (c->role == MPA_RESPONDER) {
		s->rtr = p2p ? RDMAP_RTR_TO_COME : RDMAP_RTR_NONE;
	} else {
		s->rtr = p2p ? RDMAP_RTR_TO_SEND : RDMAP_RTR_NONE;
		fits = fits && !(p2p && c->rtr == MPA_RTR_READ && !c->ord);
	}
	if (fits)
		return IWARP_OK;
	rdmap_fault(s, MPA_E_IRD);
	return MPA_E_IRD;
}

void rdmap_tx_mark(const struct rdmap_stream *s, struct rdmap_tx_mark *m)
{
	m->fpdus = s->ddp.mpa.tx_fpdus;
	m->octets = s->ddp.mpa.tx_octets;
	m->phase = s->ddp.mpa.tx_phase;
	memcpy(m->msn, s->ddp.tx_msn, sizeof(m->msn));
	m->in_next = s->in_next;
	m->in_sent = s->in_sent;
	m->out_tail = s->out_tail;
	/* Whoever faults the stream may do so now: a mark is good for either state */
	m->rtr = __atomic_load_n(&s->rtr, __ATOMIC_RELAXED);
	m->state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);
}

/*
 * Takes our requests since the mark back. A peer that has answered one of them, which it has
 * not seen, ends the stream, for its answer has used the slot up.
 */
static void rewind_requests(struct rdmap_stream *s, __u32 out_tail)
{
	/* Pairs with request_done() in rdmap_rx.c */
	__u32 head = __atomic_load_n(&s->out_head, __ATOMIC_ACQUIRE);

	if (rdmap_ring_count(head, out_tail, s->out_cap) > s->out_cap)
		rdmap_fault(s, RDMAP_E_OPCODE);
	else
		/* Pairs with oldest() in rdmap_rx.c */
		__atomic_store_n(&s->out_tail, out_tail, __ATOMIC_RELEASE);
}

void rdmap_tx_rewind(struct rdmap_stream *s, const struct rdmap_tx_mark *m)
{
	s->ddp.mpa.tx_fpdus = m->fpdus;
	s->ddp.mpa.tx_octets = m->octets;
	s->ddp.mpa.tx_phase = m->phase;
	memcpy(s->ddp.tx_msn, m->msn, sizeof(m->msn));
	/* Only counted by rx, which must not reuse a slot before in_head passes it */
	__atomic_store_n(&s->in_next, m->in_next, __ATOMIC_RELAXED);
	s->in_sent = m->in_sent;
	rewind_requests(s, m->out_tail);
	/* An initiator's rtr is tx's, a responder's is rx's and stays as it is */
	if (m->rtr == RDMAP_RTR_TO_SEND)
		__atomic_store_n(&s->rtr, RDMAP_RTR_TO_SEND, __ATOMIC_RELAXED);
	/* A fault stays, but its Terminate is due again */
	if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) == RDMAP_TERM_SENT &&
	    m->state != RDMAP_TERM_SENT)
		__atomic_store_n(&s->state, RDMAP_FAULTED, __ATOMIC_RELEASE);
}

void rdmap_tx_commit(struct rdmap_stream *s)
{
	/* Pairs with requests_free() in rdmap_rx.c: the slots before in_next may be filled again */
	__atomic_store_n(&s->in_head, s->in_next, __ATOMIC_RELEASE);
}
