/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the interposer goes by, read once when a process starts. config/option.h has the table
 * behind it, config/rule.h the rules, config/reason.h what to say when a connection is not on DDP.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "config/conn_opts.h"
#include "config/option.h"

struct config {
	struct conn_opts conn;		   /* of a socket of which nobody has said more */
	bool uring;			   /* programs may have rings of io_uring */
	char report[CONFIG_TEXT_MAX + 1];  /* file for the summary at exit; empty: none */
	char command[CONFIG_TEXT_MAX + 1]; /* PID:FILE, preload/rules/report.c; empty: none */
	char dir[CONFIG_TEXT_MAX + 1];	   /* of the state of connections; empty: by the user */
	uint64_t linger;  /* nanoseconds, as the others: what exit waits for the peer */
	uint64_t spin;	  /* a wait spins so long at most before it sleeps; 0: never */
	bool spin_always; /* for tests */
	bool tcp_spin;	  /* waits on sockets without DDP spin, too */
	uint64_t start;	  /* start-up may take so long */
	bool strict;	  /* connect() in mode on waits for the Reply */
	uint16_t ask;	  /* UDP port of the question beside a connection; 0: nobody is asked */
	uint64_t mapper;  /* and before, for the port mapper of the peer's host; 0: none is asked */
	/* What is known of a peer in mode auto: that it does not speak MPA, and that it does */
	uint64_t forget_plain, forget_ddp;
	/* CONFIG_COMPUTED: by the round trip */
	uint64_t grace; /* a server that speaks first waits so long for a Request */
	uint64_t probe; /* connect() in mode auto for the Reply */
};

/*
 * The defaults, then the environment. -EINVAL: a value was wrong, its option keeps the default,
 * and it was logged.
 */
int config_load(struct config *c);

#endif
