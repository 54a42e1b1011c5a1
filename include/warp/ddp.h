/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extended sockets: DDP through the socket calls that a program has. See warp_ddp(7).
 *
 * Source of these numbers is this file; they are the same whoever serves them, the interposer or
 * the kernel. Where neither does, the options fail with ENOPROTOOPT, and a control message of
 * this level has no effect on a TCP socket: what it is about stands inside the message, and
 * msg_iov, which a TCP socket would send, must be empty. Sizes are octets, addresses those of the
 * calling process, numbers in the byte order of the host.
 */
#ifndef WARP_DDP_H
#define WARP_DDP_H

#include <linux/types.h>

#include <warp/ddp_reason.h>

#ifndef SOL_DDP
#define SOL_DDP 5041 /* the RFC of DDP */
#endif

/* --- options ------------------------------------------------------------------------------ */

/*
 * "before": of a socket that is neither connected nor listening, else EISCONN; a listener's are
 * those of the sockets that it accepts. DDP_CRC to DDP_RING, DDP_MAPS: ENOPROTOOPT for a socket
 * that neither DDP_MODE nor a rule has made one for DDP. EINVAL: a size or a value that makes no
 * sense.
 */
enum ddp_option {
	DDP_MODE = 1,	  /* int, enum ddp_mode; before */
	DDP_CRC = 2,	  /* int, 0 or 1: ask for CRC32c; the peer may as well; before */
	DDP_MARKERS = 3,  /* int, 0 or 1: ask for markers; before */
	DDP_PROVIDER = 4, /* its name, up to 15 octets, or "" for the default; ENODEV; before */
	DDP_RING = 5,	  /* int, 8 KiB to 64 MiB, made a power of two: octets that the peer may */
			  /* send before they are read; before */
	DDP_INFO = 6,	  /* struct ddp_info, to read; a shorter one gets its beginning */
	DDP_REG_MR = 7,	  /* struct ddp_reg_mr, to set */
	DDP_DEREG_MR = 8, /* __u32, an STag of DDP_REG_MR, to set: then no peer reaches it */
	DDP_MAPS = 9,	/* int, 0 to 128: mappings that the peer may have; before, but a listener */
			/* may be set, too: then for those that it accepts later */
	DDP_MAP = 10,	/* struct ddp_map, to set */
	DDP_UNMAP = 11, /* struct ddp_map of a DDP_MAP, to set: then no peer reaches it */
};

enum ddp_mode {
	DDP_MODE_OFF = 0,
	DDP_MODE_ON = 1,    /* DDP, or connect() fails; a peer without it is reset */
	DDP_MODE_AUTO = 2,  /* DDP where the peer speaks it, else TCP */
	DDP_MODE_RULES = 3, /* read only: neither was set, the rules of the host decide */
};

/* What both ends of a connection can, as ddp_info.features has it */
enum ddp_feature {
	DDP_FEATURE_ABORT = 0x02,
	DDP_FEATURE_INLINE = 0x04,
	DDP_FEATURE_MESSAGES = 0x08, /* DDP_CMSG_SEND */
	DDP_FEATURE_ONESIDED = 0x10, /* DDP_REG_MR, DDP_CMSG_WRITE, _READ, _ATOMIC */
	DDP_FEATURE_URGENT = 0x20,   /* MSG_OOB */
};

/* A Terminate's fields (RFC 5040 section 4.8) */
struct ddp_fault {
	__u8 present; /* 0: there was none, and the others are 0 */
	__u8 layer;
	__u8 type;
	__u8 code;
};

struct ddp_info {
	__u32 mode;	 /* enum ddp_mode */
	__u32 connected; /* 1: on DDP, and start-up is over */
	__u32 reason;	 /* enum ddp_reason: why it is not on DDP, or ended; 0: it is */
	__u32 features;	 /* enum ddp_feature, in force; other bits may be set */
	char provider[16];
	__u8 mpa_rev;
	__u8 crc;	 /* 1: each FPDU has one */
	__u8 tx_markers; /* 1: we send them */
	__u8 rx_markers;
	__u32 mulpdu;
	__u32 ring;
	__u16 ird, ord;		      /* Reads and Atomics at once: of the peer's, of ours */
	struct ddp_fault local, peer; /* found here, found by the peer */
	__u64 tx_octets, rx_octets;   /* the program's, with those of user messages */
	__u64 tx_fpdus, rx_fpdus;
	__u64 tx_messages, rx_messages; /* user messages */
	__u64 operations;		/* one-sided operations that were begun */
};

enum ddp_access {
	DDP_ACCESS_REMOTE_WRITE = 0x2,
	DDP_ACCESS_REMOTE_READ = 0x4,
	DDP_ACCESS_REMOTE_ATOMIC = 0x8,
};

/*
 * Memory that the peer of this connection may use while the program does something else. It
 * must stay mapped until DDP_DEREG_MR or close(). The tagged offset of its first octet is its
 * address. EOPNOTSUPP: the peer has no DDP_FEATURE_ONESIDED; EXDEV: another process uses
 * one-sided operations of this connection; ENOTCONN, EFAULT, ENOMEM.
 */
struct ddp_reg_mr {
	__u64 addr, length;
	__u64 stag;	/* address of the __u32 that gets the STag */
	__u32 access;	/* enum ddp_access */
	__u32 reserved; /* 0 */
};

/*
 * Memory that the peer may write to by DDP_CMSG_WRITE_MAPPED, or, where it is a program of
 * rsockets, by riowrite(): there it begins at @offset, which the program chooses. As DDP_REG_MR,
 * and: EOPNOTSUPP: the peer offers no mappings; ENOMEM: it offers no more; ENOBUFS: to rsockets no
 * more can be told of over this connection, for it does not give back what each costs; EAGAIN: as
 * of a send() that would wait. DDP_UNMAP: EINVAL: it was not mapped; the peer is not told.
 */
struct ddp_map {
	__u64 addr, length; /* up to 4 GiB less 1 */
	__u64 offset;	    /* DDP_UNMAP: not looked at */
};

/* --- control messages: level SOL_DDP, one in a sendmsg() ---------------------------------- */

enum ddp_cmsg {
	DDP_CMSG_SEND = 1,	   /* struct ddp_send; sendmsg() and recvmsg() */
	DDP_CMSG_WRITE = 2,	   /* struct ddp_rdma; sendmsg() */
	DDP_CMSG_READ = 3,	   /* struct ddp_rdma; sendmsg() */
	DDP_CMSG_ATOMIC = 4,	   /* struct ddp_atomic; sendmsg() */
	DDP_CMSG_COMPLETION = 5,   /* struct ddp_completion; recvmsg() with MSG_ERRQUEUE */
	DDP_CMSG_WRITE_MAPPED = 6, /* struct ddp_rdma; sendmsg() */
};

/*
 * A user message: boundaries are kept, and its place among the octets of the stream. sendmsg()
 * returns its length and waits as for octets. recvmsg() with room for this control message gets
 * it when it is next, its octets in msg_iov, MSG_EOR set, and MSG_TRUNC when they did not fit:
 * the rest is gone. Any other call that reads fails with EBADMSG while one is next. EMSGSIZE:
 * longer than DDP_MESSAGE_MAX, or than half of the peer's ring less 16. EOPNOTSUPP: the peer has
 * no DDP_FEATURE_MESSAGES.
 */
struct ddp_send {
	__u64 addr; /* received: 0 */
	__u64 length;
};
#define DDP_MESSAGE_MAX 65536

/*
 * Octets between our memory and the peer's. The memory must not be changed (a Read's: be used)
 * until the completion is there. sendmsg() returns 0 and does not wait: what cannot leave now
 * leaves later, before all that is sent later. ENOBUFS: take completions first. EOPNOTSUPP,
 * EXDEV as above; EINVAL: longer than 1 GiB, or a msg_iov that is not empty; EPIPE: our side is
 * shut.
 *
 * DDP_CMSG_WRITE_MAPPED is a Write to what the peer has mapped, and completes as one: remote_to is
 * the offset, remote_stag 0. ENXIO: the peer has not mapped all of it in one mapping. What it has
 * mapped before it sends an octet is known when that is here.
 */
struct ddp_rdma {
	__u64 cookie; /* comes back with the completion */
	__u64 addr, length;
	__u64 remote_to;
	__u32 remote_stag;
	__u32 reserved; /* 0 */
};

enum ddp_atomic_op { DDP_FETCH_ADD = 0, DDP_CMP_SWAP = 1 };

/* On eight octets of the peer's (RFC 7306 section 5), which both addresses are multiples of */
struct ddp_atomic {
	__u64 cookie;
	__u64 addr; /* ours: gets what was there before, as a __u64 */
	__u64 remote_to;
	__u32 remote_stag;
	__u32 op;      /* enum ddp_atomic_op */
	__u64 operand; /* addend, or new value */
	__u64 mask;    /* addition: tops of fields, 0 one field; swap: bits to swap */
	__u64 compare; /* swap */
	__u64 compare_mask;
};

enum ddp_status {
	DDP_STATUS_OK = 0,
	DDP_STATUS_FLUSHED = 1, /* the connection ended before */
	DDP_STATUS_REMOTE = 2,	/* the peer refused it by a Terminate, ddp_info.peer */
};

/*
 * Operations complete in their order. A Write is complete when its memory may be changed; Read
 * and Atomic when their memory holds the answer. While a completion waits the socket is ready
 * with POLLERR, as with MSG_ZEROCOPY. EAGAIN: there is none.
 */
struct ddp_completion {
	__u64 cookie;
	__u64 length; /* 0 unless OK */
	__u32 type;   /* DDP_CMSG_WRITE, _READ, _ATOMIC */
	__u32 status; /* enum ddp_status */
};

#endif
