/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue pair front: queue pairs, their two queues, and connections.
 */
#ifndef SOFT_QP_H
#define SOFT_QP_H

#include "llp/uring.h"
#include "soft/soft.h"
#include "soft/soft_core.h"

#define SOFT_HELD (SOFT_TX_OCTETS + MPA_MULPDU_MAX)

enum soft_wqe_state {
	SOFT_WQE_QUEUED,
	SOFT_WQE_WAITS, /* wholly sent; its answer is outstanding */
	SOFT_WQE_DONE,
};

struct soft_wqe {
	__u64 wr_id;
	struct rdmap_wr wr; /* wr.sg is iov */
	struct iovec *iov;
	__u32 *stags; /* of each piece */
	__u8 *copy;   /* room for inline bytes */
	__u8 opcode;  /* enum warp_wr_opcode */
	__u8 state;
	__u8 status;
	bool signaled, inlined;
	__u32 byte_len;
};

/* A ring whose indices run freely: head <= cur <= tail. Under conn.tx. */
struct soft_sq {
	struct soft_wqe *ring;
	__u32 mask, depth;
	__u32 head; /* oldest that has left no completion */
	__u32 cur;  /* the one to be sent */
	__u32 tail;
	__u32 off; /* bytes of cur that are sent */
	struct iovec *iov;
	__u32 *stags;
	__u8 *copy;
};

struct soft_rwqe {
	__u64 wr_id;
	struct iovec *iov;
	__u32 *stags;
	unsigned int nsg;
	__u64 len;
};

struct soft_rq {
	pthread_mutex_t lock;
	struct soft_rwqe *ring;
	__u32 mask, depth;
	__u32 head, tail;
	struct iovec *iov;
	__u32 *stags;
};

/* A connection's place with a completion queue */
struct soft_member {
	struct base_list link;
	struct soft_conn *conn;
};

struct soft_qp {
	struct warp_qp qp;
	struct soft_device *dev;
	struct soft_pd *pd;
	struct soft_cq *send_cq, *recv_cq;
	bool signal_all;
	__u32 max_send_sge, max_recv_sge, max_inline;
	pthread_mutex_t lock;
	struct soft_conn *conn; /* lock */
	struct soft_sq sq;
	struct soft_rq rq;
};

enum soft_stage {
	SOFT_STAGE_TCP,	    /* connect() is under way */
	SOFT_STAGE_START,   /* start-up frames */
	SOFT_STAGE_REQUEST, /* the program is to answer */
	SOFT_STAGE_OPEN,
	SOFT_STAGE_LINGER, /* ended; what is to be sent is, what comes is thrown away */
	SOFT_STAGE_DONE,
};

struct soft_conn {
	struct warp_conn conn;
	struct soft_device *dev;
	struct llp_uring_conn carrier; /* io.llp is its */
	int fd;			       /* -1 when done; rx and tx */
	int event;		       /* rung when the state changes */
	pthread_mutex_t rx, tx;
	enum soft_stage stage;	    /* written under rx and tx */
	enum warp_conn_state state; /* the same; read by anyone */
	int error;
	struct soft_core core;
	struct soft_io io;
	__u8 *memory;	    /* of io.in, io.rest and held */
	struct soft_qp *qp; /* rx and tx */
	__u32 pd;
	bool closing;	       /* tx: no more is posted; our end follows what is queued */
	bool blocked;	       /* tx: TCP takes no more now */
	bool out_armed;	       /* tx: the completion queues wait for room, too */
	bool write_retry_set;  /* tx: write_retry_at has been set, or need not be */
	uint8_t write_retries; /* tx */
	bool heard;	       /* atomic, written under rx: something came from the peer */
	bool kicked;	       /* rx: there may be something to send */
	bool recv_gone;	       /* rx: the memory of a receive was not there any more */
	bool watched;	       /* tx: somebody polls conn_fd() */
	bool zombie;	       /* the program has no handle any more */
	short events;	       /* what start-up waits for */
	bool answer_next;      /* tx: the last message was a work request's */
	__u8 *held;	       /* tx: SOFT_HELD bytes for copies of what the peer reads */
	size_t held_used;
	unsigned int waiters; /* tx: callers in soft_conn_wait() */
	uint64_t attended;    /* atomic: when a caller did last */
	/* atomic: times when the progress thread has something to do */
	uint64_t start_by, write_retry_at, linger_by;
	__u8 start_pd[MPA_PD_MAX];
	__u16 start_pd_len;
	struct sockaddr_storage local, peer;
	struct soft_member send_member, recv_member;
	/* listener.list */
	struct soft_listener *listener;
	struct base_list queued;
	/* progress.lock */
	struct base_list link;
	uint64_t due, watch_at, period;
	bool dead;
	struct rdmap_inbound in_slots[2 * SOFT_DEPTH_MAX];
	struct rdmap_outbound out_slots[SOFT_DEPTH_MAX];
};

static inline struct soft_qp *soft_qp_of(struct warp_qp *qp)
{
	return base_container_of(qp, struct soft_qp, qp);
}

static inline struct soft_conn *soft_conn_of(struct warp_conn *conn)
{
	return base_container_of(conn, struct soft_conn, conn);
}

static inline enum warp_conn_state soft_conn_state(const struct soft_conn *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE); /* pairs with state_set() */
}

/* Under tx; read without it by who only looks whether there is work */
static inline void soft_conn_block(struct soft_conn *c, bool on)
{
	__atomic_store_n(&c->blocked, on, __ATOMIC_RELAXED);
}

/* --- soft_qp.c --- */

int soft_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out);
int soft_qp_destroy(struct warp_qp *qp);
int soft_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n);
int soft_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n);

/* --- soft_sq.c: under conn.tx --- */

int soft_sq_init(struct soft_sq *sq, __u32 depth, __u32 sge, __u32 copy);
void soft_sq_uninit(struct soft_sq *sq);
/* 0, or why @wr cannot be queued */
int soft_sq_add(struct soft_conn *c, const struct warp_send_wr *wr);
/* Sends what can be sent of the send queue and of what the protocol owes */
void soft_sq_run(struct soft_conn *c);
/* A message of nothing, to make a peer look that has overlooked the first one */
bool soft_sq_write_retry(struct soft_conn *c);
/* The answer to number @index is here */
void soft_sq_done(struct soft_conn *c, __u32 index, __u64 value);
/* Nothing waits to be sent or answered */
bool soft_sq_idle(const struct soft_conn *c);
/* Completes all that is left; the first of them with @cause */
void soft_sq_flush(struct soft_conn *c, enum warp_wc_status cause);

/* --- soft_rq.c --- */

int soft_rq_init(struct soft_rq *rq, __u32 depth, __u32 sge);
void soft_rq_uninit(struct soft_rq *rq);
int soft_rq_add(struct soft_qp *qp, const struct warp_recv_wr *wr);
void soft_rq_flush(struct soft_qp *qp, enum warp_wc_status cause);
/* Where a connection's input goes */
struct rdmap_sink soft_rq_sink(struct soft_conn *c);

#endif
