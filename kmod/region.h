/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef KMOD_REGION_H
#define KMOD_REGION_H

#include <linux/types.h>

#include <warp/ddp.h>

#include "ddp/stag.h"

struct conn;
struct ddp_seg;

/*
 * DDP_REG_MR and DDP_DEREG_MR, without the socket's lock: these sleep. EINVAL, EFAULT, ENOMEM:
 * also RLIMIT_MEMLOCK; ENOTCONN.
 */
int conn_region_add(struct conn *c, const struct ddp_reg_mr *reg, __u32 *stag);
int conn_region_remove(struct conn *c, __u32 stag);
/* Nobody receives for the connection any more */
void conn_regions_uninit(struct conn *c);

/* With the socket's lock, also in a softirq */
enum ddp_stag_error conn_region_check(const struct conn *c, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr);
enum iwarp_fault conn_region_place(struct conn *c, const struct ddp_seg *seg, unsigned int access);
/* Of memory that was checked: copies @n octets from @addr */
void conn_region_read(const struct conn *c, __u32 stag, const __u8 *addr, __u8 *to, size_t n);

#endif
