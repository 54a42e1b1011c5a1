/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs on their way out (RFC 5044 sections 4.1 to 4.5).
 *
 * An FPDU is appended to a struct mpa_txv as iovec entries: what MPA and the layers above make
 * (length, headers, markers, pad, CRC) is copied to scratch, payload is only referred to.
 * Scratch entries that touch become one, so an FPDU without markers is one entry in front of its
 * payload and one behind it, and the latter takes the head of the next FPDU in.
 *
 * Room is checked once, for the worst case, before anything is written; from there on nothing
 * can fail. The way without markers stands apart, because it is the one that every stream takes.
 */
#include "mpa/mpa.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "mpa/mpa_marker.h"

static const __u8 zeroes[MPA_CRC_LEN];

__u16 mpa_mulpdu(unsigned int emss, bool markers)
{
	const __u32 most = base_min(emss, (unsigned int)MPA_ULPDU_MAX);
	const __u32 marked = (most + MPA_MARKER_EVERY - 1) / MPA_MARKER_EVERY * MPA_MARKER_LEN;
	const __u32 over = MPA_LEN_FIELD + MPA_CRC_LEN + most % 4 + (markers ? marked : 0);

	if (most < over + MPA_MULPDU_MIN)
		return MPA_MULPDU_MIN;
	return base_min(most - over, (__u32)MPA_MULPDU_MAX);
}

void mpa_conn_set_emss(struct mpa_conn *c, unsigned int emss)
{
	c->emss = base_min(emss, (unsigned int)MPA_ULPDU_MAX);
	c->mulpdu = mpa_mulpdu(emss, c->flags & MPA_F_TX_MARKERS);
}

static inline __u8 *scratch_end(const struct mpa_txv *v)
{
	return v->scratch + v->used;
}

/* The next @n octets of scratch, already written, go out */
static inline void push_scratch(struct mpa_txv *v, __u32 n)
{
	__u8 *s = scratch_end(v);
	struct iovec *last = v->niov ? &v->iov[v->niov - 1] : NULL;

	if (last && (__u8 *)last->iov_base + last->iov_len == s)
		last->iov_len += n;
	else
		v->iov[v->niov++] = (struct iovec){ s, n };
	v->used += n;
	v->octets += n;
}

static inline void push_payload(struct mpa_txv *v, void *base, __u32 n)
{
	if (!n)
		return;
	v->iov[v->niov++] = (struct iovec){ base, n };
	v->octets += n;
}

/* An FPDU being cut at marker positions */
struct cut {
	struct mpa_txv *v;
	__u32 gap;   /* octets until the next marker */
	__u32 at;    /* octets of this FPDU so far */
	__u32 start; /* of ULPDU_Length */
	__u32 crc;
};

static void cut_marker(struct cut *k)
{
	__u8 *s = scratch_end(k->v);

	if (k->gap)
		return;
	mpa_marker_put(s, k->at ? k->at - k->start : 0);
	k->crc = base_crc32c(k->crc, s, MPA_MARKER_LEN);
	push_scratch(k->v, MPA_MARKER_LEN);
	k->at += MPA_MARKER_LEN;
	k->gap = MPA_MARKER_ROOM;
}

/* How many of @n octets come before the next marker */
static __u32 cut_take(struct cut *k, const void *p, __u32 n)
{
	cut_marker(k);
	n = base_min(n, k->gap);
	k->crc = base_crc32c(k->crc, p, n);
	k->at += n;
	k->gap -= n;
	return n;
}

static void cut_copy(struct cut *k, const __u8 *p, __u32 n)
{
	for (__u32 take; n; p += take, n -= take) {
		take = cut_take(k, p, n);
		memcpy(scratch_end(k->v), p, take);
		push_scratch(k->v, take);
	}
}

static void cut_refer(struct cut *k, __u8 *p, __u32 n)
{
	for (__u32 take; n; p += take, n -= take) {
		take = cut_take(k, p, n);
		push_payload(k->v, p, take);
	}
}

static void put_crc(const struct mpa_conn *c, __u8 *at, __u32 raw)
{
	base_put_le32(at, c->flags & MPA_F_CRC ? base_crc32c_final(raw) : 0);
}

/* What one FPDU is made of */
struct parts {
	const void *hdr;
	const struct iovec *pl;
	__u32 hdr_len, npl;
	__u32 ulpdu, pad;
};

static __attribute__((__noinline__)) void fpdu_marked(struct mpa_conn *c, struct mpa_txv *v,
						      const struct parts *f)
{
	const __u32 gap = mpa_marker_gap(c->tx_phase);
	struct cut k = { v, gap, 0, mpa_marker_start(gap), BASE_CRC32C_INIT };
	__u8 length[MPA_LEN_FIELD];

	base_put_be16(length, f->ulpdu);
	cut_copy(&k, length, sizeof(length));
	cut_copy(&k, f->hdr, f->hdr_len);
	for (__u32 i = 0; i < f->npl; i++)
		cut_refer(&k, f->pl[i].iov_base, f->pl[i].iov_len);
	cut_copy(&k, zeroes, f->pad);
	cut_marker(&k);
	put_crc(c, scratch_end(v), k.crc);
	push_scratch(v, MPA_CRC_LEN);
	c->tx_phase = mpa_marker_phase(k.gap - MPA_CRC_LEN);
}

static inline __u32 pad_of(__u32 ulpdu)
{
	return -(MPA_LEN_FIELD + ulpdu) & 3;
}

/* Length, pad and CRC of an FPDU without markers whose header is in place: the octets at @tail */
static inline __u32 plain_seal(const struct mpa_conn *c, __u8 *head, __u32 head_len,
			       const struct iovec *pl, __u32 npl, __u32 ulpdu, __u8 *tail)
{
	const __u32 pad = pad_of(ulpdu);
	__u32 crc = BASE_CRC32C_INIT;

	base_put_be16(head, ulpdu);
	memcpy(tail, zeroes, sizeof(zeroes));
	if (c->flags & MPA_F_CRC) {
		crc = base_crc32c(crc, head, head_len);
		crc = base_crc32c_iov(crc, pl, npl);
		crc = base_crc32c(crc, zeroes, pad);
	}
	put_crc(c, tail + pad, crc);
	return pad + MPA_CRC_LEN;
}

static inline void fpdu_plain(struct mpa_conn *c, struct mpa_txv *v, const struct parts *f)
{
	const __u32 head_len = MPA_LEN_FIELD + f->hdr_len;
	__u8 *head = scratch_end(v);

	if (f->hdr_len)
		memcpy(head + MPA_LEN_FIELD, f->hdr, f->hdr_len);
	push_scratch(v, head_len);
	for (__u32 i = 0; i < f->npl; i++)
		push_payload(v, f->pl[i].iov_base, f->pl[i].iov_len);
	push_scratch(v, plain_seal(c, head, head_len, f->pl, f->npl, f->ulpdu, scratch_end(v)));
}

/* 0, or -EMSGSIZE; the sum cannot wrap, for it stops at the limit */
static int measure(struct parts *f, size_t hdr_len)
{
	size_t left = MPA_MULPDU_MAX;

	if (hdr_len > left)
		return -EMSGSIZE;
	left -= hdr_len;
	for (__u32 i = 0; i < f->npl; i++) {
		if (f->pl[i].iov_len > left)
			return -EMSGSIZE;
		left -= f->pl[i].iov_len;
	}
	f->hdr_len = hdr_len;
	f->ulpdu = MPA_MULPDU_MAX - left;
	f->pad = pad_of(f->ulpdu);
	return 0;
}

/* Each marker may be an entry of its own and cut a piece in two */
static bool has_room(const struct mpa_txv *v, const struct parts *f, __u32 markers)
{
	const __u32 own = MPA_LEN_FIELD + f->hdr_len + f->pad + MPA_CRC_LEN;

	return v->iov_cap - v->niov >= f->npl + 2 + 2 * markers &&
	       v->scratch_cap - v->used >= own + MPA_MARKER_LEN * markers;
}

int mpa_tx_fpdu(struct mpa_conn *c, struct mpa_txv *v, const void *hdr, size_t hdr_len,
		const struct iovec *pl, unsigned int npl)
{
	struct parts f = { .hdr = hdr, .pl = pl, .npl = npl };
	const __u64 before = v->octets;
	__u32 markers = 0;

	if (measure(&f, hdr_len))
		return -EMSGSIZE;
	if (c->flags & MPA_F_TX_MARKERS)
		markers = mpa_marker_count(mpa_marker_gap(c->tx_phase),
					   MPA_LEN_FIELD + f.ulpdu + f.pad);
	if (!has_room(v, &f, markers))
		return -ENOBUFS;
	if (c->flags & MPA_F_TX_MARKERS)
		fpdu_marked(c, v, &f);
	else
		fpdu_plain(c, v, &f);
	c->tx_fpdus++;
	c->tx_octets += v->octets - before;
	return 0;
}

bool mpa_tx_single(const struct mpa_conn *c, struct mpa_single *f, __u32 hdr_len,
		   const struct iovec *pl, unsigned int npl, __u32 len)
{
	if (c->flags & MPA_F_TX_MARKERS || len > MPA_MULPDU_MAX - hdr_len)
		return false;
	f->head_len = MPA_LEN_FIELD + hdr_len;
	f->tail_len = plain_seal(c, f->head, f->head_len, pl, npl, hdr_len + len, f->tail);
	f->octets = f->head_len + len + f->tail_len;
	return true;
}

void mpa_tx_single_count(struct mpa_conn *c, const struct mpa_single *f)
{
	c->tx_fpdus++;
	c->tx_octets += f->octets;
}

void mpa_tx_single_strike(struct mpa_conn *c, __u32 octets)
{
	c->tx_fpdus--;
	c->tx_octets -= octets;
}
