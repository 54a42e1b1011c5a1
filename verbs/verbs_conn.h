/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of the verbs provider to each other's files.
 */
#ifndef VERBS_CONN_H
#define VERBS_CONN_H

#include <poll.h>

#include "base/clock.h"
#include "verbs/verbs_qp.h"

struct verbs_conn {
	struct warp_conn conn;
	struct verbs_device *dev;
	struct rdma_event_channel *channel; /* its own: nonblocking */
	int event;			    /* readable when the state has changed */
	pthread_mutex_t lock;		    /* what follows */
	struct rdma_cm_id *id;
	int epoll;		    /* for the program: channel and event; -1: not asked for */
	enum warp_conn_state state; /* atomic: written under the lock */
	int error;
	bool active;
	bool closing; /* atomic: the program has disconnected; written under the lock */
	bool shut;    /* and the device was told */
	struct verbs_qp *qp;
	uint8_t ird, ord;
	uint16_t peer_ird, peer_ord;
	uint64_t start_by;
	int resolve_ms;	 /* how long the address was waited for */
	uint64_t end_by; /* 0, or it is broken: when its end is taken for granted */
	/* active, iWARP: until when a retry Write may become due; when one is; 0: none, not yet */
	uint64_t write_retry_until, write_retry_at;
	uint8_t write_retries;
	uint32_t posted; /* before there was a connection */
	unsigned int waiters;
	uint8_t start_pd[VERBS_PD_MAX], start_pd_len;
	uint8_t peer_pd[VERBS_PD_MAX], peer_pd_len;
	struct sockaddr_storage local, peer;
	struct base_list progress_link; /* progress.lock */
};

static inline struct verbs_conn *verbs_conn_of(const struct warp_conn *c)
{
	return base_container_of(c, struct verbs_conn, conn);
}

static inline enum warp_conn_state verbs_conn_state(const struct verbs_conn *c)
{
	/* Pairs with verbs_cm_state() */
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

static inline bool verbs_conn_ended(const struct verbs_conn *c)
{
	return verbs_conn_state(c) > WARP_CONN_ESTABLISHED;
}

static inline bool verbs_conn_may_send(const struct verbs_conn *c)
{
	/* closing pairs with verbs_conn_disconnect() */
	return verbs_conn_state(c) == WARP_CONN_ESTABLISHED &&
	       !__atomic_load_n(&c->closing, __ATOMIC_ACQUIRE);
}

static inline uint8_t verbs_conn_ord(const struct verbs_conn *c)
{
	return c->ord;
}

/* --- verbs_conn.c ------------------------------------------------------------------------- */

/* In @state, and without an id: that is the caller's to find */
int verbs_conn_create(struct verbs_device *d, enum warp_conn_state state, struct verbs_conn **out);
/* With its id and without a queue pair */
void verbs_conn_free(struct verbs_conn *c);

/* --- verbs_cm.c: under conn.lock ---------------------------------------------------------- */

/* Takes in what the connection manager says, and does what follows from it */
void verbs_cm_attend(struct verbs_conn *c);
void verbs_cm_state(struct verbs_conn *c, enum warp_conn_state state, int error);
/* What is posted completes, and nothing can be posted any more */
void verbs_cm_end(struct verbs_conn *c, enum warp_conn_state state, int error);
int verbs_cm_accept(struct verbs_conn *c);
/* Asks for the way to c->peer, each time for longer, for the kernel may overlook the answer */
int verbs_cm_resolve(struct verbs_conn *c);
/* In start-up, or just behind it, or to be disconnected when the last work request is sent */
bool verbs_cm_moves(const struct verbs_conn *c);
/* The program has disconnected: tells the device once all that was posted is sent */
void verbs_cm_shut(struct verbs_conn *c);
/* The connection manager's of an event, which the caller still has */
void verbs_cm_peer_param(struct verbs_conn *c, const struct rdma_conn_param *param);
void verbs_cm_addresses(struct verbs_conn *c);
/* The next event, or NULL. Any lock that keeps others from the channel */
struct rdma_cm_event *verbs_cm_next(struct rdma_event_channel *channel);

/* --- verbs_progress.c ----------------------------------------------------------------------- */

/* There is a thread from now on: 0, -errno */
int verbs_progress_begin(struct verbs_progress *progress);
/*
 * It attends to @c as long as that moves, or until it is removed: 0, or -errno, if there was none
 * and can be none. No lock is held.
 */
int verbs_progress_add(struct verbs_conn *c);
void verbs_progress_remove(struct verbs_conn *c);

#endif
