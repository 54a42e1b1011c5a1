/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DDP, outward: messages cut into segments (RFC 5041 sections 4 and 5.2).
 *
 * The caller walks over a message by offset, one call a segment, so nothing about it is
 * kept here but its MSN, which moves on with the last segment. Each segment is one
 * ULPDU of at most MULPDU octets; the cut falls where MULPDU says or, for a list of
 * very many small pieces, where DDP_SGE_MAX of them are used up. Segments leave in the
 * order of MO and TO, and the caller finishes a message before it begins the next: what
 * follows is told from it by L alone.
 */
#include "ddp/ddp.h"

#include <errno.h>

#include "base/bits.h"

void ddp_stream_init(struct ddp_stream *s, enum mpa_role role, const struct mpa_config *config)
{
	memset(s, 0, sizeof(*s));
	mpa_conn_init(&s->mpa, role, config);
	for (unsigned int qn = 0; qn < DDP_QUEUES; qn++) {
		s->tx_msn[qn] = 1;
		s->rx_msn[qn] = 1;
	}
}

static size_t put_tagged(__u8 *hdr, const struct ddp_tx_msg *m, __u32 off, __u8 l)
{
	struct ddp_tagged t = {
		.ctl = DDP_T | l | DDP_DV1,
		.rsvdulp = m->rsvdulp,
		.stag = htobe32(m->stag),
		.to = htobe64(m->to + off),
	};

	memcpy(hdr, &t, sizeof(t));
	return sizeof(t);
}

static size_t put_untagged(__u8 *hdr, const struct ddp_tx_msg *m, __u32 msn, __u32 mo, __u8 l)
{
	struct ddp_untagged u = {
		.ctl = l | DDP_DV1,
		.rsvdulp = m->rsvdulp,
		.rsvdulp32 = htobe32(m->rsvdulp32),
		.qn = htobe32(m->qn),
		.msn = htobe32(msn),
		.mo = htobe32(mo),
	};

	memcpy(hdr, &u, sizeof(u));
	return sizeof(u);
}

static bool msg_valid(const struct ddp_tx_msg *m, __u32 off)
{
	if (!m->tagged && m->qn >= DDP_QUEUES)
		return false;
	if (m->ulp_hdr_len > RDMAP_HDR_MAX || (m->ulp_hdr_len && off))
		return false;
	return off < m->len || !off;
}

/*
 * Payload octets of the segment at @off, as MULPDU allows; at least one, so that a
 * message always ends
 */
static size_t segment_len(const struct ddp_stream *s, const struct ddp_tx_msg *m, __u32 off)
{
	size_t hdr = (m->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN) + m->ulp_hdr_len;
	size_t mulpdu = base_once(s->mpa.mulpdu), room = mulpdu > hdr ? mulpdu - hdr : 1;

	return base_min(room, (size_t)(m->len - off));
}

ssize_t ddp_tx_segment(struct ddp_stream *s, struct mpa_txv *v, const struct ddp_tx_msg *m,
		       __u32 off, bool *last)
{
	struct iovec pieces[DDP_SGE_MAX];
	__u8 hdr[IWARP_HDR_MAX];
	size_t want, n, hdr_len;
	unsigned int np;
	bool end;
	int rc;

	if (!msg_valid(m, off))
		return -EINVAL;
	want = n = segment_len(s, m, off);
	np = ddp_gather(m->sg, m->nsg, off, &n, pieces, DDP_SGE_MAX);
	if (n < want && np < DDP_SGE_MAX)
		return -EINVAL; /* the list is shorter than the message */
	end = n == m->len - off;
	if (m->ulp_hdr_len && !end)
		return -EMSGSIZE;
	hdr_len = m->tagged ? put_tagged(hdr, m, off, end ? DDP_L : 0)
			    : put_untagged(hdr, m, s->tx_msn[m->qn], off, end ? DDP_L : 0);
	if (m->ulp_hdr_len)
		memcpy(hdr + hdr_len, m->ulp_hdr, m->ulp_hdr_len);
	rc = mpa_tx_fpdu(&s->mpa, v, hdr, hdr_len + m->ulp_hdr_len, pieces, np);
	if (rc)
		return rc;
	if (end && !m->tagged)
		s->tx_msn[m->qn]++;
	*last = end;
	return (ssize_t)n;
}

bool ddp_tx_single(const struct ddp_stream *s, struct mpa_single *f, const struct ddp_tx_msg *m)
{
	if (m->qn >= DDP_QUEUES || segment_len(s, m, 0) < m->len)
		return false;
	put_untagged(f->head + MPA_LEN_FIELD, m, s->tx_msn[m->qn], 0, DDP_L);
	return mpa_tx_single(&s->mpa, f, DDP_UNTAGGED_LEN, m->sg, m->nsg, m->len);
}

void ddp_tx_single_count(struct ddp_stream *s, const struct mpa_single *f, __u32 qn)
{
	mpa_tx_single_count(&s->mpa, f);
	s->tx_msn[qn]++;
}

void ddp_tx_single_strike(struct ddp_stream *s, __u32 octets, __u32 qn)
{
	mpa_tx_single_strike(&s->mpa, octets);
	s->tx_msn[qn]--;
}
