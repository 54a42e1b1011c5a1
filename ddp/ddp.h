/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DDP: direct data placement (RFC 5041). Cuts messages into segments, and says of each
 * segment received where it belongs. Pure, as mpa.h: no I/O, no allocation, no pointers
 * kept in struct ddp_stream.
 */
#ifndef DDP_DDP_H
#define DDP_DDP_H

#include "mpa/mpa.h"

struct ddp_stream {
	struct mpa_conn mpa;
	__u32 tx_msn[DDP_QUEUES]; /* of the next message to begin, or of the one in progress */
	__u32 rx_msn[DDP_QUEUES];
	__u32 rx_mo[DDP_QUEUES]; /* octets of the message in progress */
	/* the tagged message in progress: every segment names its place, all must be one message */
	__u64 rx_to;
	__u32 rx_stag;
	__u8 rx_tagged;	  /* a tagged message is in progress */
	__u8 rx_untagged; /* bit QN: an untagged message is in progress */
	__u8 rx_ulp;	  /* its RsvdULP octet */
	__u8 pad;
};

void ddp_stream_init(struct ddp_stream *s, enum mpa_role role, const struct mpa_config *config);

/* A message to send: the ULP's part of the header, then @ulp_hdr, then @len octets of @sg */
struct ddp_tx_msg {
	bool tagged;
	__u8 rsvdulp;
	__u32 rsvdulp32; /* untagged: octets 2-5 */
	__u32 qn;	 /* untagged */
	__u32 stag;	 /* tagged */
	__u64 to;
	const void *ulp_hdr; /* counts as payload for DDP; only in single-segment messages */
	__u32 ulp_hdr_len;
	__u32 len;
	const struct iovec *sg;
	unsigned int nsg;
};

#ifndef DDP_SGE_MAX    /* the kernel's stack has room for fewer */
#define DDP_SGE_MAX 64 /* pieces of one segment */
#endif

/*
 * Appends the segment of @m that begins at payload octet @off. Returns the payload
 * octets taken (0 for a message without any) and sets *@last; -ENOBUFS: no room,
 * nothing has changed. The MSN moves on with the last segment.
 */
ssize_t ddp_tx_segment(struct ddp_stream *s, struct mpa_txv *v, const struct ddp_tx_msg *m,
		       __u32 off, bool *last);

/*
 * An untagged message of one segment by itself (mpa_tx_single()); @m->sg is @m->len octets long.
 * False: it is not to be sent so
 */
bool ddp_tx_single(const struct ddp_stream *s, struct mpa_single *f, const struct ddp_tx_msg *m);
void ddp_tx_single_count(struct ddp_stream *s, const struct mpa_single *f, __u32 qn);
void ddp_tx_single_strike(struct ddp_stream *s, __u32 octets, __u32 qn);

/* A received segment taken apart; pointers are into the ULPDU */
struct ddp_seg {
	bool tagged, last;
	__u8 rsvdulp;
	__u8 hdr_len;
	__u32 rsvdulp32, qn, msn, mo; /* untagged */
	__u32 stag;		      /* tagged */
	__u64 to;
	const __u8 *hdr;
	const __u8 *payload;
	__u32 len; /* payload octets */
};

/*
 * 0, or the fault: too short, wrong version. @seg->hdr_len is 0 when not even the
 * header is there.
 */
enum iwarp_fault ddp_rx_parse(const __u8 *ulpdu, size_t n, struct ddp_seg *seg);

/*
 * Is this the segment that the stream must bring next? Untagged: MSN and MO against the
 * queue; @depth buffers are ready there (0: DDP_E_U_NOBUF for a new message), each of
 * @buf_len octets (the one of this MSN; -1: not known yet). Tagged: one message is not
 * interrupted by another. Nothing changes; ddp_rx_accept() takes note of a segment that
 * has been placed.
 */
enum iwarp_fault ddp_rx_check_untagged(const struct ddp_stream *s, const struct ddp_seg *seg,
				       unsigned int depth, __u64 buf_len);
enum iwarp_fault ddp_rx_check_tagged(const struct ddp_stream *s, const struct ddp_seg *seg);
void ddp_rx_accept(struct ddp_stream *s, const struct ddp_seg *seg);

/* Octets of the message that @seg ends (untagged) */
static inline __u64 ddp_seg_message_len(const struct ddp_seg *seg)
{
	return (__u64)seg->mo + seg->len;
}

/*
 * Copies between a scatter list and plain memory from octet @off of the list on; the
 * caller has checked the bounds
 */
void ddp_scatter(const struct iovec *sg, unsigned int nsg, __u64 off, const void *src, size_t len);
/*
 * Refers to bytes @off..@off+*@len of @sg in @out, which has room for @cap pieces: the number of
 * pieces, and *@len becomes the bytes that they cover
 */
unsigned int ddp_gather(const struct iovec *sg, unsigned int nsg, __u64 off, size_t *len,
			struct iovec *out, unsigned int cap);

#endif
