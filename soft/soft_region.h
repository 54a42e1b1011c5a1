/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SOFT_REGION_H
#define SOFT_REGION_H

#include "rdmap/rdmap.h"
#include "rnic/rnic_onesided.h"

/* The deepest; slots for the peer's requests are twice as many (rdmap.h) */
#define SOFT_REGION_DEPTH 16
#define SOFT_REGION_IN_SLOTS (2 * SOFT_REGION_DEPTH)
#define SOFT_REGION_OUT_SLOTS SOFT_REGION_DEPTH
#define SOFT_REGION_HELD (256 * 1024u)

struct soft_regions {
	struct rnic_regions regions;
	struct ddp_stag_table table;
	struct ddp_region sink;
	bool closed; /* what would go to the sink goes nowhere */
	struct rdmap_inbound in[SOFT_REGION_IN_SLOTS];
	struct rdmap_outbound out[SOFT_REGION_OUT_SLOTS];
	size_t held_used;	     /* tx */
	__u8 held[SOFT_REGION_HELD]; /* tx: copies of what the peer reads */
};

int soft_regions_create(struct soft_regions **out);
void soft_regions_destroy(struct rnic_regions *regions);
int soft_regions_add(struct rnic_regions *regions, void *addr, size_t len, unsigned int access,
		     uint32_t *stag);
int soft_regions_remove(struct rnic_regions *regions, uint32_t stag);
void soft_regions_close(struct rnic_regions *regions);
/* @r NULL: there are none. @crc: copies are taken of what leaves */
struct rdmap_source soft_regions_source(struct soft_regions *r, bool crc);
/* Bytes for a region, or why not */
enum iwarp_fault soft_regions_place(const struct soft_regions *r, const struct ddp_seg *seg,
				    unsigned int access);

#endif
