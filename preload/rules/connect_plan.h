/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a client goes about a connection: may it ask this peer, how, and how long may that take.
 */
#ifndef PRELOAD_CONNECT_PLAN_H
#define PRELOAD_CONNECT_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "config/config.h"
#include "config/reason.h"

enum connect_way {
	CONNECT_PLAIN,	 /* no Request goes */
	CONNECT_REFUSED, /* only DDP would do, and it cannot be: connect() fails */
	CONNECT_REQUEST, /* in mode on: at once, and a peer without DDP is an error */
	CONNECT_PROBE,	 /* in mode auto: at once, and a peer that does not answer is plain TCP */
	CONNECT_SURE,	 /* likewise, but a listener for DDP is known to be there */
	CONNECT_ASK,	 /* its host is asked first, and a Request goes behind a yes only */
};

/* What connect() knows when it begins */
struct connect_facts {
	const struct sockaddr *peer;
	socklen_t len;
	const struct conn_opts *opts; /* the program's mode, if it has set one */
	enum config_reason barred;    /* why no connection of this process can be on DDP, or NONE */
	bool here;		      /* a listener for DDP of this process is there */
};

struct connect_plan {
	enum connect_way way;
	enum config_reason reason; /* of CONNECT_PLAIN and CONNECT_REFUSED */
	const char *provider;	   /* that a rule names, or NULL */
};

/* By the program's word or the rules; a question to the peer's host goes out where there is one */
struct connect_plan connect_plan_make(const struct connect_facts *facts);

struct connect_times_facts {
	enum connect_way way; /* a client's */
	enum config_transport mode;
	bool initiator;
	bool hold;   /* connect() does not wait, and writes are held from the beginning */
	bool device; /* one carries it */
};

/* As stream_param has them */
struct connect_times {
	uint64_t start_limit; /* ns that the peer's frame may take; 0: any time */
	unsigned int start_rtts;
	uint64_t decide_limit, decide_max; /* when the program may go on, though nothing came */
	unsigned int decide_rtts;
};

struct connect_times connect_plan_times(const struct config *c,
					const struct connect_times_facts *facts);

static inline bool connect_way_is_probe(enum connect_way way)
{
	return way >= CONNECT_PROBE;
}

#endif
