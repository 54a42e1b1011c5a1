/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMAP, outward: work requests into DDP messages (RFC 5040 sections 5.1 to 5.3, RFC 7306
 * sections 5.2 and 6.3).
 *
 * What holds a work request back is decided before its first segment: the stream's state, MPA's
 * gate, an RTR that must be the first FPDU, a Response that is half built (messages are not
 * interleaved), the fence, ORD. From its second segment on only the end of the stream stops it.
 * A Read or Atomic Request is entered in the ring of what is outstanding when it is built,
 * before the transport has it: its Response may come as soon as it has left.
 */
#include <errno.h>

#include "base/bits.h"
#include "rdmap/atomic.h"
#include "rdmap/opcode.h"

/* --- messages ---------------------------------------------------------------------------- */

static void build_payload(struct rdmap_msg *m, const struct rdmap_wr *wr)
{
	m->ddp.sg = wr->sg;
	m->ddp.nsg = wr->nsg;
	m->ddp.len = wr->len;
}

void rdmap_build_write(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id)
{
	m->ddp.stag = wr->stag;
	m->ddp.to = wr->to;
	build_payload(m, wr);
}

void rdmap_build_send(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id)
{
	if (rdmap_opcodes[wr->op].invalidate)
		m->ddp.rsvdulp32 = wr->inv_stag;
	build_payload(m, wr);
}

void rdmap_build_imm(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id)
{
	m->hdr.imm = htobe64(wr->imm);
}

void rdmap_build_read(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id)
{
	m->hdr.read = (struct rdmap_read_req){
		.sink_stag = htobe32(wr->sink_stag),
		.sink_to = htobe64(wr->sink_to),
		.size = htobe32(wr->len),
		.src_stag = htobe32(wr->stag),
		.src_to = htobe64(wr->to),
	};
}

void rdmap_build_atomic(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id)
{
	/* RFC 7306 section 5.1.1 says what stands in the fields that a FetchAdd has no use for */
	bool add = wr->aop == RDMAP_FETCH_ADD;

	m->hdr.atomic = (struct rdmap_atomic_req){
		.aopcode = htobe32(wr->aop),
		.req_id = htobe32(req_id),
		.stag = htobe32(wr->stag),
		.to = htobe64(wr->to),
		.data = htobe64(wr->data),
		.mask = htobe64(wr->mask),
		.compare = add ? 0 : htobe64(wr->compare),
		.compare_mask = add ? ~0ull : htobe64(wr->compare_mask),
	};
}

static bool wr_valid(const struct rdmap_wr *wr, __u32 off)
{
	const struct rdmap_opcode_row *row;

	if (wr->op >= RDMAP_OPCODES || !rdmap_opcodes[wr->op].build)
		return false;
	if (wr->op == RDMAP_ATOMIC_REQ && !rdmap_aop_known(wr->aop))
		return false;
	row = &rdmap_opcodes[wr->op];
	return !off || (!row->hdr_len && off < wr->len);
}

/* --- what holds it back ------------------------------------------------------------------ */

static bool stream_open(const struct rdmap_stream *s)
{
	__u8 mpa = __atomic_load_n(&s->ddp.mpa.state, __ATOMIC_RELAXED);

	/*
	 * Pairs with rdmap_fault_at() and rdmap_take_terminate(). What receiving finds a moment
	 * later only means that an FPDU was built in vain.
	 */
	return rdmap_state_of(s) == RDMAP_OPEN && mpa != MPA_FAILED && mpa != MPA_REJECTED;
}

static int depth_check(const struct rdmap_stream *s, const struct rdmap_wr *wr)
{
	__u16 limit = base_min(s->ddp.mpa.ord, s->out_cap);
	__u32 outstanding = rdmap_outstanding(s);

	if (wr->fence && outstanding)
		return -EAGAIN;
	if (!rdmap_opcodes[wr->op].answered)
		return 0;
	if (!limit)
		return -EINVAL;
	return outstanding < limit ? 0 : -EAGAIN;
}

static int turn_check(const struct rdmap_stream *s)
{
	if (!mpa_conn_may_send(&s->ddp.mpa) || s->in_sent)
		return -EAGAIN;
	/* rx writes this one on a responder: then it is another value before and after */
	return __atomic_load_n(&s->rtr, __ATOMIC_RELAXED) == RDMAP_RTR_TO_SEND ? -EAGAIN : 0;
}

/* --- segments ---------------------------------------------------------------------------- */

static void request_enter(struct rdmap_stream *s, const struct rdmap_slots *slots,
			  const struct rdmap_wr *wr)
{
	*rdmap_slot_out(s, slots, s->out_tail) = (struct rdmap_outbound){
		.cookie = wr->cookie,
		.sink_to = wr->sink_to,
		.sink_stag = wr->sink_stag,
		.size = wr->len,
		.req_id = s->out_tail,
		.atomic = wr->op == RDMAP_ATOMIC_REQ,
	};
	/* Pairs with oldest() in rdmap_rx.c */
	__atomic_store_n(&s->out_tail, rdmap_ring_next(s->out_tail, s->out_cap), __ATOMIC_RELEASE);
}

static ssize_t segment_put(struct rdmap_stream *s, const struct rdmap_slots *slots,
			   struct mpa_txv *v, const struct rdmap_wr *wr, __u32 off, bool *last)
{
	const struct rdmap_opcode_row *row = &rdmap_opcodes[wr->op];
	struct rdmap_msg m = { .ddp = { .tagged = row->tagged,
					.rsvdulp = (__u8)(RDMAP_RV1 | wr->op),
					.qn = row->qn,
					.ulp_hdr_len = row->hdr_len } };
	ssize_t n;

	m.ddp.ulp_hdr = &m.hdr;
	row->build(&m, wr, s->out_tail);
	n = ddp_tx_segment(&s->ddp, v, &m.ddp, off, last);
	if (n >= 0 && row->answered)
		request_enter(s, slots, wr);
	return n;
}

ssize_t rdmap_tx_wr(struct rdmap_stream *s, const struct rdmap_slots *slots, struct mpa_txv *v,
		    const struct rdmap_wr *wr, __u32 off, bool *last)
{
	int rc;

	if (!wr_valid(wr, off))
		return -EINVAL;
	if (!stream_open(s))
		return -EPIPE;
	rc = off ? 0 : turn_check(s);
	if (!rc && !off)
		rc = depth_check(s, wr);
	return rc ? rc : segment_put(s, slots, v, wr, off, last);
}

/* The ordinary case by itself: a Send of one segment, with nothing before it */
bool rdmap_tx_single(const struct rdmap_stream *s, struct mpa_single *f, const struct iovec *sg,
		     unsigned int nsg, __u32 len)
{
	const struct ddp_tx_msg m = { .rsvdulp = RDMAP_RV1 | RDMAP_SEND,
				      .qn = RDMAP_QN_SEND,
				      .sg = sg,
				      .nsg = nsg,
				      .len = len };

	return stream_open(s) && !turn_check(s) && ddp_tx_single(&s->ddp, f, &m);
}

void rdmap_tx_single_count(struct rdmap_stream *s, const struct mpa_single *f)
{
	ddp_tx_single_count(&s->ddp, f, RDMAP_QN_SEND);
}

void rdmap_tx_single_strike(struct rdmap_stream *s, __u32 octets)
{
	ddp_tx_single_strike(&s->ddp, octets, RDMAP_QN_SEND);
}

/*
 * The agreed ready-to-receive message. The STag to access is 1, for there are adapters that
 * refuse 0 even where no octet is accessed.
 */
int rdmap_tx_rtr(struct rdmap_stream *s, const struct rdmap_slots *slots, struct mpa_txv *v)
{
	static const __u8 ops[] = {
		[MPA_RTR_SEND] = RDMAP_SEND,
		[MPA_RTR_WRITE] = RDMAP_WRITE,
		[MPA_RTR_READ] = RDMAP_READ_REQ,
	};
	struct rdmap_wr wr = { .stag = 1, .cookie = RDMAP_COOKIE_NONE };
	bool last;
	ssize_t n;

	if (__atomic_load_n(&s->rtr, __ATOMIC_RELAXED) != RDMAP_RTR_TO_SEND || !stream_open(s) ||
	    !mpa_conn_may_send(&s->ddp.mpa))
		return 0;
	wr.op = ops[s->ddp.mpa.rtr % base_array_size(ops)];
	if (depth_check(s, &wr))
		return 0;
	n = segment_put(s, slots, v, &wr, 0, &last);
	if (n < 0)
		return (int)n;
	__atomic_store_n(&s->rtr, RDMAP_RTR_NONE, __ATOMIC_RELAXED);
	return 1;
}
