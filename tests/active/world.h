/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_ACTIVE_WORLD_H
#define TESTS_ACTIVE_WORLD_H

/*
 * A server of Active RDMA for tests, in this process or in another one, and short ways to ask it
 * something. Functions abort the test's process, with a reason, when what they need fails.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <warp/active.h>

/*
 * Its regions: "table", of 64 KiB, all rights; "heap", of 1 MiB with an allocator behind its first
 * 64 bytes, all rights; "constants", 4 KiB, read and run; "raw", 4 KiB, read and write but no run;
 * "code", 4 KiB, all rights and no RDMA. A client with the token "reader" gets the table to read
 * and run, one with "nothing" no region, one with "no" is refused, all others get everything.
 */
struct world {
	struct warp_active_server *server; /* NULL when it is in another process */
	pid_t pid;
	int to, from; /* of that process */
	struct sockaddr_storage addr;
	struct warp_active_object *object; /* tests/active/programs/active.bpf.c */
};

enum { WORLD_TABLE, WORLD_HEAP, WORLD_CONSTANTS, WORLD_RAW, WORLD_CODE };

void world_open(struct world *w, const struct warp_active_server_attr *attr);
/* In another process: the main() of the test calls world_main() first */
void world_spawn(struct world *w, const struct warp_active_server_attr *attr);
void world_main(int argc, char **argv);
void world_close(struct world *w);
struct warp_active_stats world_stats(struct world *w);

struct warp_active_client *world_client(struct world *w);
int world_connect(struct world *w, const char *token, struct warp_active_client **out);

/* Calls are written with what they need and no more. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* A run of one of the programs with up to three numbers as arguments, and all of one region */
struct world_call {
	const char *function;
	uint64_t args[3];
	unsigned int count;  /* of args */
	int region;	     /* its number plus one, or 0 */
	unsigned int rights; /* 0: read, write, atomic */
	uint64_t fuel;
	unsigned int timeout_us;
};

struct warp_active_result world_run(struct world *w, struct warp_active_client *c,
				    const struct world_call *call);
/* Begins it; the call must stay */
struct warp_active_request *world_start(struct world *w, struct warp_active_client *c,
					const struct world_call *call);
struct warp_active_result world_wait(struct warp_active_request *r);
struct warp_active_region_info world_region(struct warp_active_client *c, unsigned int i);
/* One one-sided operation: 0, or the error */
int world_access(struct warp_active_client *c, enum warp_active_op op, unsigned int region,
		 uint64_t offset, void *buffer, size_t len);
bool world_until(struct world *w, bool (*good)(const struct warp_active_stats *stats), int ms);
double world_now(void);
void *world_file(const char *name, size_t *len);

#endif
