/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners and connections; include <warp/rdma.h>. See warp_listen(3) and warp_conn(3).
 */
#ifndef WARP_RDMA_CONN_H
#define WARP_RDMA_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warp_device;
struct warp_qp;
struct warp_listener;
struct warp_conn;

enum warp_conn_flag {
	WARP_CONN_NO_CRC = 0x1,	 /* do not ask for CRC; it is used all the same if the peer asks */
	WARP_CONN_MARKERS = 0x2, /* ask the peer to send markers */
	WARP_CONN_REV1 = 0x4,	 /* MPA revision 1: no IRD/ORD exchange, no RTR */
	WARP_CONN_NO_P2P = 0x8,	 /* client-server model: no RTR */
	/* RTR forms to offer or to support; none given: Read and Write */
	WARP_CONN_RTR_SEND = 0x10,
	WARP_CONN_RTR_WRITE = 0x20,
	WARP_CONN_RTR_READ = 0x40,
	/* warp_connect() first asks the peer's port mapper where a device's listener stands */
	WARP_CONN_PORT_MAPPER = 0x80,
};

/* ird and ord: the device's default; or not said, the programs see to it (RFC 6581) */
#define WARP_DEPTH_DEFAULT 0xFFFF
#define WARP_DEPTH_NONE 0x3FFF

/* Where a call takes one, NULL stands for no private data, WARP_DEPTH_DEFAULT, no flags, 10 s */
struct warp_conn_param {
	const void *private_data; /* copied by the call */
	size_t private_data_len;  /* up to 508, in MPA revision 1 up to 512 */
	uint16_t ird, ord;	  /* more than the device has: what it has */
	unsigned int flags;	  /* enum warp_conn_flag */
	int timeout_ms;		  /* of the start-up exchange; 0: 10 s */
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
	uint16_t peer_ird, peer_ord; /* as the peer said; WARP_DEPTH_NONE: it did not */
	uint8_t mpa_rev;
	bool crc, tx_markers, rx_markers;
	uint16_t mulpdu;
	uint32_t term_sent, term_received; /* 0, or for warp_fault_text() */
	const void *private_data;	   /* the peer's, valid as long as the connection */
	size_t private_data_len;
	struct sockaddr_storage local, peer;
	uint64_t tx_fpdus, rx_fpdus;
};

/* --- listeners ---------------------------------------------------------------------------- */

/*
 * -EAFNOSUPPORT: neither AF_INET nor AF_INET6. Port 0: any free one. @backlog as for listen(2).
 */
int warp_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		struct warp_listener **out);
/* Connections that nobody has got end with it */
int warp_listener_destroy(struct warp_listener *l);
int warp_listener_addr(const struct warp_listener *l, struct sockaddr_storage *addr);
/* Readable when warp_listener_get() may have something */
int warp_listener_fd(struct warp_listener *l);
/*
 * The next connection whose Request is complete. Waits up to timeout_ms (< 0: no limit, 0: not
 * at all): 0, -ETIMEDOUT, -EINTR
 */
int warp_listener_get(struct warp_listener *l, int timeout_ms, struct warp_conn **out);

/* --- connections -------------------------------------------------------------------------- */

/*
 * Begins; the state is CONNECTING until warp_conn_wait() or the progress thread has brought it
 * further
 */
int warp_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		 const struct warp_conn_param *param, struct warp_conn **out);
/*
 * RFC 5044 does not say that who connects TCP is the Initiator. Takes over a connected socket
 * (also on failure).
 */
int warp_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out);
int warp_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		   struct warp_conn **out);
/*
 * -EINVAL: the state is not REQUEST, or the queue pair is of another device. -EISCONN: it has a
 * connection. It is not ESTABLISHED before the peer has sent something: wait for that.
 */
int warp_conn_accept(struct warp_conn *c, struct warp_qp *qp, const struct warp_conn_param *param);
/* -EINVAL: the state is not REQUEST. -EMSGSIZE: more private data than the Reply has room for */
int warp_conn_reject(struct warp_conn *c, const void *private_data, size_t len);
/*
 * Waits until the state is another than CONNECTING: the errno of the connection, 0, -ETIMEDOUT,
 * -EINTR
 */
int warp_conn_wait(struct warp_conn *c, int timeout_ms);
/* Readable when the state may have changed */
int warp_conn_fd(struct warp_conn *c);
int warp_conn_query(struct warp_conn *c, struct warp_conn_info *info);
/*
 * Orderly: what is queued is sent, then FIN; completions of what was not sent are flushed. Does
 * not wait.
 */
int warp_conn_disconnect(struct warp_conn *c);
/* At once */
int warp_conn_abort(struct warp_conn *c);
/* Of one that has not ended: aborts it first */
int warp_conn_destroy(struct warp_conn *c);

/* "established", a text for any value; never NULL */
const char *warp_conn_state_text(enum warp_conn_state state);
/*
 * "DDP, untagged buffer: no buffer available", a text for term_sent and term_received, which
 * are 0 or 0x10000 | layer << 12 | type << 8 | code; never NULL
 */
const char *warp_fault_text(uint32_t fault);

#ifdef __cplusplus
}
#endif

#endif
