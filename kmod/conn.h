/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that the module has, and what its files promise each other.
 *
 * The socket's lock (owned by a process, or the spinlock in a softirq) is over all of it. Softirqs
 * only receive; what sends runs in process context: a call of the program's, or conn->work.
 */
#ifndef KMOD_CONN_H
#define KMOD_CONN_H

#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "base/bits.h"
#include "kmod/ooo.h"
#include "kmod/op.h"
#include "kmod/start.h"
#include "rdmap/rdmap.h"

#include <warp/ddp_kernel.h>

struct conn_ring;

/* Received octets of one FPDU or of several */
struct conn_chunk {
	struct list_head list;
	__u32 off, len, cap; /* what is a message's of data */
	__u8 data[];
};

/* A message, or the beginning of one */
struct conn_message {
	struct list_head list;
	struct list_head chunks;
	__u32 len;
};

/* One FPDU at a time is built, and handed to TCP */
struct conn_tx {
	struct mpa_txv v; /* of the FPDU; the room is of the connection's life */
	struct iov_iter iter;
	struct conn_op *leaving; /* the operation that the FPDU is the last of */
	__u8 *hold;		 /* a copy of the FPDU's payload, where it needs one */
	__u32 hold_cap;
	__u32 entered, left; /* operations, ever; the difference is in the queue */
	__u32 waiting;	     /* callers that wait, and go on by themselves */
	bool pending;	     /* TCP has not taken all of the FPDU */
	bool pushing;	     /* TCP is about it, and may look at what has come meanwhile */
	bool more;	     /* the next FPDU is of the same message */
	bool answers;	     /* the next message is an answer to the peer, if one is due */
	bool refused;	     /* somebody was told that nothing can be sent now */
	struct list_head queue;
};

struct conn_rx {
	__u8 head[MPA_AHEAD_HEAD]; /* of the next FPDU, until its length is known */
	__u32 have, need;
	__u32 keep; /* octets of those that are copied: all, but of an FPDU that is placed */
	__u32 seq;  /* TCP's sequence number of the next octet */
	struct ooo_fpdu *early;	  /* the FPDU seems to be this one */
	struct conn_chunk *chunk; /* the FPDU, once need > sizeof(head) */
	struct conn_chunk *spare;
	struct conn_message *spare_message;
	struct conn_message *message; /* in progress */
	struct list_head messages;    /* whole ones */
	__u32 held;		      /* octets of memory in messages and message */
	__u32 recv_max;
	struct conn_chunk *left; /* of DDP_HANDOVER */
	bool starved;		 /* there was no memory: the work tries again */
	bool eof;
};

/* What has become of the connection; each value comes after those above it */
enum conn_state { CONN_TCP, CONN_LISTEN, CONN_START, CONN_DDP, CONN_ENDED };

struct conn {
	struct sock *sk;
	struct proto *base;
	struct delayed_work work;
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
	enum conn_state state;
	bool aligned, closing;
	bool refused; /* an operation was told that the peer's Terminate was for it */
	__u32 mulpdu_max;
	__u64 tx_octets, rx_octets, tx_messages, rx_messages, operations;
	struct rdmap_stream s;
	struct rdmap_inbound in[2 * DDP_KERNEL_DEPTH_MAX];
	struct rdmap_outbound out[DDP_KERNEL_DEPTH_MAX];
	struct rdmap_slots slots;
	struct ddp_stag_table stags; /* without slots until memory is registered */
	struct list_head regions;
	struct list_head dead;	      /* regions that the work is to free */
	struct list_head begun, done; /* of struct conn_op */
	__u32 ops;		      /* operations whose completion the program has not got */
	struct conn_ring *ring;	      /* set once; read without the lock too */
	struct conn_tx tx;
	struct conn_rx rx;
	struct conn_ooo ooo;
	struct conn_start *start;  /* in CONN_START */
	struct conn_wanted wanted; /* in CONN_LISTEN */
	const struct inet_connection_sock_af_ops *af;
};

static inline struct conn *conn_of(const struct sock *sk)
{
	return (__force struct conn *)inet_csk(sk)->icsk_ulp_data;
}

/* ulp.c: the work is to run, soon; from any context */
void conn_kick(struct conn *c);

/* option.c: the levels of the module, else -ENOPROTOOPT */
int conn_option_set(struct conn *c, int name, sockptr_t value, unsigned int len);
int conn_option_get(struct conn *c, int name, char __user *value, int __user *len);

/* rx.c */
void conn_rx_init(struct conn_rx *rx, __u32 recv_max);
void conn_rx_uninit(struct conn_rx *rx);
/* Takes in what TCP and the hand-over have left; sees whether the stream has ended */
void conn_rx_pump(struct conn *c, gfp_t gfp);
int conn_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags, int *addr_len);
/* Is there something that recvmsg() would return? */
bool conn_readable(const struct conn *c);

/* message.c */
void conn_message_free(struct conn_rx *rx, struct conn_message *m);
ssize_t conn_message_copy(const struct conn_message *m, struct msghdr *msg, size_t len);
/* -ENOMEM: what the next FPDU may need is not there */
int conn_message_prepare(struct conn_rx *rx, gfp_t gfp);
struct conn_chunk *conn_chunk_get(size_t cap, gfp_t gfp);
extern const struct rdmap_sink conn_sink; /* without its ctx */

/* tx.c */
int conn_tx_init(struct conn *c);
void conn_tx_uninit(struct conn *c);
int conn_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
/*
 * Builds and hands TCP what is due, in turns. What does not fit leaves later: ulp_write_space() and
 * the work see to it.
 */
void conn_tx_run(struct conn *c);
/* Nothing of ours is left, but for what waits for answers of the peer's */
bool conn_tx_idle(const struct conn *c);
/* Has idleness told to whoever asks now, in vain; false: it is idle all the same */
bool conn_tx_refuse(struct conn *c);
/* TCP takes what was accepted, whatever its buffer's size: before the stream is shut */
void conn_tx_drain(struct conn *c);

#endif
