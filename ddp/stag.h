/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * STags: names of registered memory (RFC 5041 section 7.1, RFC 5042). An STag is a
 * random 24-bit index and a random 8-bit key, so that names are sparse and hard to
 * guess. The table is not locked: its owner holds a lock over every call and, for
 * ddp_stag_check(), for as long as the pointer is used, so that an STag is dead when
 * ddp_stag_remove() returns.
 */
#ifndef DDP_STAG_H
#define DDP_STAG_H

#include <stdbool.h>
#include <stddef.h>

#include <wire/iwarp.h>
#include <wire/iwarp_fault.h>

enum ddp_stag_access {
	DDP_LOCAL_WRITE = 0x1,
	DDP_REMOTE_WRITE = 0x2,
	DDP_REMOTE_READ = 0x4,
	DDP_REMOTE_ATOMIC = 0x8,
};

struct ddp_region {
	__u64 to; /* tagged offset of the first octet */
	__u64 len;
	__u8 *addr;
	__u32 pd;    /* protection domain */
	__u32 stag;  /* written by ddp_stag_insert() */
	__u8 access; /* enum ddp_stag_access */
	bool valid;  /* false after an invalidation */
	bool shared; /* may not be invalidated by a peer */
};

struct ddp_stag_table {
	struct ddp_region **slots; /* open addressing by index; size is a power of two */
	__u32 size, used;
};

/* @capacity: regions expected; the table grows. -EINVAL: more than 2^23 */
int ddp_stag_table_init(struct ddp_stag_table *t, __u32 capacity);
void ddp_stag_table_uninit(struct ddp_stag_table *t);

/*
 * Gives @r an STag. The region stays the caller's and must stay where it is until
 * removed. -ENOMEM, -ENOSPC
 */
int ddp_stag_insert(struct ddp_stag_table *t, struct ddp_region *r);
void ddp_stag_remove(struct ddp_stag_table *t, struct ddp_region *r);
/* NULL: unknown, wrong key, invalidated */
struct ddp_region *ddp_stag_lookup(const struct ddp_stag_table *t, __u32 stag);

enum ddp_stag_error {
	DDP_STAG_OK,
	DDP_STAG_INVALID, /* unknown, wrong key, invalidated */
	DDP_STAG_STREAM,  /* another protection domain */
	DDP_STAG_ACCESS,
	DDP_STAG_WRAP, /* to + len is beyond 2^64 */
	DDP_STAG_BOUNDS,
};

/* May a stream of @pd use @len octets at @to in the way of @access? Then *@addr is the memory. */
enum ddp_stag_error ddp_stag_check(const struct ddp_stag_table *t, __u32 stag, __u32 pd, __u64 to,
				   __u64 len, unsigned int access, __u8 **addr);

/* The peer's invalidation: DDP_STAG_OK, _INVALID, or _STREAM (also for a shared region) */
enum ddp_stag_error ddp_stag_invalidate(struct ddp_stag_table *t, __u32 stag, __u32 pd);

/* How DDP (tagged placement) and RDMAP (source of a Read or Atomic) report it */
enum iwarp_fault ddp_stag_fault_tagged(enum ddp_stag_error e);
enum iwarp_fault ddp_stag_fault_rdmap(enum ddp_stag_error e);

#endif
