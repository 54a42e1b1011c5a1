/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The native API of Warpsock: RDMA over iWARP, by a software provider on any machine or by a device.
 *
 * Every call returns 0 (or a count) or a negative errno and writes results only on success. Objects may be used by several
 * threads at once, except that an object must not be destroyed while another thread is in a call on it; destroy
 * answers -EBUSY while other objects depend on it. Nothing waits unless its page says so. See warp_rdma(7).
 */
#ifndef WARP_RDMA_H
#define WARP_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warp_device;
struct warp_pd;
struct warp_mr;
struct warp_cq;
struct warp_qp;
struct warp_listener;
struct warp_conn;

/* --- device ----------------------------------------------------------------------------------------------------- */

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

enum warp_feature {
	WARP_FEATURE_IMMEDIATE = 0x1, /* RFC 7306 */
	WARP_FEATURE_ATOMIC = 0x2,    /* RFC 7306 */
	WARP_FEATURE_MARKERS = 0x4,
	WARP_FEATURE_CRC_OFF = 0x8, /* can go without CRC when the peer agrees */
};

/* @name: a provider, or NULL for the default. -ENODEV when there is none of that name. */
int warp_device_open(const char *name, struct warp_device **out);
int warp_device_close(struct warp_device *dev);
int warp_device_query(const struct warp_device *dev, struct warp_device_attr *attr);

/* --- memory ----------------------------------------------------------------------------------------------------- */

enum warp_access {
	WARP_ACCESS_LOCAL_WRITE = 0x1, /* receives, Reads and Atomics of ours may write here */
	WARP_ACCESS_REMOTE_WRITE = 0x2,
	WARP_ACCESS_REMOTE_READ = 0x4,
	WARP_ACCESS_REMOTE_ATOMIC = 0x8,
};

int warp_pd_create(struct warp_device *dev, struct warp_pd **out);
int warp_pd_destroy(struct warp_pd *pd);

/* The tagged offset of the first octet is its address. -EINVAL: no octets, a wrap, unknown access bits. */
int warp_mr_register(struct warp_pd *pd, void *addr, size_t length, unsigned int access,
		     struct warp_mr **out);
/* When it returns no peer reaches the memory any more */
int warp_mr_deregister(struct warp_mr *mr);
uint32_t warp_mr_stag(const struct warp_mr *mr);

/* --- work requests ---------------------------------------------------------------------------------------------- */

struct warp_sge {
	void *addr;
	uint32_t length;
	uint32_t stag; /* of a region of the queue pair's pd that holds it; unused with WARP_SEND_INLINE */
};

enum warp_wr_opcode {
	WARP_WR_SEND,
	WARP_WR_SEND_INVALIDATE, /* and the peer's inv_stag becomes invalid */
	WARP_WR_WRITE,
	WARP_WR_READ,
	WARP_WR_IMMEDIATE, /* eight octets that consume a receive */
	WARP_WR_FETCH_ADD, /* 64 bit, RFC 7306 section 5.1.1 */
	WARP_WR_CMP_SWAP,
	WARP_WR_LOCAL_INVALIDATE,
};

enum warp_send_flag {
	WARP_SEND_SIGNALED = 0x1,  /* leave a completion also when it succeeds */
	WARP_SEND_SOLICITED = 0x2, /* Send, Immediate: raise the peer's solicited event */
	WARP_SEND_FENCE = 0x4,	   /* begin after all earlier Reads and Atomics are complete */
	WARP_SEND_INLINE = 0x8,	   /* octets are copied by the call */
};

struct warp_send_wr {
	uint64_t wr_id;
	enum warp_wr_opcode opcode;
	unsigned int flags;
	const struct warp_sge *
		sg; /* Send, Write: source; Read, atomics: one piece, the sink (atomics: 8 octets) */
	unsigned int num_sge;
	uint32_t inv_stag;    /* SEND_INVALIDATE: the peer's; LOCAL_INVALIDATE: ours */
	uint32_t remote_stag; /* WRITE, READ, atomics */
	uint64_t remote_to;
	uint64_t immediate; /* travels as a big-endian number */
	uint64_t swap_add;  /* FETCH_ADD: addend; CMP_SWAP: new value */
	uint64_t mask; /* FETCH_ADD: ends of fields, 0 = one of 64 bits; CMP_SWAP: bits to swap */
	uint64_t compare, compare_mask;
};

struct warp_recv_wr {
	uint64_t wr_id;
	const struct warp_sge *sg;
	unsigned int num_sge;
};

/* --- completions ------------------------------------------------------------------------------------------------ */

enum warp_wc_status {
	WARP_WC_SUCCESS,
	WARP_WC_FLUSHED,      /* the connection ended before */
	WARP_WC_LOCAL_LENGTH, /* a receive was too short for its message */
	WARP_WC_LOCAL_PROTECTION,
	WARP_WC_REMOTE_ACCESS, /* the peer's Terminate or ours said so */
	WARP_WC_REMOTE_OPERATION,
	WARP_WC_TRANSPORT, /* the connection was lost */
	WARP_WC_GENERAL,
};

enum warp_wc_flag {
	WARP_WC_WITH_IMMEDIATE = 0x1,
	WARP_WC_WITH_INVALIDATE = 0x2,
	WARP_WC_SOLICITED = 0x4
};

enum warp_wc_opcode {
	WARP_WC_SEND,
	WARP_WC_WRITE,
	WARP_WC_READ,
	WARP_WC_ATOMIC,
	WARP_WC_LOCAL_INVALIDATE,
	WARP_WC_RECV
};

struct warp_wc {
	uint64_t wr_id;
	struct warp_qp *qp;
	enum warp_wc_status status;
	enum warp_wc_opcode opcode; /* valid in every state */
	unsigned int flags;
	uint32_t byte_len;
	uint32_t inv_stag;
	uint64_t immediate;
};

int warp_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out);
int warp_cq_destroy(struct warp_cq *cq);
/* Drives the queue pairs of @cq and takes up to @n completions: their number, or -EOVERFLOW when some were lost */
int warp_cq_poll(struct warp_cq *cq, struct warp_wc *wc, int n);
/* The next completion (or solicited one) makes warp_cq_fd() readable; arm, then poll once more, then wait */
int warp_cq_arm(struct warp_cq *cq, bool solicited_only);
/* An fd for poll(2): readable when there may be completions. Wake-ups without any are possible. */
int warp_cq_fd(struct warp_cq *cq);
/* After the fd was readable: makes it unreadable until the next event */
int warp_cq_ack(struct warp_cq *cq);
/* Waits until completions can be polled: 0, -ETIMEDOUT, -EINTR. timeout_ms < 0: no limit */
int warp_cq_wait(struct warp_cq *cq, int timeout_ms);

/* --- queue pairs ------------------------------------------------------------------------------------------------ */

struct warp_qp_attr {
	struct warp_cq *send_cq, *recv_cq;
	uint32_t max_send_wr, max_recv_wr;
	uint32_t max_send_sge, max_recv_sge;
	uint32_t max_inline;
	bool signal_all; /* as if every work request had WARP_SEND_SIGNALED */
	void *context;
};

int warp_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out);
int warp_qp_destroy(struct warp_qp *qp);
void *warp_qp_context(const struct warp_qp *qp);
/*
 * How many were queued, from the first on, or a negative errno when the first could not be: -ENOMEM queue full, -EINVAL not a
 * work request, -EACCES a piece lies outside its region, -ENOTCONN not connected (receives may be posted before).
 */
int warp_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n);
int warp_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n);

/* --- connections ------------------------------------------------------------------------------------------------ */

enum warp_conn_flag {
	WARP_CONN_NO_CRC = 0x1,	 /* do not ask for CRC; it is used all the same if the peer asks */
	WARP_CONN_MARKERS = 0x2, /* ask the peer to send markers */
	WARP_CONN_REV1 = 0x4,	 /* MPA revision 1: no IRD/ORD exchange, no RTR */
	WARP_CONN_NO_P2P = 0x8,	 /* client-server model: no RTR */
	WARP_CONN_RTR_SEND =
		0x10, /* RTR forms to offer or to support; none given: Read and Write */
	WARP_CONN_RTR_WRITE = 0x20,
	WARP_CONN_RTR_READ = 0x40,
};

struct warp_conn_param {
	const void *private_data;
	size_t private_data_len;
	uint16_t ird, ord;  /* 0xFFFF: the device's default */
	unsigned int flags; /* enum warp_conn_flag */
	int timeout_ms;	    /* of the start-up exchange; 0: 10 s */
};

enum warp_conn_state {
	WARP_CONN_CONNECTING, /* or: a request that nobody answered yet */
	WARP_CONN_REQUEST,    /* passive: the Request is there, accept or reject */
	WARP_CONN_ESTABLISHED,
	WARP_CONN_REJECTED,
	WARP_CONN_DISCONNECTED, /* orderly */
	WARP_CONN_ERROR,
};

struct warp_conn_info {
	enum warp_conn_state state;
	int error;		     /* negative errno of ERROR, REJECTED, else 0 */
	uint16_t ird, ord;	     /* in force */
	uint16_t peer_ird, peer_ord; /* as the peer said; 0x3FFF: it did not */
	uint8_t mpa_rev;
	bool crc, tx_markers, rx_markers;
	uint16_t mulpdu;
	uint32_t term_sent, term_received; /* 0, or 0x10000 | layer << 12 | type << 8 | code */
	const void *private_data;	   /* the peer's, valid as long as the connection */
	size_t private_data_len;
	struct sockaddr_storage local, peer;
	uint64_t tx_fpdus, rx_fpdus;
};

int warp_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		struct warp_listener **out);
int warp_listener_destroy(struct warp_listener *l);
int warp_listener_addr(const struct warp_listener *l, struct sockaddr_storage *addr);
/* Readable when warp_listener_get() may have something */
int warp_listener_fd(struct warp_listener *l);
/* The next connection whose Request is complete. Waits up to timeout_ms (< 0: no limit, 0: not at all): 0, -ETIMEDOUT, -EINTR */
int warp_listener_get(struct warp_listener *l, int timeout_ms, struct warp_conn **out);

/* Begins; the state is CONNECTING until warp_conn_wait() or the progress thread has brought it further */
int warp_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		 const struct warp_conn_param *param, struct warp_conn **out);
/* RFC 5044 does not say that who connects TCP is the Initiator. Takes over a connected socket (also on failure). */
int warp_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out);
int warp_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		   struct warp_conn **out);
int warp_conn_accept(struct warp_conn *c, struct warp_qp *qp, const struct warp_conn_param *param);
int warp_conn_reject(struct warp_conn *c, const void *private_data, size_t len);
/* Waits until the state is another than CONNECTING: the errno of the connection, 0, -ETIMEDOUT, -EINTR */
int warp_conn_wait(struct warp_conn *c, int timeout_ms);
/* Readable when the state may have changed */
int warp_conn_fd(struct warp_conn *c);
int warp_conn_query(struct warp_conn *c, struct warp_conn_info *info);
/* Orderly: what is queued is sent, then FIN; completions of what was not sent are flushed. Does not wait. */
int warp_conn_disconnect(struct warp_conn *c);
/* At once */
int warp_conn_abort(struct warp_conn *c);
int warp_conn_destroy(struct warp_conn *c);

#ifdef __cplusplus
}
#endif

#endif
