/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BENCH_ACTIVE_SPEED_H
#define BENCH_ACTIVE_SPEED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { NODES = 2001, SPIN_US = 1000000000 }; /* for ever: Reads give the server no completions */

/* Trees of so many keys, each with itself as its value */
enum { TREES = 2 };
extern const unsigned long tree_keys[TREES];

struct node {
	unsigned long value, next;
};

/* Asks for a walk, or with a tree's address for a look-up; the answer is the value that is found */
struct question {
	unsigned long first, hops, tree, key;
};

/* What a server tells: where it listens, and where the list and the trees are */
struct told {
	struct sockaddr_storage addr;
	unsigned long first, tree[TREES];
};

void fail(const char *what, int err);
void list_fill(struct node *nodes);
unsigned long list_walk(const struct question *q);

/* rpc.c: the same by a server in C, over Sends of the native API */
struct rpc;
/* In a process of its own: tells what it has, and serves for ever */
void rpc_serve(int tell);
struct rpc *rpc_connect(const struct sockaddr_storage *addr);
unsigned long rpc_call(struct rpc *rpc, const struct question *q);

/* tree_near.c: the look-up by pointers; 0: there is no such key */
unsigned long tree_find(unsigned long tree, unsigned long key);
/* tree_far.c: the same by a Read for each node, and by a program */
struct warp_active_client;
void tree_open(struct warp_active_client *client, const char *path);
unsigned long tree_read(unsigned int tree, unsigned long key);
unsigned long tree_run(unsigned int tree, unsigned long key);

#endif
