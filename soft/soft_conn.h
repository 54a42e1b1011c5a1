/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The queue pair front: the life of a connection.
 */
#ifndef SOFT_CONN_H
#define SOFT_CONN_H

#include "soft/soft_qp.h"

/* --- soft_conn.c --- */

int soft_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		 const struct warp_conn_param *param, struct warp_conn **out);
int soft_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out);
int soft_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		   struct warp_conn **out);
int soft_conn_accept(struct warp_conn *c, struct warp_qp *qp, const struct warp_conn_param *param);
int soft_conn_reject(struct warp_conn *c, const void *private_data, size_t len);
int soft_conn_wait(struct warp_conn *c, int timeout_ms);
int soft_conn_fd(struct warp_conn *c);
int soft_conn_query(struct warp_conn *c, struct warp_conn_info *info);
int soft_conn_disconnect(struct warp_conn *c);
int soft_conn_abort(struct warp_conn *c);
int soft_conn_destroy(struct warp_conn *c);

/* Over @fd, which it takes also when it fails */
int soft_conn_create(struct soft_device *d, int fd, enum mpa_role role, enum soft_stage stage,
		     const struct warp_conn_param *param, struct soft_conn **out);
void soft_conn_free(struct soft_conn *c);

/* --- soft_stage.c: how a connection gets from stage to stage --- */

/* Takes the connection as far as it goes without waiting, unless another thread is doing that */
void soft_stage_attend(struct soft_conn *c);
/* The same under rx */
void soft_stage_attend_held(struct soft_conn *c);
/* The same by a program's thread */
void soft_stage_attend_caller(struct soft_conn *c);
/* What has become due, by the progress thread */
void soft_stage_timer(struct soft_conn *c, uint64_t now);
/* Under rx and tx */
void soft_stage_open(struct soft_conn *c);
void soft_stage_end(struct soft_conn *c, enum warp_conn_state state, int error);
void soft_stage_drop(struct soft_conn *c);
void soft_stage_linger(struct soft_conn *c);
/* Under tx: sends what is queued; when no more is to come, our end */
void soft_stage_send(struct soft_conn *c);
/* Under tx: what to poll its socket for; 0: nothing */
short soft_stage_events(const struct soft_conn *c);

/* --- soft_batch.c: many at once --- */

/* A ring, where the user wants io_uring and it is to be had; NULL: none */
struct llp_uring *soft_batch_ring(void);
/* Attends to each of them. With a ring, which is the caller's now, one call receives for all */
void soft_batch_attend(struct llp_uring *ring, struct soft_conn *const *conns, unsigned int n);

/* --- soft_listen.c --- */

int soft_listen(struct warp_device *dev, const struct sockaddr *addr, socklen_t len, int backlog,
		struct warp_listener **out);
int soft_listener_destroy(struct warp_listener *l);
int soft_listener_addr(const struct warp_listener *l, struct sockaddr_storage *addr);
int soft_listener_fd(struct warp_listener *l);
int soft_listener_get(struct warp_listener *l, int timeout_ms, struct warp_conn **out);
/* A start-up of its has come to a Request, or to nothing */
void soft_listener_note(struct soft_conn *c);

/* --- soft_progress.c --- */

int soft_progress_init(struct soft_progress *p);
/* Waits for connections that linger, for a short time */
void soft_progress_uninit(struct soft_progress *p);
int soft_progress_add(struct soft_conn *c);
/* The connection is to be freed */
void soft_progress_remove(struct soft_conn *c);
/* What the thread is to wait for may have changed */
void soft_progress_update(struct soft_conn *c);
/*
 * Under rx and tx, before its socket is closed: that alone does not end the watching of a socket
 * that another process, or another descriptor, has still open
 */
void soft_progress_unwatch(struct soft_conn *c);
/* For all connections of a device */
void soft_progress_update_all(struct soft_device *d);

#endif
