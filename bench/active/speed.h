/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BENCH_ACTIVE_SPEED_H
#define BENCH_ACTIVE_SPEED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { NODES = 2001, SPIN_US = 1000000000 }; /* for ever: Reads give the server no completions */

struct node {
	unsigned long value, next;
};

/* Asks for a walk; the answer is the value of the last node */
struct walk {
	unsigned long first, hops, zero;
};

void fail(const char *what, int err);
void list_fill(struct node *nodes);
unsigned long list_walk(const struct walk *walk);

/* rpc.c: the same walk by a server in C, over Sends of the native API */
struct rpc;
/* In a process of its own: tells its address and list, and serves for ever */
void rpc_serve(int tell);
struct rpc *rpc_connect(const struct sockaddr_storage *addr);
unsigned long rpc_call(struct rpc *rpc, const struct walk *walk);

#endif
