/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a socket of ours has; preload/sock/sock.h is what to include. */
#ifndef PRELOAD_SOCK_TYPE_H
#define PRELOAD_SOCK_TYPE_H

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

#endif
