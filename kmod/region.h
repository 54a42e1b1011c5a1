/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of a program that is pinned: registered for the peer, or of one operation of ours.
 */
#ifndef KMOD_REGION_H
#define KMOD_REGION_H

#include <linux/types.h>

#include <warp/ddp.h>

#include "ddp/stag.h"

struct conn;
struct conn_region;
struct ddp_seg;

/*
 * DDP_REG_MR and DDP_DEREG_MR, without the socket's lock: these sleep. EINVAL, EFAULT, ENOMEM:
 * also RLIMIT_MEMLOCK; ENOTCONN.
 */
int conn_region_add(struct conn *c, const struct ddp_reg_mr *reg, __u32 *stag);
int conn_region_remove(struct conn *c, __u32 stag);
/* Nobody receives for the connection any more */
void conn_regions_uninit(struct conn *c);

/*
 * Memory of the calling process, pinned and counted; @access: of enum ddp_stag_access, 0: it is
 * only read here. These two sleep. EFAULT, ENOMEM
 */
int conn_region_pin(__u64 addr, __u64 len, unsigned int access, struct conn_region **out);
void conn_region_free(struct conn_region *region);
void conn_regions_free(struct list_head *list);
/* With the socket's lock: it gets an STag, by which no peer may invalidate it; -ENOMEM */
int conn_region_enter(struct conn *c, struct conn_region *region, __u32 *stag);
/*
 * With the socket's lock, also in a softirq: nobody reaches it any more, and it counts no longer;
 * the work frees it, or who pins the next one
 */
void conn_region_bury(struct conn *c, struct conn_region *region);
/* Without the lock: so a program has no more pinned than one call of it ends */
void conn_regions_reap(struct conn *c);
/* Octets between @p and the @n at offset @off, which are known to be the region's */
void conn_region_copy(const struct conn_region *region, __u64 off, __u8 *p, size_t n, bool in);

/* With the socket's lock, also in a softirq */
enum ddp_stag_error conn_region_check(const struct conn *c, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr);
/* @copy: else it is placed already, and only its right to be there is looked at */
enum iwarp_fault conn_region_place(struct conn *c, const struct ddp_seg *seg, unsigned int access,
				   bool copy);
/* Of memory that was checked: copies @n octets from @addr */
void conn_region_read(const struct conn *c, __u32 stag, const __u8 *addr, __u8 *to, size_t n);
/* Of memory that was checked: the aligned number at @addr, until conn_region_unmap() */
__u8 *conn_region_map(const struct conn *c, __u32 stag, const __u8 *addr);
void conn_region_unmap(__u8 *number);

#endif
