/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers to the peer's Reads and Atomics (RFC 5040 sections 5.2 and 7.2, RFC 7306 section 5).
 *
 * One request at a time, in the order in which they came, Reads and Atomics together; a slot is
 * held until the whole answer is with the transport. The source is looked up again for every
 * segment, so that memory that was invalidated midway is not read any more. An Atomic is
 * executed once, when its turn has come: what it found stays in its slot until the answer has
 * left, however often that is built.
 */
#include <errno.h>

#include "base/bits.h"
#include "rdmap/atomic.h"
#include "rdmap/opcode.h"
#include "rdmap/terminate.h"

/* --- a request that cannot be answered --------------------------------------------------- */

static struct ddp_untagged request_header(const struct rdmap_inbound *in)
{
	return (struct ddp_untagged){
		.ctl = in->ctl,
		.rsvdulp = in->rsvdulp,
		.qn = htobe32(RDMAP_QN_READ),
		.msn = htobe32(in->msn),
	};
}

/* The header comes back without what has been answered (RFC 5040 section 4.8) */
static int read_fault(struct rdmap_stream *s, const struct rdmap_inbound *in, enum iwarp_fault f)
{
	struct ddp_untagged ddp = request_header(in);
	struct rdmap_read_req left = {
		.sink_stag = htobe32(in->read.sink_stag),
		.sink_to = htobe64(in->read.sink_to + s->in_sent),
		.size = htobe32(in->read.size - s->in_sent),
		.src_stag = htobe32(in->src_stag),
		.src_to = htobe64(in->src_to + s->in_sent),
	};
	struct rdmap_culprit at = {
		.ddp = (const __u8 *)&ddp,
		.ddp_len = sizeof(ddp),
		.seg_len = sizeof(ddp) + sizeof(left),
		.read = &left,
	};

	rdmap_fault_at(s, f, &at);
	return -EPROTO;
}

static int atomic_fault(struct rdmap_stream *s, const struct rdmap_inbound *in, enum iwarp_fault f)
{
	struct ddp_untagged ddp = request_header(in);
	struct rdmap_culprit at = {
		.ddp = (const __u8 *)&ddp,
		.ddp_len = sizeof(ddp),
		.seg_len = sizeof(ddp) + sizeof(struct rdmap_atomic_req),
	};

	rdmap_fault_at(s, f, &at);
	return -EPROTO;
}

/* --- answers ----------------------------------------------------------------------------- */

/*
 * Counts @n octets of the oldest request as built, and goes on to the next one when they were
 * the last
 */
static void answered(struct rdmap_stream *s, __u32 n, bool last)
{
	s->in_sent = last ? 0 : s->in_sent + n;
	if (last)
		/* Only counted by rx, which must not reuse a slot before in_head passes it */
		__atomic_store_n(&s->in_next, rdmap_ring_next(s->in_next, s->in_cap),
				 __ATOMIC_RELAXED);
}

/* What of @left octets ddp_tx_segment() takes into one tagged segment */
static __u32 segment_len(const struct rdmap_stream *s, __u32 left)
{
	__u32 mulpdu = s->ddp.mpa.mulpdu;

	return base_min(left, mulpdu > DDP_TAGGED_LEN ? mulpdu - DDP_TAGGED_LEN : 1);
}

/* The octets of the next segment in @sg[0], which may be a copy, those behind them in @sg[1] */
static int read_gather(const struct rdmap_stream *s, const struct rdmap_source *src, __u8 *addr,
		       __u32 left, struct iovec sg[2])
{
	__u32 n = segment_len(s, left);

	sg[0] = (struct iovec){ addr, n };
	sg[1] = (struct iovec){ addr + n, left - n };
	if (src->hold)
		sg[0].iov_base = (void *)(uintptr_t)src->hold(src->ctx, addr, n);
	return sg[0].iov_base ? 0 : -ENOBUFS;
}

static int read_respond(struct rdmap_stream *s, struct mpa_txv *v, const struct rdmap_source *src,
			const struct rdmap_inbound *in)
{
	/* Each segment is built as if the message began with it: on the wire there is no telling */
	__u32 sent = base_once(s->in_sent), left = base_once(in->read.size) - sent;
	struct iovec sg[2];
	struct ddp_tx_msg m = {
		.tagged = true,
		.rsvdulp = RDMAP_RV1 | RDMAP_READ_RESP,
		.stag = in->read.sink_stag,
		.to = in->read.sink_to + sent,
		.len = left,
		.sg = sg,
		.nsg = left ? 2 : 0,
	};
	enum ddp_stag_error e;
	__u8 *addr;
	ssize_t n;
	bool last;

	/* Of a Read of nothing the source is not looked at */
	if (left) {
		e = src->get(src->ctx, in->src_stag, in->src_to + sent, left, DDP_REMOTE_READ,
			     &addr);
		if (e)
			return read_fault(s, in, ddp_stag_fault_rdmap(e));
		if (read_gather(s, src, addr, left, sg))
			return -ENOBUFS;
	}
	n = ddp_tx_segment(&s->ddp, v, &m, 0, &last);
	if (n < 0)
		return (int)n;
	answered(s, (__u32)n, last);
	return 1;
}

/*
 * A Read before an Atomic does not see what that does. While answers to Reads are built and
 * perhaps not gone, they may refer to the very memory.
 */
static bool reads_under_way(const struct rdmap_stream *s, const struct rdmap_slots *slots)
{
	__u32 n = rdmap_ring_count(s->in_head, s->in_next, s->in_cap), i = s->in_head;

	for (n = base_min(n, slots->ins); n; n--, i = rdmap_ring_next(i, s->in_cap)) {
		const struct rdmap_inbound *in = rdmap_slot_in(s, slots, i);

		if (!in->atomic && in->read.size)
			return true;
	}
	return false;
}

static enum iwarp_fault atomic_do(struct rdmap_inbound *in, const struct rdmap_source *src)
{
	enum ddp_stag_error e;
	__u8 *addr;

	if (!rdmap_aop_known(in->aop))
		return RDMAP_E_OPCODE;
	if (in->src_to % sizeof(__u64))
		return RDMAP_E_CATASTROPHIC;
	e = src->get(src->ctx, in->src_stag, in->src_to, sizeof(__u64), DDP_REMOTE_ATOMIC, &addr);
	if (e)
		return ddp_stag_fault_rdmap(e);
	/* Memory may be registered under an offset that says nothing about its address */
	if ((uintptr_t)addr % sizeof(__u64))
		return RDMAP_E_CATASTROPHIC;
	in->op.value = rdmap_atomic_execute(in, addr);
	in->executed = true;
	return IWARP_OK;
}

static int atomic_respond(struct rdmap_stream *s, struct mpa_txv *v, const struct rdmap_source *src,
			  struct rdmap_inbound *in)
{
	enum iwarp_fault f = in->executed ? IWARP_OK : atomic_do(in, src);
	struct rdmap_atomic_resp resp = {
		.req_id = htobe32(in->op.req_id),
		.value = htobe64(in->op.value),
	};
	struct ddp_tx_msg m = {
		.rsvdulp = RDMAP_RV1 | RDMAP_ATOMIC_RESP,
		.qn = RDMAP_QN_ATOMIC,
		.ulp_hdr = &resp,
		.ulp_hdr_len = sizeof(resp),
	};
	ssize_t n;
	bool last;

	if (f)
		return atomic_fault(s, in, f);
	n = ddp_tx_segment(&s->ddp, v, &m, 0, &last);
	if (n < 0)
		return (int)n;
	answered(s, 0, last);
	return 1;
}

int rdmap_tx_response(struct rdmap_stream *s, const struct rdmap_slots *slots, struct mpa_txv *v,
		      const struct rdmap_source *src)
{
	struct rdmap_inbound *in;

	/* Pairs with rdmap_fault_at() and rdmap_take_terminate() */
	if (rdmap_state_of(s) != RDMAP_OPEN || !mpa_conn_may_send(&s->ddp.mpa) ||
	    __atomic_load_n(&s->rtr, __ATOMIC_RELAXED) == RDMAP_RTR_TO_SEND)
		return 0;
	/* Pairs with request_enter() in rdmap_rx.c */
	if (s->in_next == __atomic_load_n(&s->in_tail, __ATOMIC_ACQUIRE))
		return 0;
	in = rdmap_slot_in(s, slots, s->in_next);
	if (in->atomic && !in->executed && reads_under_way(s, slots))
		return -ENOBUFS;
	return in->atomic ? atomic_respond(s, v, src, in) : read_respond(s, v, src, in);
}
