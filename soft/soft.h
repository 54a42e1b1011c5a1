/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue pair front: devices, memory and completion queues.
 *
 * Locks, in the order in which they are taken; none is held across a sleep:
 *
 * - listener.lock: one thread at a time brings start-ups forward
 * - cq.drive: the connections of a completion queue; who does not get it leaves the work to its
 *   holder
 * - qp.lock: which connection the queue pair has; posting to its send queue
 * - conn.rx: receiving; also start-up, and every change of stage
 * - conn.tx: sending, the send queue, the connection's state
 * - dev.stags (read and write): the STag table, for as long as an address from it is used
 * - rq.lock: the receive queue
 * - cq.lock, listener.list, progress.lock: leaves
 */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H

#include <pthread.h>

#include "base/list.h"
#include "base/ring.h"
#include "rdmap/rdmap.h"
#include "rnic/rnic.h"

struct llp_uring;

/* Events that are attended to at once */
#define SOFT_EVENTS 32

#define SOFT_WR_MAX 16384
#define SOFT_CQE_MAX (1u << 20)
#define SOFT_SGE_MAX 16
#define SOFT_INLINE_MAX 512
#define SOFT_DEPTH 16
#define SOFT_DEPTH_MAX 128

/* Attends to connections that no caller attends to; see soft_progress.c */
struct soft_progress {
	pthread_mutex_t lock;
	pthread_t thread;
	bool running, stop, changed;
	int epoll, wake;
	struct llp_uring *uring; /* the thread's; NULL: system calls carry what comes */
	uint64_t next_due;
	struct base_list conns; /* soft_conn.link */
	struct base_list
		dead; /* the same, to be freed by the thread, which may hold pointers to them */
};

struct soft_device {
	struct warp_device dev;
	unsigned int objects; /* atomic; what device_close() must not find */
	__u32 last_pd;	      /* atomic */
	pthread_rwlock_t stag_lock;
	struct ddp_stag_table stags;
	struct soft_progress progress;
};

struct soft_pd {
	struct warp_pd pd;
	__u32 id;
	unsigned int users;  /* atomic; regions and queue pairs */
	unsigned int remote; /* atomic; regions that a peer may use */
};

struct soft_mr {
	struct warp_mr mr;
	struct ddp_region region;
};

enum soft_armed { SOFT_UNARMED, SOFT_ARMED_SOLICITED, SOFT_ARMED };

struct soft_cq {
	struct warp_cq cq;
	pthread_mutex_t drive;
	struct base_list members; /* drive: soft_member.link */
	struct llp_uring *uring;  /* drive; NULL as progress.uring is, or for want of another */
	pthread_mutex_t lock;
	struct warp_wc *wc;
	struct base_ring ring;
	enum soft_armed armed;
	bool overflow;
	unsigned int users;   /* atomic; queue pairs */
	unsigned int waiters; /* lock; callers in soft_cq_wait(). Read by the thread. */
	uint64_t attended;    /* atomic; when a caller last drove it */
	int event, epoll;     /* epoll: the event, and the sockets of the members */
};

static inline struct soft_device *soft_device_of(struct warp_device *dev)
{
	return base_container_of(dev, struct soft_device, dev);
}

static inline struct soft_pd *soft_pd_of(struct warp_pd *pd)
{
	return base_container_of(pd, struct soft_pd, pd);
}

static inline struct soft_cq *soft_cq_of(struct warp_cq *cq)
{
	return base_container_of(cq, struct soft_cq, cq);
}

/* Slots for @n entries of a ring whose index is masked */
static inline __u32 soft_ring_size(__u32 n)
{
	__u32 size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/* --- soft_init.c --- */

/* An object more or less that device_close() must not find */
void soft_device_get(struct soft_device *d);
void soft_device_put(struct soft_device *d);

/* --- soft_attr.c --- */

int soft_device_query(const struct warp_device *dev, struct warp_device_attr *attr);
/* What a connection asks for; @param NULL: the defaults */
struct mpa_config soft_attr_config(const struct warp_conn_param *param, enum mpa_role role);

/* --- soft_mr.c --- */

int soft_pd_create(struct warp_device *dev, struct warp_pd **out);
int soft_pd_destroy(struct warp_pd *pd);
int soft_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		     struct warp_mr **out);
int soft_mr_deregister(struct warp_mr *mr);
/* Under dev.stags: does each piece lie in a region of @pd that allows @access? */
bool soft_mr_covers(const struct soft_device *d, __u32 pd, const struct iovec *iov,
		    const __u32 *stags, unsigned int n, unsigned int access);

/* --- soft_cq.c --- */

int soft_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out);
int soft_cq_destroy(struct warp_cq *cq);
int soft_cq_poll(struct warp_cq *cq, struct warp_wc *wc, int n);
int soft_cq_arm(struct warp_cq *cq, bool solicited_only);
int soft_cq_fd(struct warp_cq *cq);
int soft_cq_ack(struct warp_cq *cq);
int soft_cq_wait(struct warp_cq *cq, int timeout_ms);
void soft_cq_push(struct soft_cq *cq, const struct warp_wc *wc);
/* Takes out what @qp left */
void soft_cq_forget(struct soft_cq *cq, const struct warp_qp *qp);

#endif
