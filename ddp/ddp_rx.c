/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DDP, inward: ULPDUs taken apart and held against what the stream must bring next (RFC
 * 5041 sections 4, 5.2, 7).
 *
 * Lengths are checked in ddp_rx_parse() alone; after it every field of a segment may be
 * used. Which memory a segment goes to is not decided here: untagged ones by the
 * caller's queues, tagged ones by stag.c.
 *
 * What the RFC leaves open is settled thus:
 * - A ULPDU too short for its header has no code of its own. It is DDP's "local
 *   catastrophic" (1/0/00), the one DDP fault whose Terminate carries no headers: there
 *   is none to carry. The version is judged first, for the length of a header is only
 *   known of a version that is known.
 * - Segments of an untagged message come with MO rising and without gaps. RFC 5041
 *   section 5.2 only says that they SHOULD, but over an ordered transport a gap would
 *   hand out octets of a receive buffer that nobody wrote, and no sender is known to do
 *   it.
 * - Each segment of a tagged message names its own place, and the stag table judges
 *   each one, so a jump of TO is taken. RsvdULP and STag must be the same in all of
 *   them (section 4.2), so one that differs is the beginning of another message inside
 *   this one; it did not name this message's buffer: 1/1/00. Untagged messages may
 *   stand between two tagged segments and the other way round, and messages of
 *   different queues between each other.
 * - STag and TO of a zero-length tagged message are not looked at (section 5.2).
 */
#include "base/bits.h"
#include "ddp/ddp.h"

static void parse_tagged(const __u8 *p, struct ddp_seg *seg)
{
	struct ddp_tagged h;

	memcpy(&h, p, sizeof(h));
	seg->hdr_len = sizeof(h);
	seg->rsvdulp = h.rsvdulp;
	seg->stag = be32toh(h.stag);
	seg->to = be64toh(h.to);
}

static void parse_untagged(const __u8 *p, struct ddp_seg *seg)
{
	struct ddp_untagged h;

	memcpy(&h, p, sizeof(h));
	seg->hdr_len = sizeof(h);
	seg->rsvdulp = h.rsvdulp;
	seg->rsvdulp32 = be32toh(h.rsvdulp32);
	seg->qn = be32toh(h.qn);
	seg->msn = be32toh(h.msn);
	seg->mo = be32toh(h.mo);
}

enum iwarp_fault ddp_rx_parse(const __u8 *ulpdu, size_t n, struct ddp_seg *seg)
{
	size_t need;

	memset(seg, 0, sizeof(*seg));
	if (!n)
		return DDP_E_LOCAL;
	seg->tagged = ulpdu[0] & DDP_T;
	seg->last = ulpdu[0] & DDP_L;
	need = seg->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	if (n >= need) {
		if (seg->tagged)
			parse_tagged(ulpdu, seg);
		else
			parse_untagged(ulpdu, seg);
		seg->hdr = ulpdu;
		seg->payload = ulpdu + need;
		seg->len = (__u32)(n - need);
	}
	if ((ulpdu[0] & DDP_DV) != DDP_DV1)
		return seg->tagged ? DDP_E_T_VERSION : DDP_E_U_VERSION;
	return n < need ? DDP_E_LOCAL : IWARP_OK;
}

enum iwarp_fault ddp_rx_check_untagged(const struct ddp_stream *s, const struct ddp_seg *seg,
				       unsigned int depth, __u64 buf_len)
{
	__u64 end = ddp_seg_message_len(seg);

	if (seg->qn >= DDP_QUEUES)
		return DDP_E_U_QN;
	if (seg->msn != s->rx_msn[seg->qn])
		return DDP_E_U_MSN;
	if (!depth && !(s->rx_untagged & 1u << seg->qn))
		return DDP_E_U_NOBUF;
	if (seg->mo != s->rx_mo[seg->qn])
		return DDP_E_U_MO;
	/* rx_mo has 32 bits, as has MO: a longer message cannot be said */
	if (end > buf_len || end > UINT32_MAX)
		return DDP_E_U_LENGTH;
	return IWARP_OK;
}

enum iwarp_fault ddp_rx_check_tagged(const struct ddp_stream *s, const struct ddp_seg *seg)
{
	if (!s->rx_tagged)
		return IWARP_OK;
	if (seg->stag != s->rx_stag || seg->rsvdulp != s->rx_ulp)
		return DDP_E_T_STAG;
	return IWARP_OK;
}

static void accept_untagged(struct ddp_stream *s, const struct ddp_seg *seg)
{
	__u8 bit = (__u8)(1u << seg->qn);

	if (seg->last) {
		s->rx_msn[seg->qn]++;
		s->rx_mo[seg->qn] = 0;
		s->rx_untagged &= (__u8)~bit;
	} else {
		s->rx_mo[seg->qn] += seg->len;
		s->rx_untagged |= bit;
	}
}

void ddp_rx_accept(struct ddp_stream *s, const struct ddp_seg *seg)
{
	if (!seg->tagged) {
		accept_untagged(s, seg);
		return;
	}
	s->rx_tagged = !seg->last;
	s->rx_stag = seg->stag;
	s->rx_ulp = seg->rsvdulp;
	s->rx_to = seg->to + seg->len;
}
