/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Placement out of order: what TCP has behind a lost segment. All with the socket's lock.
 */
#ifndef KMOD_OOO_H
#define KMOD_OOO_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <net/tcp.h>

#include "mpa/mpa_ahead.h"

struct conn;
struct ddp_seg;

/* An FPDU whose CRC was found good before its turn */
struct ooo_fpdu {
	struct rb_node node;  /* by sequence number */
	struct rb_node place; /* by the two addresses, where its payload is in its place */
	__u64 first, last, subtree_last;
	__u32 seq, octets;
	bool placed;
	__u8 head[MPA_AHEAD_HEAD]; /* as it came */
};

struct conn_ooo {
	struct list_head runs; /* what has been looked at, by sequence number */
	struct rb_root_cached fpdus, places;
	struct tcp_sack_block seen[TCP_NUM_SACKS];
	__u8 *buf; /* of one FPDU */
	__u32 cap;
	__u32 run_count, fpdu_count;
	__u32 budget; /* what is left to the look under way */
	__u64 placed, octets, kept, work;
};

void conn_ooo_init(struct conn_ooo *o);
void conn_ooo_uninit(struct conn_ooo *o);

/* In any context: places what TCP has queued out of order since the last look */
void conn_ooo_look(struct conn *c);

/* In the order of the stream: the FPDU at @seq, of @octets, if it is placed; forgets all before */
struct ooo_fpdu *conn_ooo_find(struct conn *c, __u32 seq, __u32 octets);
void conn_ooo_forget(struct conn *c, struct ooo_fpdu *fpdu);
/* The payload of @seg, whose turn it is, was copied to its place: perhaps over later ones */
void conn_ooo_written(struct conn *c, const struct ddp_seg *seg);

#endif
