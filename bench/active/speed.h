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

enum { HASH_KEYS = 2000 };

struct node {
	unsigned long value, next;
};

/* Asks for a walk; or with an address for a look-up. The answer is the value that is found */
enum structure { LIST, TREE, HASH_GET, HASH_PUT };
struct question {
	unsigned long structure, at;
	unsigned long hops, key; /* of a list; of the others */
};

/* What a server tells: where it listens, and where the structures are */
struct told {
	struct sockaddr_storage addr;
	unsigned long first, tree[TREES], hash;
	bool in_kernel; /* programs may run there */
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
/* What the server has, and what it answers */
struct told rpc_structures(void);
unsigned long rpc_answer(const struct question *q);

/* datagram.c: the same server by UDP, and the client of all servers that are asked by UDP */
struct datagrams {
	struct told told;
	int fd;
};

void udp_serve(int tell);
void udp_connect(struct datagrams *d);
unsigned long udp_call(const struct datagrams *d, const struct question *q);
/* A network of the process's own, with a loopback interface: false, it is the host's */
bool own_network(void);

/* frame.c: the same server by AF_XDP. told.first is 0 where that is not to be had */
void frame_serve(int tell);

/* near.c: structures by pointers; 0: there is no such key */
unsigned long tree_find(unsigned long tree, unsigned long key);
unsigned long hash_size(void);
/* A table with the keys 1 to HASH_KEYS, each with itself as its value */
void hash_fill(void *memory);
unsigned long hash_near_get(unsigned long table, unsigned long key);
/* Enters the value that is there: the key, or 0 when that failed */
unsigned long hash_near_put(unsigned long table, unsigned long key);

/* far.c: the same from the client, by RDMA and by programs */
struct warp_active_client;
void far_open(struct warp_active_client *client, const char *list, const char *tree,
	      const char *hash);
unsigned long list_run(unsigned long count, bool in_kernel);
unsigned long tree_read(unsigned int tree, unsigned long key);
unsigned long tree_run(unsigned int tree, unsigned long key, bool in_kernel);
unsigned long hash_read(unsigned long key);
unsigned long hash_write(unsigned long key);
unsigned long hash_run(const char *function, unsigned long key, bool in_kernel);

#endif
