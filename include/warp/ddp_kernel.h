/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DDP sockets of the kernel module warp_ddp: how a connection is handed over to it. See
 * docs/kernel-module.md.
 *
 *	setsockopt(fd, SOL_TCP, TCP_ULP, "ddp", 4);
 *	setsockopt(fd, SOL_DDP, DDP_HANDOVER, &handover, sizeof(handover));
 *
 * TCP_ULP, on a connected TCP socket: ENOENT: the module is not there; ENOTCONN; EEXIST: it has
 * another upper-layer protocol; EBUSY: somebody else, such as a sockmap, has taken it over. Until
 * DDP_HANDOVER the socket stays one of TCP, so that start-up may also come in between.
 *
 * Or TCP_ULP, DDP_MODE and perhaps DDP_CRC and DDP_MARKERS of warp/ddp.h on a socket that listens:
 * then the sockets that accept() returns start up in the kernel, and are as if they had been handed
 * over, with DDP_KERNEL_DEPTH_MAX for ird and ord and DDP_KERNEL_RECV_DEFAULT for recv_max. The
 * program that accepts need know nothing of it. accept() does not wait for start-up. Until that is
 * over the socket is neither readable nor writable, and control messages are ENOTCONN. What is no
 * Request ends by ECONNRESET, also one with private data, which is rejected; none within ten
 * seconds, by ETIMEDOUT. EISCONN: it does not listen; EOPNOTSUPP: DDP_MODE_AUTO.
 *
 * Behind DDP_HANDOVER each sendmsg() is one Send of RDMAP, and each recvmsg() takes one: MSG_EOR is
 * set, a message of no octets included, so 0 without it is the end; MSG_TRUNC where it did not fit,
 * and the rest is gone. ECONNRESET: the connection ended by a fault, and DDP_INFO has the fields of
 * the Terminate. EMSGSIZE: a message longer than DDP_KERNEL_SEND_MAX. EOPNOTSUPP: MSG_OOB,
 * MSG_ZEROCOPY, splice() from it, TCP_REPAIR and other ways to TCP's own octets.
 *
 * DDP_INFO, DDP_REG_MR, DDP_DEREG_MR, and the control messages DDP_CMSG_WRITE, _READ, _ATOMIC and
 * _COMPLETION are those of warp/ddp.h, but: memory that is registered, or belongs to an operation
 * that has not completed, is pinned and counts against RLIMIT_MEMLOCK, ENOMEM beyond it; only a
 * Write of up to 16 KiB is copied instead. A registration of more than 1 GiB is EINVAL. EFAULT:
 * memory that may not be written to, but for the source of a Write. EOPNOTSUPP: a Read or Atomic
 * where ord is 0. When our side shuts for writing, or the connection ends, operations that TCP does
 * not have complete as DDP_STATUS_FLUSHED. The other options of warp/ddp.h are ENOPROTOOPT, its
 * other control messages EINVAL.
 */
#ifndef WARP_DDP_KERNEL_H
#define WARP_DDP_KERNEL_H

#include <linux/types.h>

#include <warp/ddp.h>

#define DDP_ULP_NAME "ddp"
#define DDP_KERNEL_SEND_MAX 65536
#define DDP_KERNEL_RECV_DEFAULT 65536
#define DDP_KERNEL_RECV_MAX 1048576
#define DDP_KERNEL_LEFT_MAX 131072
#define DDP_KERNEL_DEPTH_MAX 16
#define DDP_KERNEL_OPS_MAX 256 /* operations whose completion the program has not taken */

enum ddp_kernel_option {
	DDP_HANDOVER = 64,     /* struct ddp_handover, to set, once */
	DDP_COMPLETIONS = 65,  /* __u32, entries of a struct ddp_completion_ring, to set, once */
	DDP_KERNEL_STATS = 66, /* struct ddp_kernel_stats, to read; a shorter one: its beginning */
};

enum ddp_handover_flag {
	DDP_HANDOVER_RESPONDER = 0x01,	/* we sent the Reply */
	DDP_HANDOVER_CRC = 0x02,	/* agreed, for both directions */
	DDP_HANDOVER_TX_MARKERS = 0x04, /* the peer asked for them */
	DDP_HANDOVER_RX_MARKERS = 0x08, /* we asked for them */
	DDP_HANDOVER_GATED = 0x10,	/* a responder's: no FPDU has come yet, so none may leave */
	DDP_HANDOVER_ALIGNED = 0x20,	/* each FPDU is to begin a TCP segment */
};

/*
 * What start-up came to. Numbers are in host order. EINVAL: a value out of its range, an unknown
 * flag, another size, or reserved octets that are not 0; EALREADY: it was handed over; ENOTCONN;
 * EFAULT; ENOMEM.
 */
struct ddp_handover {
	__u32 flags;	/* enum ddp_handover_flag */
	__u32 mulpdu;	/* 128 to 64768: send none longer; 0: what a TCP segment holds */
	__u32 recv_max; /* octets of the longest message to receive; 0: 65536 */
	__u16 ird, ord; /* as agreed, up to DDP_KERNEL_DEPTH_MAX */
	__u32 tx_msn[4], rx_msn[4]; /* by queue: MSN of the next message; 1 where none was sent */
	__u16 tx_phase, rx_phase;   /* octets since the last marker position, 0 to 508 */
	__u32 left_len;		    /* octets behind start-up that were read from the socket */
	__u64 left;		    /* their address */
	__u32 reserved[2];	    /* 0 */
};

/*
 * Completions by memory that the program and the kernel share: mmap(NULL, octets, PROT_READ |
 * PROT_WRITE, MAP_SHARED, fd, 0), 128 octets and 24 for each entry. DDP_COMPLETIONS makes it:
 * EINVAL: no power of two, or more than DDP_KERNEL_OPS_MAX; EBUSY: there is one, or an operation is
 * not complete; ENOTCONN, ENOMEM. From then on recvmsg() with MSG_ERRQUEUE gets none. POLLERR as
 * long as head and tail differ; ENOBUFS: all entries are taken or promised.
 *
 * The program reads tail (acquire), then entry[head % entries], then writes head (release).
 * @messages grows with each message that recvmsg() can take, so a program may spin on both.
 */
struct ddp_completion_ring {
	__u32 tail; /* of the kernel's: completions ever */
	__u32 entries;
	__u64 messages;
	__u32 reserved[12];
	__u32 head; /* of the program's: completions taken ever */
	__u32 reserved2[15];
	struct ddp_completion entry[DDP_KERNEL_OPS_MAX]; /* no more than @entries are mapped */
};

/* Placement out of order: payload that was in its place before all octets before it had come */
struct ddp_kernel_stats {
	__u64 early_segments; /* of DDP */
	__u64 early_octets;
	__u64 early_kept; /* segments whose turn has come, and that were not copied again */
	__u64 early_work; /* octets looked at before their turn, and 64 for each step to them */
};

#endif
