/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Terminate: what ends a stream, said in one message (RFC 5040 sections 4.8, 5.4 and 7).
 *
 * Invariants: the first fault of a stream is the one that is reported; term is complete before
 * state says FAULTED; at most one Terminate leaves, nothing leaves after it.
 *
 * Which headers of the offending segment travel along is Figure 10, read with the text of
 * section 4.8: the RDMAP header only of Read Requests, so not for a Send with Invalidate. "DDP
 * Segment Length" is the length of the whole ULPDU. The siw driver, as built for little-endian
 * hosts, has the nibbles of the first octet swapped and the header bits at the low end of the
 * third; both forms are understood, one is sent.
 */
#include "rdmap/terminate.h"

#include "base/bits.h"
#include "rdmap/rdmap.h"

/* Where a Terminate with everything has its parts */
enum { LEN_AT = sizeof(struct rdmap_term), HDR_AT = LEN_AT + 2 };

_Static_assert(HDR_AT + DDP_UNTAGGED_LEN + sizeof(struct rdmap_read_req) == RDMAP_HDR_MAX, "the "
											   "longest"
											   " Termin"
											   "ate");

/* --- building ---------------------------------------------------------------------------- */

static bool wants_ddp_header(enum iwarp_fault f)
{
	return IWARP_FAULT_LAYER(f) != IWARP_L_LLP && IWARP_FAULT_ETYPE(f) != 0;
}

static bool wants_read_header(enum iwarp_fault f)
{
	return IWARP_FAULT_LAYER(f) == IWARP_L_RDMAP && IWARP_FAULT_ETYPE(f) == 1;
}

static void term_fill(struct rdmap_term_info *t, enum iwarp_fault f, const struct rdmap_culprit *at)
{
	if (!at->ddp || !wants_ddp_header(f))
		return;
	t->hdrct = RDMAP_TERM_M | RDMAP_TERM_D;
	t->seg_len = at->seg_len;
	t->ddp_len = at->ddp_len;
	memcpy(t->hdr, at->ddp, at->ddp_len);
	if (!at->read || !wants_read_header(f))
		return;
	t->hdrct |= RDMAP_TERM_R;
	memcpy(t->hdr + at->ddp_len, at->read, sizeof(*at->read));
}

/*
 * The other direction found a fault at the same time and is about to fill in term: a few
 * stores. If its process died at just this place it never says FAULTED, and its lock tells the
 * next one.
 */
static void wait_for_first(const struct rdmap_stream *s)
{
	for (unsigned int i = 0; i < 1u << 16; i++)
		/* Pairs with the exchange in rdmap_fault_at() */
		if (rdmap_state_of(s) != RDMAP_OPEN)
			return;
}

void rdmap_fault_at(struct rdmap_stream *s, enum iwarp_fault fault, const struct rdmap_culprit *at)
{
	__u32 none = IWARP_OK;
	__u8 open = RDMAP_OPEN;

	/* Two directions may get here at once: who sets term.fault may write the rest of term */
	if (!__atomic_compare_exchange_n(&s->term.fault, &none, (__u32)fault, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		wait_for_first(s);
		return;
	}
	term_fill(&s->term, fault, at);
	/*
	 * Pairs with the loads of state in rdmap_tx_terminate() and in whoever looks for a
	 * fault. TERM_RCVD stays.
	 */
	__atomic_compare_exchange_n(&s->state, &open, RDMAP_FAULTED, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

void rdmap_fault(struct rdmap_stream *s, enum iwarp_fault f)
{
	static const struct rdmap_culprit nobody;

	rdmap_fault_at(s, f, &nobody);
}

size_t rdmap_term_put(const struct rdmap_term_info *t, __u8 *out)
{
	__u8 hdrct = base_once(t->hdrct);
	size_t n =
		base_once(t->ddp_len) + (hdrct & RDMAP_TERM_R ? sizeof(struct rdmap_read_req) : 0);
	struct rdmap_term control = {
		.layer_etype =
			(__u8)(IWARP_FAULT_LAYER(t->fault) << 4 | IWARP_FAULT_ETYPE(t->fault)),
		.code = IWARP_FAULT_CODE(t->fault),
		.hdrct = hdrct,
	};

	memcpy(out, &control, sizeof(control));
	if (!hdrct)
		return sizeof(control);
	base_put_be16(out + LEN_AT, t->seg_len);
	n = base_min(n, sizeof(t->hdr));
	memcpy(out + HDR_AT, t->hdr, n);
	return HDR_AT + n;
}

/*
 * After MPA failed, a Terminate still makes sense if both start-up frames were exchanged and
 * the connection is there
 */
static bool may_terminate(const struct mpa_conn *c)
{
	/* Receiving wrote fault before; it is what FAULTED was said about */
	if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != MPA_FAILED)
		return mpa_conn_may_send(c);
	switch (c->fault) {
	case MPA_E_CLOSED:
	case MPA_E_START:
		return false;
	case MPA_E_IRD:
	case MPA_E_RTR:
		return c->role == MPA_INITIATOR;
	default:
		/* A responder sends nothing before it has received a valid FPDU */
		return c->role == MPA_INITIATOR || c->rx_fpdus;
	}
}

int rdmap_tx_terminate(struct rdmap_stream *s, struct mpa_txv *v)
{
	__u8 payload[RDMAP_HDR_MAX];
	struct ddp_tx_msg m = {
		.rsvdulp = RDMAP_RV1 | RDMAP_TERMINATE,
		.qn = RDMAP_QN_TERM,
		.ulp_hdr = payload,
	};
	ssize_t rc;
	bool last;

	/* Pairs with rdmap_fault_at() */
	if (rdmap_state_of(s) != RDMAP_FAULTED || !may_terminate(&s->ddp.mpa))
		return 0;
	m.ulp_hdr_len = (__u32)rdmap_term_put(&s->term, payload);
	rc = ddp_tx_segment(&s->ddp, v, &m, 0, &last);
	if (rc < 0)
		return (int)rc;
	__atomic_store_n(&s->state, RDMAP_TERM_SENT, __ATOMIC_RELEASE);
	return 1;
}

/* --- taking apart ------------------------------------------------------------------------ */

static bool fault_defined(__u32 fault);

enum { TERM_HDRCT = RDMAP_TERM_M | RDMAP_TERM_D | RDMAP_TERM_R };
enum { SIW_M = 0x01, SIW_D = 0x02, SIW_R = 0x04, SIW_HDRCT = SIW_M | SIW_D | SIW_R };

static __u8 siw_hdrct(__u8 low)
{
	return (low & SIW_M ? RDMAP_TERM_M : 0) | (low & SIW_D ? RDMAP_TERM_D : 0) |
	       (low & SIW_R ? RDMAP_TERM_R : 0);
}

static __u32 fault_of(__u8 layer_etype, __u8 code, bool swapped)
{
	__u8 high = layer_etype >> 4, low = layer_etype & 0xF;

	return swapped ? IWARP_FAULT(low, high, code) : IWARP_FAULT(high, low, code);
}

/* Without header bits the first two octets must tell the forms apart */
static bool looks_swapped(__u8 layer_etype, __u8 code, bool starting)
{
	__u32 rfc = fault_of(layer_etype, code, false), siw = fault_of(layer_etype, code, true);

	if (!fault_defined(siw))
		return false;
	if (!fault_defined(rfc))
		return true;
	/* 2/0/05..07 is about start-up, 0/2/05..07 is not; other pairs have no such context */
	if (IWARP_FAULT_LAYER(rfc) == IWARP_L_LLP)
		return !starting;
	return IWARP_FAULT_LAYER(siw) == IWARP_L_LLP && starting;
}

/* The parts that the header bits announce, as far as they are there */
static void term_get_headers(struct rdmap_term_info *t, __u8 hdrct, const __u8 *p, size_t n)
{
	size_t ddp_len;

	if (!(hdrct & (RDMAP_TERM_M | RDMAP_TERM_D)) || n < HDR_AT)
		return;
	t->seg_len = base_get_be16(p + LEN_AT);
	t->hdrct = hdrct & RDMAP_TERM_M;
	if (!(hdrct & RDMAP_TERM_D) || n == HDR_AT)
		return;
	ddp_len = p[HDR_AT] & DDP_T ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	if (n < HDR_AT + ddp_len)
		return;
	t->hdrct |= RDMAP_TERM_D;
	t->ddp_len = (__u8)ddp_len;
	memcpy(t->hdr, p + HDR_AT, ddp_len);
	if (!(hdrct & RDMAP_TERM_R) || n < HDR_AT + ddp_len + sizeof(struct rdmap_read_req))
		return;
	t->hdrct |= RDMAP_TERM_R;
	memcpy(t->hdr + ddp_len, p + HDR_AT + ddp_len, sizeof(struct rdmap_read_req));
}

void rdmap_term_get(struct rdmap_term_info *t, const __u8 *p, size_t n, bool starting)
{
	struct rdmap_term control = { 0 };
	__u8 hdrct;

	memset(t, 0, sizeof(*t));
	if (n < offsetof(struct rdmap_term, hdrct)) {
		t->fault = RDMAP_E_OPERATION; /* it says no more than that it is one */
		return;
	}
	memcpy(&control, p, base_min(n, sizeof(control)));
	hdrct = control.hdrct & TERM_HDRCT;
	t->swapped = !hdrct && control.hdrct & SIW_HDRCT;
	if (t->swapped)
		hdrct = siw_hdrct(control.hdrct);
	else if (!hdrct)
		t->swapped = looks_swapped(control.layer_etype, control.code, starting);
	t->fault = fault_of(control.layer_etype, control.code, t->swapped);
	term_get_headers(t, hdrct, p, n);
}

/* --- in words ---------------------------------------------------------------------------- */

static const struct fault_text {
	__u32 fault;
	const char *text;
} fault_texts[] = {
	{ RDMAP_E_STAG, "RDMAP, remote protection: invalid STag" },
	{ RDMAP_E_BOUNDS, "RDMAP, remote protection: base or bounds violation" },
	{ RDMAP_E_ACCESS, "RDMAP, remote protection: access rights violation" },
	{ RDMAP_E_STREAM, "RDMAP, remote protection: STag belongs to another stream" },
	{ RDMAP_E_WRAP, "RDMAP, remote protection: tagged offset wraps" },
	{ RDMAP_E_INVALIDATE, "RDMAP, remote protection: STag cannot be invalidated" },
	{ RDMAP_E_PROT, "RDMAP, remote protection: unspecified" },
	{ RDMAP_E_VERSION, "RDMAP, remote operation: invalid version" },
	{ RDMAP_E_OPCODE, "RDMAP, remote operation: unexpected opcode" },
	{ RDMAP_E_CATASTROPHIC, "RDMAP, remote operation: catastrophic, this stream" },
	{ RDMAP_E_GLOBAL, "RDMAP, remote operation: catastrophic, global" },
	{ RDMAP_E_INVALIDATE_OP, "RDMAP, remote operation: STag cannot be invalidated" },
	{ RDMAP_E_OPERATION, "RDMAP, remote operation: unspecified" },
	{ DDP_E_T_STAG, "DDP, tagged buffer: invalid STag" },
	{ DDP_E_T_BOUNDS, "DDP, tagged buffer: base or bounds violation" },
	{ DDP_E_T_STREAM, "DDP, tagged buffer: STag belongs to another stream" },
	{ DDP_E_T_WRAP, "DDP, tagged buffer: tagged offset wraps" },
	{ DDP_E_T_VERSION, "DDP, tagged buffer: invalid version" },
	{ DDP_E_U_QN, "DDP, untagged buffer: invalid queue number" },
	{ DDP_E_U_NOBUF, "DDP, untagged buffer: no buffer available" },
	{ DDP_E_U_MSN, "DDP, untagged buffer: message number out of range" },
	{ DDP_E_U_MO, "DDP, untagged buffer: invalid message offset" },
	{ DDP_E_U_LENGTH, "DDP, untagged buffer: message too long" },
	{ DDP_E_U_VERSION, "DDP, untagged buffer: invalid version" },
	{ MPA_E_CLOSED, "MPA: connection closed, terminated or lost" },
	{ MPA_E_CRC, "MPA: CRC error" },
	{ MPA_E_MARKER, "MPA: marker and length disagree" },
	{ MPA_E_START, "MPA: invalid start-up frame" },
	{ MPA_E_LOCAL, "MPA: local catastrophic error" },
	{ MPA_E_IRD, "MPA: insufficient inbound read depth" },
	{ MPA_E_RTR, "MPA: no matching ready-to-receive message" },
};

/* By layer and error type, where the code alone has no entry */
static const char *const type_texts[][4] = {
	[IWARP_L_RDMAP] = { "RDMAP: local catastrophic error",
			    "RDMAP, remote protection: unknown code",
			    "RDMAP, remote operation: unknown code", "RDMAP: unknown error type" },
	[IWARP_L_DDP] = { "DDP: local catastrophic error", "DDP, tagged buffer: unknown code",
			  "DDP, untagged buffer: unknown code", "DDP: error of the transport" },
	[IWARP_L_LLP] = { "MPA: unknown code", "MPA: unknown error type", "MPA: unknown error type",
			  "MPA: error of the transport" },
};

static const char *fault_text_find(__u32 fault)
{
	for (size_t i = 0; i < base_array_size(fault_texts); i++)
		if (fault_texts[i].fault == fault)
			return fault_texts[i].text;
	return NULL;
}

/* No code is defined for a local catastrophic error of RDMAP or DDP, so each is one */
static bool fault_defined(__u32 fault)
{
	return fault_text_find(fault) ||
	       (IWARP_FAULT_LAYER(fault) <= IWARP_L_DDP && !IWARP_FAULT_ETYPE(fault));
}

const char *rdmap_fault_text(__u32 fault)
{
	const char *text = fault_text_find(fault);

	if (text)
		return text;
	if (fault == IWARP_OK)
		return "no fault";
	if (IWARP_FAULT_LAYER(fault) >= base_array_size(type_texts) || IWARP_FAULT_ETYPE(fault) > 3)
		return "unknown layer or error type";
	return type_texts[IWARP_FAULT_LAYER(fault)][IWARP_FAULT_ETYPE(fault)];
}
