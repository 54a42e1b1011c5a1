/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server that tests of Active RDMA ask, and how they ask it.
 *
 * In a process of its own it is this program again: with "serve", the attributes and two
 * descriptors. It answers each octet that it is sent by its counters, and ends with its input.
 */
#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "world: %s\n", what);
	abort();
}

double world_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void *world_file(const char *name, size_t *len)
{
	char path[512];
	void *bytes = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), ACTIVE_PROGRAMS "/%s", name);
	f = fopen(path, "r");
	need(f && bytes, path);
	*len = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

/* --- the server --------------------------------------------------------------------------- */

static struct warp_active_region *regions[5];

static int admit(void *context, const struct warp_active_peer *peer)
{
	char token[16] = { 0 };
	int ret = 0;

	if (peer->token_len && peer->token_len < sizeof(token))
		memcpy(token, peer->token, peer->token_len);
	if (!strcmp(token, "no"))
		return -EACCES;
	if (!strcmp(token, "nothing"))
		return 0;
	if (!strcmp(token, "reader"))
		return warp_active_grant(peer, regions[WORLD_TABLE],
					 WARP_ACTIVE_READ | WARP_ACTIVE_RUN);
	for (int i = 0; i < 5 && !ret; i++)
		ret = warp_active_grant(peer, regions[i],
					i == WORLD_CONSTANTS ? WARP_ACTIVE_READ | WARP_ACTIVE_RUN
					: i == WORLD_RAW     ? WARP_ACTIVE_READ | WARP_ACTIVE_WRITE
							     : 15);
	return ret;
}

static struct warp_active_server *serve(const struct warp_active_server_attr *attr,
					struct sockaddr_storage *addr)
{
	static const struct warp_active_region_attr rows[] = {
		{ .name = "table", .size = 1 << 16, .rights = 15 },
		{ .name = "heap",
		  .size = 1 << 20,
		  .rights = 15,
		  .flags = WARP_ACTIVE_HEAP,
		  .heap_offset = 64 },
		{ .name = "constants", .size = 4096, .rights = 9 },
		{ .name = "raw", .size = 4096, .rights = 7 },
		{ .name = "code", .size = 4096, .rights = 15, .flags = WARP_ACTIVE_NO_RDMA },
	};
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_active_server_attr all = { 0 };
	struct warp_active_server *server;

	if (attr)
		all = *attr;
	all.admit = admit;
	need(!warp_active_server_create(&all, &server), "no server");
	for (int i = 0; i < 5; i++)
		need(!warp_active_export(server, &rows[i], &regions[i]), "no region");
	memset(warp_active_region_memory(regions[WORLD_CONSTANTS]), 0x11, 4096);
	need(!warp_active_server_listen(server, (struct sockaddr *)&any, sizeof(any)), "it does "
										       "not "
										       "listen");
	need(!warp_active_server_addr(server, addr), "it has no address");
	return server;
}

static void object_open(struct world *w)
{
	need(!warp_active_object_open(ACTIVE_PROGRAMS "/active.object", &w->object), "no programs");
}

void world_open(struct world *w, const struct warp_active_server_attr *attr)
{
	*w = (struct world){ .to = -1, .from = -1 };
	w->server = serve(attr, &w->addr);
	object_open(w);
}

void world_main(int argc, char **argv)
{
	struct warp_active_server_attr attr;
	struct warp_active_stats stats;
	struct warp_active_server *server;
	struct sockaddr_storage addr;
	char octet;

	if (argc != 2 || strcmp(argv[1], "serve"))
		return;
	need(read(0, &attr, sizeof(attr)) == sizeof(attr), "no attributes");
	server = serve(&attr, &addr);
	need(write(3, &addr, sizeof(addr)) == sizeof(addr), "nobody to tell");
	while (read(0, &octet, 1) == 1) {
		warp_active_server_query(server, &stats);
		need(write(3, &stats, sizeof(stats)) == sizeof(stats), "nobody to tell");
	}
	warp_active_server_destroy(server);
	exit(0);
}

void world_spawn(struct world *w, const struct warp_active_server_attr *attr)
{
	struct warp_active_server_attr all = { 0 };
	char *const argv[] = { (char *)"active", (char *)"serve", NULL };
	posix_spawn_file_actions_t actions;
	int to[2], from[2];

	*w = (struct world){ 0 };
	if (attr)
		all = *attr;
	need(!pipe2(to, 02000000) && !pipe2(from, 02000000), "no pipe"); /* O_CLOEXEC */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	posix_spawn_file_actions_adddup2(&actions, from[1], 3);
	need(!posix_spawn(&w->pid, "/proc/self/exe", &actions, NULL, argv, environ), "no process");
	posix_spawn_file_actions_destroy(&actions);
	close(to[0]);
	close(from[1]);
	w->to = to[1];
	w->from = from[0];
	need(write(w->to, &all, sizeof(all)) == sizeof(all), "it does not take attributes");
	need(read(w->from, &w->addr, sizeof(w->addr)) == sizeof(w->addr), "it does not start");
	object_open(w);
}

void world_close(struct world *w)
{
	int status = 0;

	warp_active_object_destroy(w->object);
	warp_active_server_destroy(w->server);
	if (!w->pid)
		return;
	close(w->to);
	need(waitpid(w->pid, &status, 0) == w->pid, "it does not end");
	need(!status || WTERMSIG(status) == 9, "it ended badly");
	close(w->from);
}

struct warp_active_stats world_stats(struct world *w)
{
	struct warp_active_stats stats = { 0 };

	if (w->server) {
		warp_active_server_query(w->server, &stats);
		return stats;
	}
	need(write(w->to, "q", 1) == 1 && read(w->from, &stats, sizeof(stats)) == sizeof(stats),
	     "it does not tell");
	return stats;
}

bool world_until(struct world *w, bool (*good)(const struct warp_active_stats *stats), int ms)
{
	double end = world_now() + ms / 1e3;

	for (;;) {
		struct warp_active_stats stats = world_stats(w);

		if (good(&stats))
			return true;
		if (world_now() > end)
			return false;
		usleep(5000);
	}
}

/* --- its clients -------------------------------------------------------------------------- */

int world_connect(struct world *w, const char *token, struct warp_active_client **out)
{
	const struct warp_active_client_attr attr = { .token = token,
						      .token_len = token ? strlen(token) : 0 };

	return warp_active_connect((const struct sockaddr *)&w->addr, sizeof(struct sockaddr_in),
				   &attr, out);
}

struct warp_active_client *world_client(struct world *w)
{
	struct warp_active_client *c;
	int ret = world_connect(w, NULL, &c);

	if (ret)
		fprintf(stderr, "world: %s\n", strerror(-ret));
	need(!ret, "no connection");
	return c;
}

struct warp_active_region_info world_region(struct warp_active_client *c, unsigned int i)
{
	struct warp_active_region_info info;

	need(!warp_active_region_get(c, i, &info), "no such region");
	return info;
}

struct warp_active_request *world_start(struct world *w, struct warp_active_client *c,
					const struct world_call *call)
{
	const struct warp_active_grant grant = { (uint32_t)call->region - 1,
						 call->rights ? call->rights : 7 };
	const struct warp_active_run run = {
		.object = w->object,
		.function = call->function,
		.args = call->args,
		.args_len = call->count * 8,
		.grants = &grant,
		.grant_count = call->region ? 1 : 0,
		.fuel = call->fuel,
		.timeout_us = call->timeout_us,
	};
	struct warp_active_request *r;

	/* What is sent again after a load is sent from the run that was given */
	static __thread struct warp_active_grant kept[64];
	static __thread unsigned int next;
	struct warp_active_run copy = run;

	kept[next % 64] = grant;
	copy.grants = &kept[next++ % 64];
	need(!warp_active_start(c, &copy, &r), "it does not start");
	return r;
}

struct warp_active_result world_wait(struct warp_active_request *r)
{
	struct warp_active_result result;
	int ret = warp_active_wait(r, 30000, &result);

	if (ret) {
		memset(&result, 0, sizeof(result));
		result.code = (enum warp_active_code)1000;
		snprintf(result.text, sizeof(result.text), "%s", strerror(-ret));
	}
	return result;
}

struct warp_active_result world_run(struct world *w, struct warp_active_client *c,
				    const struct world_call *call)
{
	return world_wait(world_start(w, c, call));
}

int world_access(struct warp_active_client *c, enum warp_active_op op, unsigned int region,
		 uint64_t offset, void *buffer, size_t len)
{
	const struct warp_active_access access = {
		.op = op, .region = region, .offset = offset, .buffer = buffer, .len = len
	};
	struct warp_active_request *r;
	int ret = warp_active_access(c, &access, &r);

	return ret ? ret : warp_active_wait(r, 30000, NULL);
}
