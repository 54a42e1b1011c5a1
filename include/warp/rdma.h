/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The native API of Warpsock: RDMA over iWARP, by a software provider on any machine or by a
 * device.
 *
 * Every call returns 0 (or a count) or a negative errno and writes results only on success.
 * -EINVAL answers a NULL, a size or a flag that makes no sense; the calls that end an object
 * take NULL. Objects may be used by several threads at once, except that an object must not be
 * destroyed while another thread is in a call on it; destroy answers -EBUSY while other objects
 * depend on it. Nothing waits unless its page says so. See warp_rdma(7).
 */
#ifndef WARP_RDMA_H
#define WARP_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warp/rdma_conn.h>
#include <warp/rdma_wr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warp_device;
struct warp_pd;
struct warp_mr;
struct warp_cq;
struct warp_qp;

/* Of the library at run time, as "0.1.0" */
const char *warp_version(void);

/* --- device ------------------------------------------------------------------------------- */

enum warp_feature {
	WARP_FEATURE_IMMEDIATE = 0x1, /* RFC 7306 */
	WARP_FEATURE_ATOMIC = 0x2,    /* RFC 7306 */
	WARP_FEATURE_MARKERS = 0x4,
	WARP_FEATURE_CRC_OFF = 0x8,	/* can go without CRC when the peer agrees */
	WARP_FEATURE_INVALIDATE = 0x10, /* WARP_WR_SEND_INVALIDATE, WARP_WR_LOCAL_INVALIDATE */
};

struct warp_device_attr {
	char provider[16];   /* "soft", ... */
	uint32_t max_qp_wr;  /* work requests of one queue */
	uint32_t max_sge;    /* pieces of one Send, Write or receive; a Read has one */
	uint32_t max_inline; /* octets of WARP_SEND_INLINE */
	uint32_t max_cqe;
	uint32_t max_ird, max_ord;
	uint64_t max_mr_size;
	uint32_t max_private_data; /* octets that a peer can be sent at connection set-up */
	uint32_t features;	   /* enum warp_feature */
};

/* The name of provider number @i, of which 0 is the default, or NULL behind the last */
const char *warp_provider_name(unsigned int i);
/*
 * @name: a provider, or NULL for the default; "PROVIDER:DEVICE" one of its devices. -ENODEV when
 * there is none of that name.
 */
int warp_device_open(const char *name, struct warp_device **out);
int warp_device_close(struct warp_device *dev);
int warp_device_query(const struct warp_device *dev, struct warp_device_attr *attr);

/* --- memory ------------------------------------------------------------------------------- */

enum warp_access {
	WARP_ACCESS_LOCAL_WRITE = 0x1, /* receives, Reads and Atomics of ours may write here */
	WARP_ACCESS_REMOTE_WRITE = 0x2,
	WARP_ACCESS_REMOTE_READ = 0x4,
	WARP_ACCESS_REMOTE_ATOMIC = 0x8,
};

int warp_pd_create(struct warp_device *dev, struct warp_pd **out);
int warp_pd_destroy(struct warp_pd *pd);

/*
 * The tagged offset of the first octet is its address. -EINVAL: no octets, a wrap, unknown
 * access bits.
 */
int warp_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		     struct warp_mr **out);
/* When it returns no peer reaches the memory any more */
int warp_mr_deregister(struct warp_mr *mr);
/* The same until deregistration, also when invalidated. 0 for NULL; no region has 0. */
uint32_t warp_mr_stag(const struct warp_mr *mr);

/* --- completion queues -------------------------------------------------------------------- */

/* -EINVAL: no entries, or more than max_cqe */
int warp_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out);
int warp_cq_destroy(struct warp_cq *cq);
/*
 * Drives the queue pairs of @cq and takes up to @n completions (0: only drives): their number,
 * or -EOVERFLOW when some were lost
 */
int warp_cq_poll(struct warp_cq *cq, struct warp_wc *wc, int n);
/*
 * The next completion (solicited_only: the next solicited or failed one) makes warp_cq_fd()
 * readable; arm, then poll once more, then wait
 */
int warp_cq_arm(struct warp_cq *cq, bool solicited_only);
/*
 * An fd for poll(2): readable when there may be completions. Wake-ups without any are possible.
 * It belongs to the queue.
 */
int warp_cq_fd(struct warp_cq *cq);
/* After the fd was readable: makes it unreadable until the next event */
int warp_cq_ack(struct warp_cq *cq);
/* Waits until completions can be polled: 0, -ETIMEDOUT, -EINTR. timeout_ms < 0: no limit */
int warp_cq_wait(struct warp_cq *cq, int timeout_ms);

/* --- queue pairs -------------------------------------------------------------------------- */

struct warp_qp_attr {
	struct warp_cq *send_cq, *recv_cq; /* of the pd's device; may be the same */
	uint32_t max_send_wr, max_recv_wr;
	uint32_t max_send_sge, max_recv_sge;
	uint32_t max_inline;
	bool signal_all; /* as if every work request had WARP_SEND_SIGNALED */
	void *context;
};

/* -EINVAL also: more than the device has */
int warp_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out);
/* -EBUSY while it has a connection. Its completions that nobody has polled go with it. */
int warp_qp_destroy(struct warp_qp *qp);
void *warp_qp_context(const struct warp_qp *qp);
/*
 * How many were queued, from the first on, or a negative errno when the first could not be:
 * -ENOMEM queue full, -EINVAL not a work request, -EACCES a piece lies outside its region,
 * -ENOTCONN not connected (receives may be posted before).
 */
int warp_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n);
int warp_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n);

#ifdef __cplusplus
}
#endif

#endif
