/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Round trips along a list: an RDMA Read for each hop, one program by Active RDMA, one call of a
 * server in C. All ends poll. Server and client have a processor each, and of the two servers one
 * is stopped while the other is measured.
 *
 *   active_speed OBJECT [ROUNDS [SAMPLES]]
 *
 * The object is that of warp-list. Each round measures everything; what is printed is the median of
 * the rounds' medians, in microseconds, and the ratios of those.
 */
#include "speed.h"

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

enum { ONE_SIDED, ACTIVE, RPC, WAYS, ROUNDS_MAX = 100, SAMPLES_MAX = 100000 };

static const unsigned long hops[] = { 1, 8, 64, 1000 };
enum { ROWS = sizeof(hops) / sizeof(hops[0]) };

static struct warp_active_client *client;
static struct warp_active_object *object;
static struct warp_active_region_info list;
static struct rpc *rpc;
static unsigned long rpc_first;
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

unsigned long list_walk(const struct walk *walk)
{
	const struct node *node = (const struct node *)walk->first;

	for (unsigned long i = 0; i < walk->hops; i++)
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

static void active_serve(int tell)
{
	const struct warp_active_server_attr attr = { .spin_us = SPIN_US };
	const struct warp_active_region_attr region = { .name = "list",
							.size = NODES * sizeof(struct node),
							.rights = 15 };
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_active_server *server;
	struct warp_active_region *r;
	struct sockaddr_storage addr;
	unsigned long first;

	if (warp_active_server_create(&attr, &server) || warp_active_export(server, &region, &r))
		fail("no server", 0);
	list_fill(warp_active_region_memory(r));
	first = (unsigned long)warp_active_region_memory(r);
	if (warp_active_server_listen(server, (struct sockaddr *)&any, sizeof(any)) ||
	    warp_active_server_addr(server, &addr) ||
	    write(tell, &addr, sizeof(addr)) != sizeof(addr) ||
	    write(tell, &first, sizeof(first)) != sizeof(first))
		fail("no listener", 0);
	for (;;)
		pause();
}

static pid_t server_start(void (*serve)(int), struct sockaddr_storage *addr, unsigned long *first)
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
	if (read(tell[0], addr, sizeof(*addr)) != sizeof(*addr) ||
	    read(tell[0], first, sizeof(*first)) != sizeof(*first))
		fail("the server does not start", 0);
	close(tell[0]);
	close(tell[1]);
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
	const struct walk args = { list.addr, count, 0 };
	const struct warp_active_grant grant = { list.number, WARP_ACTIVE_READ };
	const struct warp_active_run run = { .object = object,
					     .function = "walk",
					     .args = &args,
					     .args_len = sizeof(args),
					     .grants = &grant,
					     .grant_count = 1 };
	struct warp_active_result result;

	if (warp_active_run(client, &run, &result) || result.code != WARP_ACTIVE_OK)
		fail("a run failed", 0);
	return result.value;
}

static unsigned long walk_rpc(unsigned long count)
{
	return rpc_call(rpc, &(const struct walk){ rpc_first, count, 0 });
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

int main(int argc, char **argv)
{
	static double found[ROWS][WAYS][ROUNDS_MAX], reads[ROUNDS_MAX];
	const struct warp_active_client_attr attr = { .spin_us = SPIN_US };
	int rounds = argc > 2 ? atoi(argv[2]) : 7, samples = argc > 3 ? atoi(argv[3]) : 1000;
	struct sockaddr_storage addr[2];
	unsigned long first;
	pid_t pid[2];
	double read;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX || samples < 1 || samples > SAMPLES_MAX)
		fail("usage: active_speed OBJECT [ROUNDS [SAMPLES]]", 0);
	if (warp_active_object_open(argv[1], &object))
		fail("there is no such object", 0);
	pid[0] = server_start(active_serve, &addr[0], &first);
	pid[1] = server_start(rpc_serve, &addr[1], &rpc_first);
	pin(0);
	if (warp_active_connect((struct sockaddr *)&addr[0], sizeof(struct sockaddr_in), &attr,
				&client) ||
	    warp_active_region_find(client, "list", &list))
		fail("no connection", 0);
	rpc = rpc_connect(&addr[1]);
	walk_active(1);
	walk_rpc(1);
	for (int round = 0; round < rounds; round++) {
		kill(pid[1], SIGSTOP);
		kill(pid[0], SIGCONT);
		reads[round] = measure(read_64, 0, samples);
		for (int i = 0; i < ROWS; i++) {
			found[i][ONE_SIDED][round] =
				measure(walk_one_sided, hops[i], samples / (int)hops[i] + 3);
			found[i][ACTIVE][round] = measure(walk_active, hops[i], samples);
		}
		kill(pid[0], SIGSTOP);
		kill(pid[1], SIGCONT);
		for (int i = 0; i < ROWS; i++)
			found[i][RPC][round] = measure(walk_rpc, hops[i], samples);
	}
	for (int i = 0; i < 2; i++)
		kill(pid[i], SIGKILL);
	read = median(reads, rounds);
	printf("one Read of 64 bytes: %.2f us\n\n", read);
	printf("%5s  %10s  %8s  %8s  %13s  %10s  %14s\n", "hops", "one-sided", "active", "rpc",
	       "active / Read", "active / rpc", "one-sided / active");
	for (int i = 0; i < ROWS; i++) {
		double t[WAYS];

		for (int way = 0; way < WAYS; way++)
			t[way] = median(found[i][way], rounds);
		printf("%5lu  %10.2f  %8.2f  %8.2f  %13.2f  %12.2f  %18.1f\n", hops[i],
		       t[ONE_SIDED], t[ACTIVE], t[RPC], t[ACTIVE] / read, t[ACTIVE] / t[RPC],
		       t[ONE_SIDED] / t[ACTIVE]);
	}
	return 0;
}
