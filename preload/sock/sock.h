/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A socket of the program that is ours: a TCP socket of the kernel's and, once it is connected,
 * a stream over it.
 */
#ifndef PRELOAD_SOCK_H
#define PRELOAD_SOCK_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"
#include "config/config.h"
#include "config/conn_opts.h"
#include "config/reason.h"
#include "preload/guard/spin.h"
#include "preload/rules/connect_plan.h"
#include "preload/sock/entry.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/listens.h"
#include "preload/sock/option.h"
#include "preload/sock/single_flight.h"
#include "preload/sock/sock_state.h"
#include "preload/sock/watch.h"
#include "preload/sock/work_item.h"
#include "preload/table/fdtab.h"
#include "stream/stream.h"

/* preload/wait/confine.c: the time-outs are as they were then */
struct sock_confined {
	bool on; /* atomic */
	uint64_t timeout_in, timeout_out;
};

struct sock {
	struct fdent ent;
	/* Atomic; sock_state.h has their moves */
	uint32_t role, start, tenure, number;
	/* What we work by: the program's number or an internal one. Atomic */
	int fd;
	unsigned int ended; /* atomic: 0, or fork_gen + 1 when the last number went */
	uint64_t cookie;    /* the kernel's name for the socket of a stream */
	struct stream *stream;
	uint32_t streams; /* atomic: how often it has got one, or lost it */
	struct conn_opts opts;
	enum connect_way way; /* how its connect() goes about it */
	bool accepted;
	struct work_item work;
	bool urgent_owner; /* atomic: the program has set which process gets SIGURG */
	bool executed;	   /* exec_inherit.c: the next program goes on with it */
	bool tmp_cloexec;  /* preload/calls/spawn.c, under its lock: it was, by some number */
	bool reported;	   /* atomic; its stream is in the report */
	bool said; /* atomic; the log has its line (preload/sock/info.c), or another process */
	bool connect_told; /* connect() has told the program that the connection is there */
	uint8_t shut;	   /* atomic; what shutdown() was told, plus one, as bits */
	struct option_values option;
	uint64_t acked; /* bytes of the stream that are known to be acknowledged; atomic */
	struct sockaddr_storage name; /* a listener's own; of a client what it was bound to */
	/* Of either family: a client's, from connect() on; a server's in mode on */
	struct sockaddr_in6 peer;
	socklen_t peer_len;
	struct sock_listening listening;
	struct sock_confined confined;
	/* Atomic: changes of what waits go by, and at which of them they had no end: in, out */
	uint32_t changes, endless[2];
	struct single_flight flight;
	struct spin_place places[2]; /* of waits for bytes, and for room */
	/*
	 * provider.c: the connection of a device, its stream's as soon as there is one; why
	 * another provider serves than was wished for
	 */
	struct rnic_native *native;
	pid_t taker; /* atomic: of a device's that was accepted, the thread */
	enum config_reason forgone;
	struct listener_proxy proxy;
	int severed; /* atomic: what a connect() under way is to say, which another ended */
	pthread_mutex_t lock; /* watches */
	struct base_list watches;
};

/* After the kernel has set what waits go by, or others may have had it set */
static inline void sock_waits_changed(struct sock *s)
{
	__atomic_add_fetch(&s->changes, 1, __ATOMIC_SEQ_CST);
}

static inline enum sock_role sock_role(const struct sock *s)
{
	return (enum sock_role)__atomic_load_n(&s->role, __ATOMIC_ACQUIRE);
}

static inline enum sock_number sock_number(const struct sock *s)
{
	return (enum sock_number)__atomic_load_n(&s->number, __ATOMIC_ACQUIRE);
}

static inline bool sock_in_work_list(const struct sock *s)
{
	return __atomic_load_n(&s->work.listed, __ATOMIC_ACQUIRE);
}

static inline const struct sock_ops *sock_ops(const struct sock *s)
{
	return (const struct sock_ops *)(const void *)s->ent.ops;
}

static inline bool sock_role_set(struct sock *s, enum sock_role role)
{
	return sock_state_move(&sock_role_moves, &s->role, role);
}

static inline enum sock_start sock_start(const struct sock *s)
{
	return (enum sock_start)__atomic_load_n(&s->start, __ATOMIC_ACQUIRE);
}

static inline bool sock_start_set(struct sock *s, enum sock_start start)
{
	return sock_state_move(&sock_start_moves, &s->start, start);
}

static inline enum sock_tenure sock_tenure(const struct sock *s)
{
	return (enum sock_tenure)__atomic_load_n(&s->tenure, __ATOMIC_ACQUIRE);
}

static inline bool sock_tenure_set(struct sock *s, enum sock_tenure tenure)
{
	return sock_state_move(&sock_tenure_moves, &s->tenure, tenure);
}

/* Has it a stream, and a device carries that? */
static inline bool sock_on_device(const struct sock *s)
{
	return sock_role(s) == SOCK_STREAM_ON && s->stream->carrier >= 0;
}

/* What a set's shadow knows it by */
static inline int sock_wait_fd(const struct sock *s)
{
	return sock_on_device(s) ? s->stream->carrier : __atomic_load_n(&s->fd, __ATOMIC_SEQ_CST);
}

/* NULL: it is something else */
static inline struct sock *sock_of_entry(struct fdent *ent)
{
	return ent && ent->kind == FD_SOCK ? (struct sock *)(void *)ent : NULL;
}

static inline struct stream *sock_stream_of_entry(struct fdent *ent)
{
	struct sock *s = sock_of_entry(ent);

	return s && sock_role(s) == SOCK_STREAM_ON ? s->stream : NULL;
}

/* Has connect() not taken away @stream, that it had, or made another? */
static inline bool sock_has(const struct sock *s, const struct stream *stream)
{
	return __atomic_load_n(&s->stream, __ATOMIC_ACQUIRE) == stream && sock_role(s) != SOCK_NEW;
}

/* Each enters a new socket into the table. @native: of a device, taken over in any case; or NULL */
int sock_create(int fd);
int sock_create_accepted(int fd, const struct sock *listener, enum config_transport mode,
			 struct rnic_native *native);
/* One that other processes have made, and for the table: as stream_adopt() */
int sock_create_adopted(int fd, struct sock **out);
/*
 * The program's own wish for a socket that is neither connected nor a listener yet; it goes before
 * the rules. -ENOPROTOOPT: no TCP socket, -EISCONN: too late
 */
int sock_set_mode(int fd, enum config_transport mode);
/* As stream_progress(); a peer without DDP makes the socket plain (-ENOMSG) */
int sock_progress(struct sock *s);
void sock_progressed(struct sock *s, int err); /* by who has asked the stream itself */

/* In who forked, and in the child: another one may connect what is new */
void sock_after_fork(void);

#endif
