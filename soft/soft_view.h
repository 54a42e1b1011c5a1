/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front's block, and what one call sees of it. Part of soft_stream*.c.
 */
#ifndef SOFT_VIEW_H
#define SOFT_VIEW_H

#include <errno.h>

#include "base/bits.h"
#include "rnic/rnic_stream.h"
#include "soft/soft_core.h"
#include "soft/soft_region.h"

#define STREAM_MAGIC 0x57534f32u /* of this layout */
#define STREAM_IN_CAP (RNIC_STREAM_IN - MPA_PD_MAX)
/* Private data lies behind its frame, in the page that this has brought, until FPDUs come there */
#define STREAM_PD_AT MPA_START_MAX
/*
 * Reads are no part of a stream but for a zero-length one as RTR; the slots for the peer's are
 * twice as many as the depth
 */
#define STREAM_DEPTH 1
#define STREAM_IN_SLOTS 2
#define STREAM_OUT_SLOTS 1

struct soft_stream {
	__u32 magic;
	/* tx: the operation of which the kernel has tx_off bytes and not all */
	__u32 tx_off, tx_len, tx_stag;
	__u64 tx_to;
	struct soft_core core;
	struct rnic_window window[RNIC_WINDOWS];
	struct rdmap_inbound in[STREAM_IN_SLOTS];
	struct rdmap_outbound out[STREAM_OUT_SLOTS];
};

_Static_assert(sizeof(struct soft_stream) <= RNIC_STREAM_STATE, "struct soft_stream");
_Static_assert(SOFT_FPDU_MAX <= RNIC_STREAM_REST, "rest");
_Static_assert(2 * SOFT_FPDU_MAX <= STREAM_IN_CAP, "in");
_Static_assert(STREAM_PD_AT + MPA_PD_MAX <= 4096, "private data");

/* One call's view */
struct soft_view {
	struct soft_stream *st;
	struct llp llp;
	struct soft_io io;
	struct soft_regions *regions;
	struct rdmap_source source;
};

static inline struct soft_stream *soft_stream_of(const struct rnic_stream_mem *mem)
{
	return mem->state;
}

/* The slots that belong to the state, or those of the process's regions */
static inline struct rdmap_slots soft_slots_view(struct soft_stream *st, struct soft_regions *r)
{
	return r ? (struct rdmap_slots)RDMAP_SLOTS(r->in, r->out)
		 : (struct rdmap_slots)RDMAP_SLOTS(st->in, st->out);
}

static inline int soft_view_init(struct soft_view *v, const struct rnic_stream_mem *mem, int fd)
{
	struct soft_stream *st = soft_stream_of(mem);
	struct soft_regions *r = (struct soft_regions *)(void *)mem->regions;

	if (base_once(st->magic) != STREAM_MAGIC)
		return -EBADMSG;
	v->st = st;
	v->regions = r;
	v->source = soft_regions_source(r, st->core.rdmap.ddp.mpa.flags & MPA_F_CRC);
	llp_tcp_view(&v->llp, fd);
	v->io = (struct soft_io){
		.core = &st->core,
		.llp = &v->llp,
		.slots = soft_slots_view(st, r),
		/* Of each only who has its lock makes use */
		.rest = base_once(mem->rest),
		.rest_take = mem->rest_take,
		.mem = mem,
		.reserve = mem->reserve,
		.in = base_once(mem->in),
		.in_cap = STREAM_IN_CAP,
		.pd_at = STREAM_PD_AT,
	};
	return 0;
}

/* --- soft_stream_tx.c: tx; as rnic_stream_ops has them --- */

int soft_stream_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		     unsigned int n);
unsigned int soft_stream_segment(const struct rnic_stream_mem *mem, unsigned int message);
int soft_stream_flush(const struct rnic_stream_mem *mem, int fd);
bool soft_stream_owes(const struct rnic_stream_mem *mem);
int soft_stream_shutdown(const struct rnic_stream_mem *mem, int fd);

/* --- soft_stream_rx.c: rx --- */

ssize_t soft_stream_receive(const struct rnic_stream_mem *mem, int fd, const struct rnic_sink *sink,
			    size_t budget);

#endif
