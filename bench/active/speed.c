/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round trips along a list, in B-trees and in a hash table: RDMA for each node, one program by
 * Active RDMA, one in the kernel by datagrams, one call of a server in C, and one of the same by
 * UDP and by AF_XDP. All ends poll. Server and client have a processor each, and of the servers
 * only that runs which is measured. It is a network of its own, for the program in the kernel is at
 * its loopback interface; there it runs on the processor of the client.
 *
 *   active_speed LIST-OBJECT BTREE-OBJECT HASH-OBJECT [ROUNDS [SAMPLES [RESULTS]]]
 *
 * The objects are those of the examples. Each round measures everything; what is printed is the
 * median of the rounds' medians, in microseconds, and the ratios of those. The file RESULTS gets
 * the medians of each round.
 */
#include "speed.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <warp/active.h>

#include "apps/examples/btree_fill.h"

enum { ONE_SIDED, ACTIVE, XDP, RPC, UDP, FRAME, WAYS };
enum { SERVERS = 4, KERNEL_PORT = 7299, KERNEL_SIZE = 256 << 20 };
enum { ROUNDS_MAX = 100, SAMPLES_MAX = 100000 };

const unsigned long tree_keys[TREES] = { 10000, 1000000 };

static struct warp_active_client *client;
static struct warp_active_region_info list;
static struct rpc *rpc;
static bool is_own; /* the network */
static struct told active_told, rpc_told;
static struct datagrams udp, frame;
static double took[SAMPLES_MAX];

void fail(const char *what, int err)
{
	fprintf(stderr, "active_speed: %s %d\n", what, err);
	exit(1);
}

/* In an order that is not that of the addresses */
void list_fill(struct node *nodes)
{
	unsigned long at = 0;

	for (unsigned long i = 0; i < NODES; i++) {
		unsigned long next = (at + 7919) % NODES;

		nodes[at].value = i;
		nodes[at].next = i + 1 < NODES ? (unsigned long)&nodes[next] : 0;
		at = next;
	}
}

unsigned long list_walk(const struct question *q)
{
	const struct node *node = (const struct node *)q->at;

	for (unsigned long i = 0; i < q->hops; i++)
		node = (const struct node *)node->next;
	return node->value;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		sched_setaffinity(0, sizeof(set), &set);
}

/* --- servers ------------------------------------------------------------------------------ */

static bool in_kernel; /* of the server */

static bool kernel_serve(struct warp_active_server *server)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(KERNEL_PORT),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct warp_active_kernel_attr attr = { .interface = "lo",
						      .addr = (const struct sockaddr *)&at,
						      .len = sizeof(at),
						      .size = KERNEL_SIZE };
	int ret = is_own ? warp_active_kernel_serve(server, &attr) : -EPERM;

	if (ret)
		fprintf(stderr, "no programs in the kernel: %s\n", strerror(-ret));
	return !ret;
}

static void *region_export(struct warp_active_server *server, const char *name, size_t size)
{
	const struct warp_active_region_attr attr = { .name = name,
						      .size = size,
						      .rights = 15,
						      .flags = in_kernel ? WARP_ACTIVE_IN_KERNEL
									 : 0 };
	struct warp_active_region *region;

	if (warp_active_export(server, &attr, &region))
		fail("no region", 0);
	return warp_active_region_memory(region);
}

static void active_serve(int tell)
{
	static const char *const names[TREES] = { "tree0", "tree1" };
	const struct warp_active_server_attr attr = { .spin_us = SPIN_US };
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_active_server *server;
	struct told told = { .first = 0 };
	struct node *nodes;

	if (warp_active_server_create(&attr, &server))
		fail("no server", 0);
	told.in_kernel = in_kernel = kernel_serve(server);
	nodes = region_export(server, "list", NODES * sizeof(*nodes));
	list_fill(nodes);
	for (int i = 0; i < TREES; i++)
		btree_fill(region_export(server, names[i], btree_fill_size(tree_keys[i])),
			   tree_keys[i]);
	hash_fill(region_export(server, "hash", hash_size()));
	if (warp_active_server_listen(server, (struct sockaddr *)&any, sizeof(any)) ||
	    warp_active_server_addr(server, &told.addr) ||
	    write(tell, &told, sizeof(told)) != sizeof(told))
		fail("no listener", 0);
	for (;;)
		pause();
}

static pid_t server_start(void (*serve)(int), struct told *told)
{
	int tell[2];
	pid_t pid;

	if (pipe(tell))
		fail("no pipe", 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		serve(tell[1]);
	}
	if (read(tell[0], told, sizeof(*told)) != sizeof(*told))
		fail("the server does not start", 0);
	close(tell[0]);
	close(tell[1]);
	return pid;
}

/* The loopback interface is the host's, which has other users */
static void frame_absent(int tell)
{
	const struct told told = { .first = 0 };

	exit(write(tell, &told, sizeof(told)) != sizeof(told));
}

/* In a network of its own, for an interface has one program; the client's socket is there, too */
static pid_t frame_start(void)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	pid_t pid;

	if (here < 0 || (is_own && !own_network()))
		fail("no second network", 0);
	pid = server_start(is_own ? frame_serve : frame_absent, &frame.told);
	if (frame.told.first)
		udp_connect(&frame);
	else
		fprintf(stderr, "no server by AF_XDP\n");
	if (setns(here, CLONE_NEWNET) && is_own)
		fail("no way back to the first network", 0);
	close(here);
	return pid;
}

/* --- ways --------------------------------------------------------------------------------- */

static void read_once(uint64_t offset, void *to, size_t len)
{
	const struct warp_active_access op = { .op = WARP_ACTIVE_OP_READ,
					       .region = list.number,
					       .offset = offset,
					       .buffer = to,
					       .len = len };
	struct warp_active_request *r;

	if (warp_active_access(client, &op, &r) || warp_active_wait(r, -1, NULL))
		fail("a Read failed", 0);
}

static unsigned long walk_one_sided(unsigned long count)
{
	struct node node = { 0, list.addr };

	for (unsigned long i = 0; i <= count; i++)
		read_once(node.next - list.addr, &node, sizeof(node));
	return node.value;
}

static unsigned long walk_active(unsigned long count)
{
	return list_run(count, false);
}

static unsigned long walk_xdp(unsigned long count)
{
	return list_run(count, true);
}

static unsigned long walk_datagrams(const struct datagrams *d, unsigned long count)
{
	return udp_call(d, &(const struct question){ LIST, d->told.first, count, 0 });
}

static unsigned long walk_udp(unsigned long count)
{
	return walk_datagrams(&udp, count);
}

static unsigned long walk_frame(unsigned long count)
{
	return walk_datagrams(&frame, count);
}

static unsigned long walk_rpc(unsigned long count)
{
	return rpc_call(rpc, &(const struct question){ LIST, rpc_told.first, count, 0 });
}

/* A key of the tree, another one each time and the same ones for each way */
static unsigned long key_next(unsigned long tree)
{
	static unsigned int seed = 1;

	return (unsigned long)rand_r(&seed) % tree_keys[tree] + 1;
}

static unsigned long find_one_sided(unsigned long tree)
{
	unsigned long key = key_next(tree);

	return tree_read((unsigned int)tree, key) == key ? tree : ~0ul;
}

static unsigned long find_run(unsigned long tree, bool kernel)
{
	unsigned long key = key_next(tree);

	return tree_run((unsigned int)tree, key, kernel) == key ? tree : ~0ul;
}

static unsigned long find_active(unsigned long tree)
{
	return find_run(tree, false);
}

static unsigned long find_xdp(unsigned long tree)
{
	return find_run(tree, true);
}

static unsigned long find_datagrams(const struct datagrams *d, unsigned long tree)
{
	unsigned long key = key_next(tree);
	const struct question q = { TREE, d->told.tree[tree], 0, key };

	return udp_call(d, &q) == key ? tree : ~0ul;
}

static unsigned long find_udp(unsigned long tree)
{
	return find_datagrams(&udp, tree);
}

static unsigned long find_frame(unsigned long tree)
{
	return find_datagrams(&frame, tree);
}

static unsigned long find_rpc(unsigned long tree)
{
	unsigned long key = key_next(tree);
	const struct question q = { TREE, rpc_told.tree[tree], 0, key };

	return rpc_call(rpc, &q) == key ? tree : ~0ul;
}

static unsigned long hash_key_next(void)
{
	static unsigned int seed = 1;

	return (unsigned long)rand_r(&seed) % HASH_KEYS + 1;
}

static unsigned long get_one_sided(unsigned long number)
{
	unsigned long key = hash_key_next();

	return hash_read(key) == key ? number : ~0ul;
}

static unsigned long hash_key_run(const char *function, unsigned long number, bool kernel)
{
	unsigned long key = hash_key_next();

	return hash_run(function, key, kernel) == key ? number : ~0ul;
}

static unsigned long get_active(unsigned long number)
{
	return hash_key_run("get", number, false);
}

static unsigned long get_xdp(unsigned long number)
{
	return hash_key_run("get", number, true);
}

static unsigned long put_one_sided(unsigned long number)
{
	unsigned long key = hash_key_next();

	return hash_write(key) == key ? number : ~0ul;
}

static unsigned long put_active(unsigned long number)
{
	return hash_key_run("put", number, false);
}

static unsigned long put_xdp(unsigned long number)
{
	return hash_key_run("put", number, true);
}

static unsigned long hash_rpc(enum structure structure)
{
	unsigned long key = hash_key_next();
	const struct question q = { structure, rpc_told.hash, 0, key };

	return rpc_call(rpc, &q) == key ? 0 : ~0ul;
}

static unsigned long get_rpc(unsigned long number)
{
	return hash_rpc(HASH_GET) + number;
}

static unsigned long put_rpc(unsigned long number)
{
	return hash_rpc(HASH_PUT) + number;
}

static unsigned long hash_datagrams(const struct datagrams *d, enum structure structure,
				    unsigned long number)
{
	unsigned long key = hash_key_next();
	const struct question q = { structure, d->told.hash, 0, key };

	return udp_call(d, &q) == key ? number : ~0ul;
}

static unsigned long get_udp(unsigned long number)
{
	return hash_datagrams(&udp, HASH_GET, number);
}

static unsigned long get_frame(unsigned long number)
{
	return hash_datagrams(&frame, HASH_GET, number);
}

static unsigned long put_udp(unsigned long number)
{
	return hash_datagrams(&udp, HASH_PUT, number);
}

static unsigned long put_frame(unsigned long number)
{
	return hash_datagrams(&frame, HASH_PUT, number);
}

static unsigned long read_64(unsigned long count)
{
	char line[64];

	read_once(0, line, sizeof(line));
	return count;
}

/* --- measuring ---------------------------------------------------------------------------- */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double measure(unsigned long (*way)(unsigned long), unsigned long count, int samples)
{
	for (int i = 0; i < samples; i++) {
		double begin = now_us();

		if (way(count) != count)
			fail("a wrong value", 0);
		took[i] = now_us() - begin;
	}
	qsort(took, (size_t)samples, sizeof(*took), by_size);
	return took[samples / 2];
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_size);
	return values[n / 2];
}

/* What is measured: each way gets the number and gives it back; hops of a list, or a tree */
#define WAYS_OF(name)                                                                             \
	{                                                                                         \
		name##_one_sided, name##_active, name##_xdp, name##_rpc, name##_udp, name##_frame \
	}

static const struct row {
	const char *name;
	unsigned long number;
	unsigned long (*way[WAYS])(unsigned long);
} rows[] = {
	{ "list, 1 hop", 1, WAYS_OF(walk) },	   { "list, 8 hops", 8, WAYS_OF(walk) },
	{ "list, 64 hops", 64, WAYS_OF(walk) },	   { "list, 1000 hops", 1000, WAYS_OF(walk) },
	{ "B-tree, 10^4 keys", 0, WAYS_OF(find) }, { "B-tree, 10^6 keys", 1, WAYS_OF(find) },
	{ "hash, get", 0, WAYS_OF(get) },	   { "hash, put", 0, WAYS_OF(put) },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static double found[ROWS][WAYS][ROUNDS_MAX], reads[ROUNDS_MAX];

static void row_measure(const struct row *row, int way, int round, int samples)
{
	int n = way == ONE_SIDED && row->number ? samples / (int)row->number + 3 : samples;

	found[row - rows][way][round] = measure(row->way[way], row->number, n);
}

static void server_switch(const pid_t pid[SERVERS], int to)
{
	for (int i = 0; i < SERVERS; i++)
		kill(pid[i], i == to ? SIGCONT : SIGSTOP);
}

static void round_measure(int round, int samples, const pid_t pid[SERVERS])
{
	server_switch(pid, 0);
	reads[round] = measure(read_64, 0, samples);
	for (int i = 0; i < ROWS; i++) {
		row_measure(&rows[i], ONE_SIDED, round, samples);
		row_measure(&rows[i], ACTIVE, round, samples);
	}
	server_switch(pid, SERVERS); /* none: the kernel answers */
	for (int i = 0; i < ROWS && active_told.in_kernel; i++)
		row_measure(&rows[i], XDP, round, samples);
	server_switch(pid, 1);
	for (int i = 0; i < ROWS; i++)
		row_measure(&rows[i], RPC, round, samples);
	server_switch(pid, 2);
	for (int i = 0; i < ROWS; i++)
		row_measure(&rows[i], UDP, round, samples);
	server_switch(pid, 3);
	for (int i = 0; i < ROWS && frame.told.first; i++)
		row_measure(&rows[i], FRAME, round, samples);
}

static void table_print(int rounds)
{
	double read = median(reads, rounds);

	printf("one Read of 64 bytes: %.2f us\n\n", read);
	printf("%-18s %9s %6s %5s %5s %5s %6s  %13s %12s %9s %12s\n", "", "one-sided", "active",
	       "XDP", "rpc", "UDP", "AF_XDP", "active / Read", "active / rpc", "XDP / UDP",
	       "XDP / AF_XDP");
	for (int i = 0; i < ROWS; i++) {
		double t[WAYS];

		for (int way = 0; way < WAYS; way++)
			t[way] = median(found[i][way], rounds);
		printf("%-18s %9.2f %6.2f %5.2f %5.2f %5.2f %6.2f  %13.2f %12.2f %9.2f %12.2f\n",
		       rows[i].name, t[ONE_SIDED], t[ACTIVE], t[XDP], t[RPC], t[UDP], t[FRAME],
		       t[ACTIVE] / read, t[ACTIVE] / t[RPC], t[XDP] / t[UDP], t[XDP] / t[FRAME]);
	}
}

/* A line for each row and way: names, the number, and the medians of the rounds */
static void results_write(const char *path, int rounds)
{
	static const char *const ways[WAYS] = {
		"one-sided", "active", "XDP", "rpc", "UDP", "AF_XDP"
	};
	FILE *f = fopen(path, "w");

	if (!f)
		fail("the results cannot be written", errno);
	for (int i = 0; i < ROWS; i++)
		for (int way = 0; way < WAYS; way++) {
			fprintf(f, "%s\t%lu\t%s", rows[i].name, rows[i].number, ways[way]);
			for (int round = 0; round < rounds; round++)
				fprintf(f, "\t%.3f", found[i][way][round]);
			fputc('\n', f);
		}
	fclose(f);
}

/* Each object is sent, and is put into the kernel, while its server runs */
static void servers_warm(const pid_t pid[SERVERS])
{
	for (int i = 0; i < ROWS; i++)
		for (int way = ACTIVE; way < WAYS; way++)
			if ((way != XDP || active_told.in_kernel) &&
			    (way != FRAME || frame.told.first))
				rows[i].way[way](rows[i].number);
	server_switch(pid, SERVERS);
}

static void ends_open(char **objects)
{
	const struct warp_active_client_attr attr = { .spin_us = SPIN_US };

	pin(0);
	if (warp_active_connect((struct sockaddr *)&active_told.addr, sizeof(struct sockaddr_in),
				&attr, &client) ||
	    warp_active_region_find(client, "list", &list))
		fail("no connection", 0);
	far_open(client, objects[0], objects[1], objects[2]);
	rpc = rpc_connect(&rpc_told.addr);
	udp_connect(&udp);
}

int main(int argc, char **argv)
{
	int rounds = argc > 4 ? atoi(argv[4]) : 7, samples = argc > 5 ? atoi(argv[5]) : 1000;
	pid_t pid[SERVERS];

	if (argc < 4 || rounds < 1 || rounds > ROUNDS_MAX || samples < 1 || samples > SAMPLES_MAX)
		fail("usage: active_speed LIST-OBJECT BTREE-OBJECT HASH-OBJECT [ROUNDS [SAMPLES "
		     "[RESULTS]]]",
		     0);
	is_own = own_network();
	pid[0] = server_start(active_serve, &active_told);
	pid[1] = server_start(rpc_serve, &rpc_told);
	pid[2] = server_start(udp_serve, &udp.told);
	pid[3] = frame_start();
	ends_open(argv + 1);
	servers_warm(pid);
	for (int round = 0; round < rounds; round++)
		round_measure(round, samples, pid);
	for (int i = 0; i < SERVERS; i++)
		kill(pid[i], SIGKILL);
	table_print(rounds);
	if (argc > 6)
		results_write(argv[6], rounds);
	return 0;
}
