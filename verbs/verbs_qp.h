/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs and completion queues of the verbs provider to each other.
 *
 * Locks, outer first: cq.drive, conn.lock, cq.lock, qp.lock, dev.mr_lock.
 */
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include "base/ring.h"
#include "verbs/verbs.h"

struct verbs_conn;

/* What is known of a work request until it and all before it are complete */
struct verbs_slot {
	uint64_t wr_id;
	uint32_t byte_len; /* of a Read, an atomic or what was received */
	uint32_t inv_stag; /* of what was received */
	uint8_t flags;	   /* the same: enum warp_wc_flag */
	uint8_t status;	   /* done: enum warp_wc_status */
	uint8_t opcode;	   /* enum warp_wc_opcode */
	bool signaled;
	bool answer; /* it completes when the peer has sent something */
	bool own;    /* a retry Write, of which the program knows nothing */
	bool done;   /* the device has completed it */
};

struct verbs_queue {
	struct base_ring ring; /* of those that the device has */
	struct verbs_slot *slot;
	uint32_t depth; /* as the program asked for */
	uint32_t used;	/* of it: those, and completions that nobody has polled */
};

/* The device's mark of a work request, and of the one that is posted next: its slot, a direction */
enum verbs_mark { VERBS_MARK_SEND, VERBS_MARK_RECV };

static inline uint64_t verbs_queue_mark(const struct verbs_queue *queue, enum verbs_mark direction)
{
	return (uint64_t)(queue->ring.tail & queue->ring.mask) << 1 | direction;
}

/*
 * The device's completion queue of a queue pair: one for both directions, or one for each. It
 * has an entry for all that can be posted, and so does the ring of translated completions.
 */
struct verbs_half {
	struct base_list link; /* cq.lock */
	struct verbs_qp *qp;
	struct verbs_cq *cq;
	struct ibv_cq *ibv;
	struct base_ring ring;
	struct warp_wc *wc;
};

struct verbs_qp {
	struct warp_qp qp;
	struct verbs_device *dev;
	struct verbs_pd *pd;
	struct warp_qp_attr attr;
	pthread_mutex_t lock; /* what follows */
	struct ibv_qp *ibv;   /* NULL: one that a connection has used up, see verbs_qp_ready() */
	struct verbs_conn *conn;
	struct verbs_half half[2];
	unsigned int halves;
	struct verbs_queue sq, rq;
	uint8_t *copy; /* inline bytes, where the device takes none; a part for each slot */
	struct ibv_mr *copy_mr;
	enum warp_wc_status failure; /* of the first work request that failed by itself */
	bool fault;		     /* atomic: the device has told of one */
	bool broken;		     /* something has not completed well */
	bool cut;		     /* a work request was flushed */
	bool heard;		     /* the peer has sent something */
};

struct verbs_cq {
	struct warp_cq cq;
	struct ibv_comp_channel *channel;
	int event, epoll;
	unsigned int users;   /* atomic: queue pairs */
	pthread_mutex_t lock; /* what follows */
	struct base_list halves;
	unsigned int waiters;
	pthread_mutex_t drive; /* who attends to connections; their membership */
	uint64_t driven;       /* atomic: when somebody did last */
};

static inline struct verbs_qp *verbs_qp_of(const struct warp_qp *qp)
{
	return base_container_of(qp, struct verbs_qp, qp);
}

static inline struct verbs_cq *verbs_cq_of(const struct warp_cq *cq)
{
	return base_container_of(cq, struct verbs_cq, cq);
}

static inline struct verbs_half *verbs_recv_half(struct verbs_qp *q)
{
	return &q->half[q->halves - 1];
}

/* --- verbs_qp.c --------------------------------------------------------------------------- */

/* Under qp.lock: there is a queue pair of the device that no connection has used */
int verbs_qp_ready(struct verbs_qp *q);
/* Under qp.lock: the connection is over; all that was posted is complete when it returns */
void verbs_qp_retire(struct verbs_qp *q);
/* Under qp.lock: as the connection manager says for that state (InfiniBand, RoCE) */
int verbs_qp_move(struct verbs_qp *q, struct rdma_cm_id *id, enum ibv_qp_state state, int ird,
		  int ord);

/* --- verbs_post.c: under qp.lock ---------------------------------------------------------- */

/* A message of nothing, to make a peer look that has overlooked the first one */
void verbs_qp_write_retry(struct verbs_qp *q);

/* --- verbs_wc.c: under qp.lock ------------------------------------------------------------ */

int verbs_queue_init(struct verbs_queue *queue, uint32_t depth);
int verbs_half_init(struct verbs_half *h, struct verbs_qp *q, struct verbs_cq *cq, uint32_t depth);
void verbs_half_uninit(struct verbs_half *h);
/* Takes what the device has completed */
void verbs_half_reap(struct verbs_half *h);
/* What was posted and will not be completed by the device any more */
void verbs_queue_flush(struct verbs_half *h, struct verbs_queue *queue);
int verbs_half_take(struct verbs_half *h, struct warp_wc *wc, int n);
/* There are some that can be taken */
bool verbs_half_has(const struct verbs_half *h);
/* There are some that wait for the connection's end to be known */
bool verbs_half_held(const struct verbs_half *h);

/* --- verbs_cq.c --------------------------------------------------------------------------- */

void verbs_cq_ring(struct verbs_cq *cq);
/* The connection's events wake the queue's sleepers, or not any more */
int verbs_cq_join(struct verbs_cq *cq, struct verbs_conn *c, int fd);
void verbs_cq_leave(struct verbs_cq *cq, int fd);

#endif
