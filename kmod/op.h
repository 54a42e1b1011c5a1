/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program wants to leave, in its order: messages, and one-sided operations with their
 * completions. All with the socket's lock but where it says so.
 */
#ifndef KMOD_OP_H
#define KMOD_OP_H

#include <linux/types.h>

#include <warp/ddp.h>

#include "rdmap/rdmap.h"

struct conn;
struct conn_region;
struct msghdr;
struct vm_area_struct;

struct conn_op {
	struct list_head list; /* conn->tx.queue, then ->begun, then ->done */
	struct rdmap_wr wr;
	struct kvec data;	    /* a message, a short Write: a copy; else NULL */
	struct conn_region *memory; /* source of a long Write, or sink */
	__u64 cookie;
	__u32 sent; /* octets that have been built */
	__u32 type; /* DDP_CMSG_WRITE, _READ, _ATOMIC; DDP_CMSG_SEND: nobody is told */
	__u32 status;
	bool over;
};

/*
 * sendmsg() with a control message of SOL_DDP, without the lock: 0, or what warp/ddp.h says. 1:
 * there is none.
 */
int conn_op_sendmsg(struct conn *c, struct msghdr *msg);
/* A message of @len octets; the lock may be held or not */
int conn_op_message(struct msghdr *msg, size_t len, struct conn_op **out);
void conn_op_enter(struct conn *c, struct conn_op *op);

/* All of it is with TCP; also in a softirq: its answer is here */
void conn_op_left(struct conn *c, struct conn_op *op);
void conn_op_answered(struct conn *c, struct conn_op *op, __u64 value);
/* The connection will not send, or will not get answers; also in a softirq */
void conn_ops_flush_queue(struct conn *c);
void conn_ops_flush_begun(struct conn *c);
void conn_ops_uninit(struct conn *c);

/* MSG_ERRQUEUE, without the lock: -EAGAIN: no completion waits; -EMSGSIZE: no room for it */
int conn_op_collect(struct conn *c, struct msghdr *msg);
/* Is there one? Without the lock too */
bool conn_op_told(const struct conn *c);

/* ring.c */
struct conn_ring;
/* @entries, a power of two; -EINVAL, -EBUSY: there is one, or operations are under way; -ENOMEM */
int conn_ring_create(struct conn *c, __u32 entries);
void conn_ring_destroy(struct conn_ring *ring);
/* Without the lock: mmap() holds another */
int conn_ring_mmap(struct conn_ring *ring, struct vm_area_struct *vma);
/* Completions that the program has not taken; as it says, so up to all entries */
__u32 conn_ring_used(const struct conn_ring *ring);
__u32 conn_ring_entries(const struct conn_ring *ring);
bool conn_ring_put(struct conn_ring *ring, const struct ddp_completion *completion);
void conn_ring_message(struct conn_ring *ring, __u64 count);

#endif
