/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One row for each opcode: where its messages travel, what they look like, who builds and who
 * takes them.
 */
#ifndef RDMAP_OPCODE_H
#define RDMAP_OPCODE_H

#include "rdmap/rdmap.h"

/* A work request that becomes a DDP message: ddp.ulp_hdr points at hdr */
struct rdmap_msg {
	struct ddp_tx_msg ddp;
	union {
		struct rdmap_read_req read;
		struct rdmap_atomic_req atomic;
		__be64 imm;
	} hdr;
};

/* A segment received, and all that a handler needs */
struct rdmap_in {
	struct rdmap_stream *s;
	const struct rdmap_slots *slots;
	const struct rdmap_sink *sink;
	const struct rdmap_opcode_row *row;
	const struct ddp_seg *seg;
};

/* The slot of index @i of a ring that says it has @cap of them; there are @n */
static inline __u32 rdmap_slot(__u32 i, __u16 cap, __u16 n)
{
	return i % (cap && cap < n ? cap : n);
}

static inline struct rdmap_inbound *rdmap_slot_in(const struct rdmap_stream *s,
						  const struct rdmap_slots *slots, __u32 i)
{
	return &slots->in[rdmap_slot(i, base_once(s->in_cap), slots->ins)];
}

static inline struct rdmap_outbound *rdmap_slot_out(const struct rdmap_stream *s,
						    const struct rdmap_slots *slots, __u32 i)
{
	return &slots->out[rdmap_slot(i, base_once(s->out_cap), slots->outs)];
}

struct rdmap_opcode_row {
	bool tagged;
	__u8 qn;	 /* untagged */
	__u8 hdr_len;	 /* not 0: one segment of exactly so many octets */
	bool invalidate; /* octets 2-5 name an STag */
	bool solicited;
	bool answered; /* holds a slot of ORD until its Response */
	/* What of @wr goes where; NULL: not a work request. @req_id: for the Response to name. */
	void (*build)(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id);
	/*
	 * The segment agrees with the row; DDP's checks are the handler's, as only it knows the
	 * buffers
	 */
	enum iwarp_fault (*take)(const struct rdmap_in *in);
};

/* Indexed by enum rdmap_opcode */
extern const struct rdmap_opcode_row rdmap_opcodes[RDMAP_OPCODES];

/* rdmap_tx.c */
void rdmap_build_write(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id);
void rdmap_build_read(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id);
void rdmap_build_send(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id);
void rdmap_build_imm(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id);
void rdmap_build_atomic(struct rdmap_msg *m, const struct rdmap_wr *wr, __u32 req_id);

/* rdmap_rx.c */
enum iwarp_fault rdmap_take_write(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_read(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_read_response(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_send(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_terminate(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_imm(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_atomic(const struct rdmap_in *in);
enum iwarp_fault rdmap_take_atomic_response(const struct rdmap_in *in);

#endif
