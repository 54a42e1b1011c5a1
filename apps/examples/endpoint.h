/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_ENDPOINT_H
#define APPS_EXAMPLES_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <warp/rdma.h>

/*
 * One end of a connection as a simple program needs it: a queue pair, one completion queue for
 * both directions, and the connection. Calls return 0 or -errno.
 */
struct endpoint {
	struct warp_device *dev; /* not the endpoint's own */
	struct warp_pd *pd;	 /* likewise when it was given */
	bool own_pd;
	struct warp_cq *cq;
	struct warp_qp *qp;
	struct warp_conn *conn;
	int timeout_ms; /* of each wait below */
};

/* @pd NULL: a new one. @depth: work requests, and receives, that can be posted at a time */
int endpoint_open(struct endpoint *e, struct warp_device *dev, struct warp_pd *pd, uint32_t depth,
		  int timeout_ms);
/* Ends connection and queue pair: afterwards the program's memory is its own again */
void endpoint_detach(struct endpoint *e);
/* The rest; the caller's regions are gone by now */
void endpoint_close(struct endpoint *e);

/* @source may be NULL */
int endpoint_connect(struct endpoint *e, const struct sockaddr_storage *addr,
		     const struct sockaddr_storage *source, const struct warp_conn_param *param);
/* Takes @conn over */
int endpoint_accept(struct endpoint *e, struct warp_conn *conn,
		    const struct warp_conn_param *param);

int endpoint_send(struct endpoint *e, const void *p, uint32_t len, const struct warp_mr *mr);
int endpoint_recv(struct endpoint *e, void *p, uint32_t len, const struct warp_mr *mr);
/* The next completion; its status is for the caller to look at. -ETIMEDOUT */
int endpoint_next(struct endpoint *e, struct warp_wc *wc);
/*
 * The next completion of a receive, Read or Write: -ECONNRESET, -EPROTO: it failed; -EPIPE: the
 * peer has left in order
 */
int endpoint_await(struct endpoint *e, enum warp_wc_opcode want, struct warp_wc *wc);
/* Our orderly end, and waits for the peer's */
int endpoint_finish(struct endpoint *e);
/* Prints to standard error that @what failed for @err, and what the connection knows about it */
void endpoint_complain(const struct endpoint *e, const char *what, int err);

/* "host" or "::1" into @addr with @port; 0, or an EAI_ code */
int endpoint_resolve(const char *host, uint16_t port, struct sockaddr_storage *addr);
socklen_t endpoint_addr_len(const struct sockaddr_storage *addr);
uint16_t endpoint_port(const struct sockaddr_storage *addr);
/* From now on SIGINT and SIGTERM interrupt waits */
void endpoint_catch_signals(void);
/* Has one of them come? */
bool endpoint_stopped(void);
/* @text as a number from @min to @max into @out: -EINVAL, -ERANGE */
int endpoint_number(const char *text, unsigned long min, unsigned long max, unsigned long *out);

#endif
