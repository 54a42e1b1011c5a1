/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMAP, inward: one ULPDU after the other into placements and events (RFC 5040 sections 5 and
 * 7, RFC 7306 sections 5 and 6).
 *
 * The order of the checks: DDP's header, the RDMAP version, the opcode, whether it may travel
 * in this way (tagged, queue), the length of its header, then what DDP knows of the queue or
 * the message in progress, then the memory. Only then are octets placed, and on the last
 * segment the message is delivered. After the first fault nothing is taken in any more.
 *
 * What the RFCs leave open is settled thus:
 * - A message that has not the length of its kind, a Response shorter than its Read, is
 *   "catastrophic, this stream" (0/2/07).
 * - More requests than IRD find no buffer on their queue: 1/2/02.
 * - A Response that nobody waits for is an unexpected opcode; so is an Atomic Response with
 *   another Request Id.
 * - A Terminate is taken whatever its MSN and size: there is no answer to it anyway.
 */
#include "base/bits.h"
#include "rdmap/opcode.h"
#include "rdmap/terminate.h"

/* --- tagged ------------------------------------------------------------------------------ */

static enum iwarp_fault place(const struct rdmap_in *in, unsigned int access)
{
	enum iwarp_fault f = ddp_rx_check_tagged(&in->s->ddp, in->seg);

	if (!f && in->seg->len)
		f = in->sink->place(in->sink->ctx, in->seg, access);
	in->s->rx_empty += !in->seg->len;
	if (!f)
		ddp_rx_accept(&in->s->ddp, in->seg);
	return f;
}

enum iwarp_fault rdmap_take_write(const struct rdmap_in *in)
{
	return place(in, DDP_REMOTE_WRITE);
}

/* Our Read or Atomic that the next Response must be for; NULL: we wait for none */
static struct rdmap_outbound *oldest(const struct rdmap_in *in)
{
	const struct rdmap_stream *s = in->s;
	/* Pairs with request_enter() and rewind_requests() of tx */
	__u32 n = rdmap_ring_count(s->out_head, __atomic_load_n(&s->out_tail, __ATOMIC_ACQUIRE),
				   s->out_cap);

	if (!n || n > s->out_cap)
		return NULL;
	return rdmap_slot_out(s, in->slots, s->out_head);
}

static void request_done(const struct rdmap_in *in, const struct rdmap_outbound *o, __u64 value)
{
	struct rdmap_stream *s = in->s;
	__u64 cookie = o->cookie;

	/*
	 * Pairs with rdmap_outstanding() and rewind_requests() of tx: the slot may be filled
	 * again
	 */
	__atomic_store_n(&s->out_head, rdmap_ring_next(s->out_head, s->out_cap), __ATOMIC_RELEASE);
	if (cookie != RDMAP_COOKIE_NONE)
		in->sink->done(in->sink->ctx, cookie, value);
	in->sink->kick(in->sink->ctx);
}

static enum iwarp_fault read_match(const struct rdmap_outbound *o, const struct ddp_seg *seg)
{
	/*
	 * A message of nothing names no memory: what stands there is not looked at (RFC 5041
	 * section 5.2)
	 */
	if (!o->size && !seg->len)
		return IWARP_OK;
	if (seg->stag != o->sink_stag)
		return DDP_E_T_STAG;
	if (seg->to != o->sink_to + o->got || seg->len > o->size - o->got)
		return DDP_E_T_BOUNDS;
	return seg->last && seg->len < o->size - o->got ? RDMAP_E_CATASTROPHIC : IWARP_OK;
}

enum iwarp_fault rdmap_take_read_response(const struct rdmap_in *in)
{
	struct rdmap_outbound *o = oldest(in);
	enum iwarp_fault f;

	if (!o || o->atomic)
		return RDMAP_E_OPCODE;
	f = read_match(o, in->seg);
	if (!f)
		f = place(in, DDP_LOCAL_WRITE);
	if (f)
		return f;
	o->got += in->seg->len;
	if (in->seg->last)
		request_done(in, o, 0);
	return IWARP_OK;
}

/* --- QN 0: what consumes a receive ------------------------------------------------------- */

static enum iwarp_fault deliver(const struct rdmap_in *in, __u64 imm)
{
	struct rdmap_recv recv = {
		.op = in->seg->rsvdulp & RDMAP_OP,
		.solicited = in->row->solicited,
		.invalidated = in->row->invalidate,
		.len = ddp_seg_message_len(in->seg),
		.imm = imm,
	};

	if (in->row->invalidate) {
		recv.inv_stag = in->seg->rsvdulp32;
		if (in->sink->invalidate(in->sink->ctx, recv.inv_stag))
			return RDMAP_E_INVALIDATE;
	}
	in->sink->recv_done(in->sink->ctx, &recv);
	return IWARP_OK;
}

/*
 * A ready-to-receive message in the form of a Send is not the program's: it takes its MSN and
 * no receive
 */
static bool is_rtr(const struct rdmap_in *in)
{
	/* An initiator's is tx's, which may be about to send it */
	__u8 rtr = __atomic_load_n(&in->s->rtr, __ATOMIC_RELAXED);

	return rtr == RDMAP_RTR_TO_COME && in->s->ddp.mpa.rtr == MPA_RTR_SEND &&
	       (in->seg->rsvdulp & RDMAP_OP) == RDMAP_SEND && in->seg->last && !in->seg->len;
}

static enum iwarp_fault take_rtr(const struct rdmap_in *in)
{
	enum iwarp_fault f = ddp_rx_check_untagged(&in->s->ddp, in->seg, 1, 0);

	if (!f)
		ddp_rx_accept(&in->s->ddp, in->seg);
	return f;
}

enum iwarp_fault rdmap_take_send(const struct rdmap_in *in)
{
	const struct ddp_seg *seg = in->seg;
	unsigned int depth;
	enum iwarp_fault f;
	__u64 room = 0;

	if (is_rtr(in))
		return take_rtr(in);
	depth = in->sink->recv_ready(in->sink->ctx, &room);
	f = ddp_rx_check_untagged(&in->s->ddp, seg, depth, room);
	if (f)
		return f;
	if (seg->len)
		in->sink->recv_place(in->sink->ctx, seg);
	if (seg->last)
		f = deliver(in, 0);
	if (!f)
		ddp_rx_accept(&in->s->ddp, seg);
	return f;
}

/* The eight octets travel in the completion: the receive that they consume may be of any size */
enum iwarp_fault rdmap_take_imm(const struct rdmap_in *in)
{
	__u64 room = 0;
	unsigned int depth = in->sink->recv_ready(in->sink->ctx, &room);
	enum iwarp_fault f = ddp_rx_check_untagged(&in->s->ddp, in->seg, depth, ~0ull);

	if (!f)
		f = deliver(in, base_get_be64(in->seg->payload));
	if (!f)
		ddp_rx_accept(&in->s->ddp, in->seg);
	return f;
}

/* --- QN 1: requests ---------------------------------------------------------------------- */

/*
 * Requests that have their answer built do not count: it may have left and brought the next
 * request about before rdmap_tx_commit() gives the slot back.
 */
static unsigned int requests_free(const struct rdmap_stream *s)
{
	__u16 limit = base_min(s->ddp.mpa.ird, s->in_cap);
	/* Pairs with rdmap_tx_commit() */
	__u32 head = __atomic_load_n(&s->in_head, __ATOMIC_ACQUIRE);
	/* Only a count: what is in the slots is read by tx alone */
	__u32 next = __atomic_load_n(&s->in_next, __ATOMIC_RELAXED);
	__u32 waiting = rdmap_ring_count(next, s->in_tail, s->in_cap);

	if (rdmap_ring_count(head, s->in_tail, s->in_cap) >= s->in_cap)
		return 0;
	return waiting < limit ? limit - waiting : 0;
}

static enum iwarp_fault request_enter(const struct rdmap_in *in, struct rdmap_inbound *request)
{
	struct rdmap_stream *s = in->s;
	enum iwarp_fault f =
		ddp_rx_check_untagged(&s->ddp, in->seg, requests_free(s), in->row->hdr_len);

	if (f)
		return f;
	request->ctl = in->seg->hdr[0];
	request->rsvdulp = in->seg->rsvdulp;
	request->msn = in->seg->msn;
	*rdmap_slot_in(s, in->slots, s->in_tail) = *request;
	ddp_rx_accept(&s->ddp, in->seg);
	/* Pairs with rdmap_tx_response() */
	__atomic_store_n(&s->in_tail, rdmap_ring_next(s->in_tail, s->in_cap), __ATOMIC_RELEASE);
	in->sink->kick(in->sink->ctx);
	return IWARP_OK;
}

enum iwarp_fault rdmap_take_read(const struct rdmap_in *in)
{
	struct rdmap_inbound request = { .atomic = false };
	struct rdmap_read_req h;

	memcpy(&h, in->seg->payload, sizeof(h));
	request.src_stag = be32toh(h.src_stag);
	request.src_to = be64toh(h.src_to);
	request.read.sink_stag = be32toh(h.sink_stag);
	request.read.sink_to = be64toh(h.sink_to);
	request.read.size = be32toh(h.size);
	in->s->rx_empty += !request.read.size;
	return request_enter(in, &request);
}

enum iwarp_fault rdmap_take_atomic(const struct rdmap_in *in)
{
	struct rdmap_inbound request = { .atomic = true };
	struct rdmap_atomic_req h;

	memcpy(&h, in->seg->payload, sizeof(h));
	request.aop = be32toh(h.aopcode) & RDMAP_AOP_MASK;
	request.src_stag = be32toh(h.stag);
	request.src_to = be64toh(h.to);
	request.op.data = be64toh(h.data);
	request.op.mask = be64toh(h.mask);
	request.op.compare = be64toh(h.compare);
	request.op.compare_mask = be64toh(h.compare_mask);
	request.op.req_id = be32toh(h.req_id);
	return request_enter(in, &request);
}

/* --- QN 2 and 3 -------------------------------------------------------------------------- */

enum iwarp_fault rdmap_take_terminate(const struct rdmap_in *in)
{
	struct rdmap_stream *s = in->s;
	bool starting = s->ddp.mpa.role == MPA_RESPONDER && !s->began;
	__u8 open = RDMAP_OPEN;

	rdmap_term_get(&s->peer_term, in->seg->payload, in->seg->len, starting);
	/*
	 * Pairs with whoever looks for the end of the stream. A fault of ours that came first
	 * stays.
	 */
	__atomic_compare_exchange_n(&s->state, &open, RDMAP_TERM_RCVD, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	return IWARP_OK;
}

enum iwarp_fault rdmap_take_atomic_response(const struct rdmap_in *in)
{
	const struct rdmap_outbound *o = oldest(in);
	struct rdmap_atomic_resp h;
	enum iwarp_fault f;

	memcpy(&h, in->seg->payload, sizeof(h));
	if (!o || !o->atomic || be32toh(h.req_id) != o->req_id)
		return RDMAP_E_OPCODE;
	f = ddp_rx_check_untagged(&in->s->ddp, in->seg, 1, in->row->hdr_len);
	if (f)
		return f;
	ddp_rx_accept(&in->s->ddp, in->seg);
	request_done(in, o, be64toh(h.value));
	return IWARP_OK;
}

/* --- one ULPDU --------------------------------------------------------------------------- */

static enum iwarp_fault check_row(const struct rdmap_opcode_row *row, const struct ddp_seg *seg)
{
	if (row->tagged != seg->tagged)
		return RDMAP_E_OPCODE;
	if (!seg->tagged && seg->qn >= DDP_QUEUES)
		return DDP_E_U_QN;
	if (!seg->tagged && seg->qn != row->qn)
		return RDMAP_E_OPCODE;
	if (!row->hdr_len)
		return IWARP_OK;
	if (!seg->last || seg->len != row->hdr_len)
		return RDMAP_E_CATASTROPHIC;
	return seg->mo ? DDP_E_U_MO : IWARP_OK;
}

static enum iwarp_fault take(struct rdmap_in *in)
{
	__u8 ctl = in->seg->rsvdulp;
	enum iwarp_fault f;

	if ((ctl & RDMAP_RV) != RDMAP_RV1)
		return RDMAP_E_VERSION;
	if ((ctl & RDMAP_OP) >= RDMAP_OPCODES)
		return RDMAP_E_OPCODE;
	in->row = &rdmap_opcodes[ctl & RDMAP_OP];
	f = check_row(in->row, in->seg);
	return f ? f : in->row->take(in);
}

static void fault_at_segment(struct rdmap_stream *s, enum iwarp_fault f, const struct ddp_seg *seg,
			     size_t len)
{
	struct rdmap_culprit at = {
		.ddp = seg->hdr_len ? seg->hdr : NULL,
		.ddp_len = seg->hdr_len,
		.seg_len = (__u16)len,
	};

	rdmap_fault_at(s, f, &at);
}

/*
 * The first message opens a responder's sending side and is the ready-to-receive message,
 * whatever it is
 */
static void first_segment(struct rdmap_stream *s, const struct rdmap_sink *sink)
{
	s->began = true;
	if (s->ddp.mpa.role != MPA_RESPONDER)
		return;
	/* Read by tx, for which the values before and after mean the same */
	__atomic_store_n(&s->rtr, RDMAP_RTR_NONE, __ATOMIC_RELAXED);
	sink->kick(sink->ctx);
}

enum iwarp_fault rdmap_rx(struct rdmap_stream *s, const struct rdmap_slots *slots,
			  const __u8 *ulpdu, size_t len, const struct rdmap_sink *sink)
{
	struct ddp_seg seg;
	struct rdmap_in in = { .s = s, .slots = slots, .sink = sink, .seg = &seg };
	enum iwarp_fault f;

	/* Pairs with rdmap_fault_at() */
	if (rdmap_state_of(s) != RDMAP_OPEN)
		return IWARP_OK;
	f = ddp_rx_parse(ulpdu, len, &seg);
	if (!f)
		f = take(&in);
	if (f)
		fault_at_segment(s, f, &seg, len);
	else if (!s->began)
		first_segment(s, sink);
	return f;
}
