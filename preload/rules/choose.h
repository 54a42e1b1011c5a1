/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_CHOOSE_H
#define PRELOAD_CHOOSE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "config/reason.h"
#include "config/rule.h"

/*
 * The rules, asked in this process's name. All of it but choose_init() may be called anywhere:
 * no lock, no memory.
 */
struct choice {
	enum config_transport mode;
	enum config_reason reason; /* of CONFIG_USE_TCP; else CONFIG_REASON_NONE */
	bool named;		   /* the rule names the destination */
	const char *provider;	   /* that the rule names, or NULL */
	enum config_rule_ask ask;  /* what the rule says of asking, and of being asked */
};

/* When the process starts, before it can change its name. -errno: no rule holds; it was logged */
int choose_init(void);
/* Is there a rule by which a socket of this program in this role could be one for DDP? */
bool choose_may(enum config_role role);
/* In either role, when rules for tcp that stand before it leave it something? */
bool choose_takes(void);
/* Is there one for a program of this name, in any role? */
bool choose_wants(const char *name);

/* The same for a listener of this name, which may be of any address; *@out as by choose_server() */
bool choose_serves(const struct sockaddr *name, socklen_t len, struct choice *out);

/* By the peer's address */
void choose_client(const struct sockaddr *addr, socklen_t len, struct choice *out);
/* By the address of its own end, as getsockname() tells it */
void choose_server(const struct sockaddr *addr, socklen_t len, struct choice *out);

#endif
