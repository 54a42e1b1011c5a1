/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs provider: one RDMA device by libibverbs, its connections by librdmacm. Devices,
 * memory and what both fronts share; queue pairs are in verbs_qp.h, connections in verbs_conn.h.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/list.h"
#include "rnic/rnic.h"
#include "verbs/verbs_lib.h"

#define VERBS_SGE_MAX 32
#define VERBS_INLINE_MAX 256
#define VERBS_MR_BUCKETS 1024
#define VERBS_PD_MAX 255

/* Connections that go on by themselves, and the thread that sees to it */
struct verbs_progress {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct base_list conns; /* lock: verbs_conn.progress_link */
	pthread_t thread;
	bool running, stop; /* lock */
};

struct verbs_device {
	struct warp_device dev;
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	uint8_t port;	      /* the first active one */
	bool iwarp;	      /* else InfiniBand or RoCE */
	bool siw;	      /* Linux's software driver, which has ways of its own */
	bool own_in_reply;    /* the event of a Reply has its own depths, not the peer's */
	bool own_in_request;  /* the same, and nothing of the peer's */
	unsigned int objects; /* atomic: pds, cqs, listeners, connections */
	pthread_rwlock_t mr_lock;
	struct base_list mrs[VERBS_MR_BUCKETS]; /* mr_lock: by STag */
	pthread_mutex_t async;			/* one at a time takes the device's events */
	struct verbs_progress progress;
};

struct verbs_pd {
	struct warp_pd pd;
	struct ibv_pd *ibv;
	unsigned int users; /* atomic: regions, queue pairs */
};

struct verbs_mr {
	struct warp_mr mr;
	struct ibv_mr *ibv;
	struct base_list link; /* dev.mr_lock */
	unsigned int access;   /* enum warp_access */
};

static inline struct verbs_device *verbs_device_of(const struct warp_device *dev)
{
	return base_container_of(dev, struct verbs_device, dev);
}

static inline struct verbs_pd *verbs_pd_of(const struct warp_pd *pd)
{
	return base_container_of(pd, struct verbs_pd, pd);
}

static inline const char *verbs_device_name(const struct verbs_device *d)
{
	return verbs_call(ibv_get_device_name)(d->ctx->device);
}

/* Of the calls that say -1 and leave errno; never 0 */
int verbs_error(void);

/* --- verbs_init.c ------------------------------------------------------------------------- */

void verbs_device_get(struct verbs_device *d);
void verbs_device_put(struct verbs_device *d);

/* --- verbs_attr.c ------------------------------------------------------------------------- */

int verbs_device_query(const struct warp_device *dev, struct warp_device_attr *attr);
uint32_t verbs_attr_sge(const struct verbs_device *d);
uint32_t verbs_attr_private_data(const struct verbs_device *d);
bool verbs_attr_atomics(const struct verbs_device *d);
bool verbs_attr_invalidation(const struct verbs_device *d);
/* The driver's own, by the number of the vendor */
void verbs_attr_ways(struct verbs_device *d);
/* What a connection asks for: of the program's wish what the device has */
uint8_t verbs_attr_ird(const struct verbs_device *d, uint16_t asked);
uint8_t verbs_attr_ord(const struct verbs_device *d, uint16_t asked);

/* --- verbs_mr.c --------------------------------------------------------------------------- */

int verbs_pd_create(struct warp_device *dev, struct warp_pd **out);
int verbs_pd_destroy(struct warp_pd *pd);
int verbs_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		      struct warp_mr **out);
int verbs_mr_deregister(struct warp_mr *mr);
/*
 * Pieces as the device wants them, without those of no bytes: their number, or -EACCES when one
 * is not within a region of @pd with the rights @access
 */
int verbs_mr_pieces(struct verbs_device *d, const struct warp_pd *pd, const struct warp_sge *sg,
		    unsigned int n, unsigned int access, struct ibv_sge *out);

/* --- verbs_cq.c --------------------------------------------------------------------------- */

int verbs_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out);
int verbs_cq_destroy(struct warp_cq *cq);
int verbs_cq_poll(struct warp_cq *cq, struct warp_wc *wc, int n);
int verbs_cq_arm(struct warp_cq *cq, bool solicited_only);
int verbs_cq_fd(struct warp_cq *cq);
int verbs_cq_ack(struct warp_cq *cq);
int verbs_cq_wait(struct warp_cq *cq, int timeout_ms);

/* --- verbs_qp.c, verbs_post.c ------------------------------------------------------------- */

int verbs_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out);
int verbs_qp_destroy(struct warp_qp *qp);
int verbs_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n);
int verbs_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n);

/* --- verbs_listen.c ----------------------------------------------------------------------- */

int verbs_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		 struct warp_listener **out);
int verbs_listener_destroy(struct warp_listener *l);
int verbs_listener_addr(const struct warp_listener *l, struct sockaddr_storage *addr);
int verbs_listener_fd(struct warp_listener *l);
int verbs_listener_get(struct warp_listener *l, int timeout_ms, struct warp_conn **out);

/* --- verbs_conn.c ------------------------------------------------------------------------- */

int verbs_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		  const struct warp_conn_param *param, struct warp_conn **out);
int verbs_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		     struct warp_conn **out);
int verbs_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out);
int verbs_conn_accept(struct warp_conn *c, struct warp_qp *qp, const struct warp_conn_param *param);
int verbs_conn_reject(struct warp_conn *c, const void *private_data, size_t len);
int verbs_conn_wait(struct warp_conn *c, int timeout_ms);
int verbs_conn_fd(struct warp_conn *c);
int verbs_conn_query(struct warp_conn *c, struct warp_conn_info *info);
int verbs_conn_disconnect(struct warp_conn *c);
int verbs_conn_abort(struct warp_conn *c);
int verbs_conn_destroy(struct warp_conn *c);

/* --- verbs_progress.c ----------------------------------------------------------------------- */

void verbs_progress_init(struct verbs_progress *progress);
void verbs_progress_uninit(struct verbs_progress *progress);

#endif
