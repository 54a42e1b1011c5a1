/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seam to whoever does RDMA. A provider embeds the structs below at the head of its own and
 * fills one table.
 *
 * It has two fronts. The queue pair front is the native API as warp/rdma.h describes it, call
 * for call; rnic/api.c hands its calls through. The stream front (rnic/rnic_stream.h) is what a
 * stream socket needs.
 */
#ifndef RNIC_RNIC_H
#define RNIC_RNIC_H

#include <warp/rdma.h>

#include "base/clock.h"

struct rnic_ops;

struct warp_device {
	const struct rnic_ops *ops;
};

struct warp_pd {
	struct warp_device *dev;
};

struct warp_mr {
	struct warp_pd *pd;
	uint32_t stag;
};

struct warp_cq {
	struct warp_device *dev;
};

struct warp_qp {
	struct warp_pd *pd;
	void *context;
};

struct warp_listener {
	struct warp_device *dev;
};

struct warp_conn {
	struct warp_device *dev;
};

struct rnic_stream_ops;

struct rnic_ops {
	const char *name;
	const struct rnic_stream_ops *stream;

	/* @name: of the provider's devices one; NULL: any */
	int (*device_open)(const char *name, struct warp_device **out);
	int (*device_close)(struct warp_device *dev);
	int (*device_query)(const struct warp_device *dev, struct warp_device_attr *attr);

	int (*pd_create)(struct warp_device *dev, struct warp_pd **out);
	int (*pd_destroy)(struct warp_pd *pd);
	int (*mr_register)(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
			   struct warp_mr **out);
	int (*mr_deregister)(struct warp_mr *mr);

	int (*cq_create)(struct warp_device *dev, unsigned int entries, struct warp_cq **out);
	int (*cq_destroy)(struct warp_cq *cq);
	int (*cq_poll)(struct warp_cq *cq, struct warp_wc *wc, int n);
	int (*cq_arm)(struct warp_cq *cq, bool solicited_only);
	int (*cq_fd)(struct warp_cq *cq);
	int (*cq_ack)(struct warp_cq *cq);
	int (*cq_wait)(struct warp_cq *cq, int timeout_ms);

	int (*qp_create)(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out);
	int (*qp_destroy)(struct warp_qp *qp);
	int (*qp_post_send)(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n);
	int (*qp_post_recv)(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n);

	int (*listen)(struct warp_device *dev, const struct sockaddr *addr, socklen_t len,
		      int backlog, struct warp_listener **out);
	int (*listener_destroy)(struct warp_listener *l);
	int (*listener_addr)(const struct warp_listener *l, struct sockaddr_storage *addr);
	int (*listener_fd)(struct warp_listener *l);
	int (*listener_get)(struct warp_listener *l, int timeout_ms, struct warp_conn **out);

	int (*connect)(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		       const struct warp_conn_param *param, struct warp_conn **out);
	int (*connect_fd)(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
			  struct warp_conn **out);
	int (*accept_fd)(struct warp_device *dev, int fd, const struct warp_conn_param *param,
			 struct warp_conn **out);
	int (*conn_accept)(struct warp_conn *c, struct warp_qp *qp,
			   const struct warp_conn_param *param);
	int (*conn_reject)(struct warp_conn *c, const void *private_data, size_t len);
	int (*conn_wait)(struct warp_conn *c, int timeout_ms);
	int (*conn_fd)(struct warp_conn *c);
	int (*conn_query)(struct warp_conn *c, struct warp_conn_info *info);
	int (*conn_disconnect)(struct warp_conn *c);
	int (*conn_abort)(struct warp_conn *c);
	int (*conn_destroy)(struct warp_conn *c);
};

/* How long start-up may take: as the program says, or ten seconds */
static inline uint64_t rnic_start_ns(const struct warp_conn_param *param)
{
	return param && param->timeout_ms > 0 ? (uint64_t)param->timeout_ms * BASE_NS_PER_MS
					      : 10 * BASE_NS_PER_S;
}

/* --- providers ---------------------------------------------------------------------------- */

/*
 * By a constructor of the provider; the first one registered is the default, a second one of a
 * name is refused
 */
void rnic_register(const struct rnic_ops *ops);
/* @name: NULL, the default, or a provider's, with or without ":" and a device's behind it */
const struct rnic_ops *rnic_find(const char *name);
/* What stands behind the colon, or NULL */
const char *rnic_device_name(const char *name);
/* The provider number @i in the order of their registration, or NULL behind the last */
const struct rnic_ops *rnic_at(unsigned int i);

#endif
