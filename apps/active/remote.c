/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The commands of warp-active that ask a server: load, run, list, save.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>

#include "apps/active/local.h"
#include "apps/activecc/activecc.h"
#include "apps/warpsock/command.h"

enum { PART = 65536, TIMEOUT_MS = 10000 };

/* A name that no function has: a server looks for it when it has the object */
#define NO_FUNCTION " "

struct remote {
	struct warp_active_client *client;
	struct warp_active_object *object;
};

static int resolve(const struct given *g, struct sockaddr_storage *addr, socklen_t *len)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	char port[12];
	int ret;

	snprintf(port, sizeof(port), "%lu", g->port);
	ret = getaddrinfo(g->address, port, &hints, &found);
	if (ret)
		return complain(g->address, gai_strerror(ret));
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	*len = found->ai_addrlen;
	freeaddrinfo(found);
	return DONE;
}

static int remote_open(struct remote *r, const struct given *g)
{
	const struct warp_active_client_attr attr = { .token = g->token,
						      .token_len = g->token ? strlen(g->token)
									    : 0 };
	struct sockaddr_storage addr;
	socklen_t len = 0;
	int ret;

	*r = (struct remote){ NULL, NULL };
	if (!g->address)
		return command_wrong(g->command, "a server is needed: --address HOST");
	if (resolve(g, &addr, &len))
		return FAILED;
	ret = warp_active_connect((struct sockaddr *)&addr, len, &attr, &r->client);
	return ret ? complain(g->address, strerror(-ret)) : DONE;
}

static int object_open(struct remote *r, const struct given *g)
{
	int ret = warp_active_object_open(g->object, &r->object);

	return ret ? complain(g->object, strerror(-ret)) : DONE;
}

static void remote_close(struct remote *r)
{
	warp_active_disconnect(r->client);
	warp_active_object_destroy(r->object);
}

static int refused(const struct warp_active_result *result)
{
	fprintf(stderr, "warp-active: %s\n",
		*result->text ? result->text : warp_active_code_text(result->code));
	return REFUSED;
}

/* --- load --------------------------------------------------------------------------------- */

static int object_send(const struct remote *r, const struct given *g)
{
	const struct warp_active_run run = { .object = r->object, .function = NO_FUNCTION };
	struct warp_active_result result;
	uint8_t hash[32];
	int ret = warp_active_run(r->client, &run, &result);

	if (ret)
		return complain(g->address, strerror(-ret));
	if (result.code != WARP_ACTIVE_NO_FUNCTION)
		return refused(&result);
	warp_active_object_hash(r->object, hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		printf("%02x", hash[i]);
	printf("  %s\n", g->object);
	return DONE;
}

int load_main(int argc, char **argv)
{
	struct remote r;
	struct given g;
	int ret;

	given_read(&g, argc, argv, 1, 1);
	ret = remote_open(&r, &g);
	if (!ret)
		ret = object_open(&r, &g);
	if (!ret)
		ret = object_send(&r, &g);
	remote_close(&r);
	return ret;
}

/* --- run ---------------------------------------------------------------------------------- */

/* All regions that programs may use, with all rights, where the command line names none */
static void regions_all(const struct remote *r, struct given *g)
{
	struct warp_active_region_info info;

	for (unsigned int i = 0;
	     g->region_count < REGIONS_MAX && !warp_active_region_get(r->client, i, &info); i++) {
		struct region_word *word = &g->regions[g->region_count];

		if (!(info.rights & WARP_ACTIVE_RUN))
			continue;
		*word = (struct region_word){ .addr = info.addr,
					      .number = info.number,
					      .rights = info.rights & ~(unsigned)WARP_ACTIVE_RUN };
		snprintf(word->name, sizeof(word->name), "%s", info.name);
		g->region_count++;
	}
}

static int regions_find(const struct remote *r, struct given *g)
{
	struct warp_active_region_info info;

	for (size_t i = 0; i < g->region_count; i++) {
		struct region_word *word = &g->regions[i];

		if (*word->file)
			return command_wrong(g->command, "%s is a file, which trace and bench take",
					     word->file);
		if (warp_active_region_find(r->client, word->name, &info))
			return complain(word->name, "the server has no such region");
		word->addr = info.addr;
		word->number = info.number;
		word->rights &= info.rights;
	}
	if (!g->region_count)
		regions_all(r, g);
	return DONE;
}

/* Datagrams have room for little, and the program may not need more */
static int kernel_run(const struct remote *r, const struct warp_active_run *run,
		      struct warp_active_result *result)
{
	struct warp_active_place *place;
	int timeout_ms = run->timeout_us ? (int)(run->timeout_us / 1000) : TIMEOUT_MS;
	int ret = warp_active_install(r->client, run, &place, result);

	if (ret || result->code != WARP_ACTIVE_OK)
		return ret;
	ret = warp_active_place_run(place, run->args, run->args_len, run->output,
				    WARP_ACTIVE_PLACE_MAX, timeout_ms, result);
	warp_active_place_close(place);
	return ret;
}

static int program_run(const struct remote *r, const struct given *g)
{
	static uint8_t output[OUTPUT_MAX];
	struct warp_active_grant grants[REGIONS_MAX];
	const struct warp_active_run run = { .object = r->object,
					     .function = g->function,
					     .args = g->args,
					     .args_len = g->args_len,
					     .grants = grants,
					     .grant_count = g->region_count,
					     .fuel = g->fuel,
					     .timeout_us = (unsigned int)g->timeout_ms * 1000,
					     .output = output,
					     .output_room = sizeof(output) };
	struct warp_active_result result;
	int ret;

	for (size_t i = 0; i < g->region_count; i++)
		grants[i] =
			(struct warp_active_grant){ g->regions[i].number, g->regions[i].rights };
	ret = g->in_kernel ? kernel_run(r, &run, &result)
			   : warp_active_run(r->client, &run, &result);
	if (ret)
		return complain(g->address, strerror(-ret));
	if (result.code != WARP_ACTIVE_OK)
		return refused(&result);
	return result_print(g, result.value, result.fuel, output, result.output);
}

int run_main(int argc, char **argv)
{
	struct remote r;
	struct given g;
	int ret;

	given_read(&g, argc, argv, 1, WORDS_MAX + 2);
	ret = remote_open(&r, &g);
	if (!ret)
		ret = object_open(&r, &g);
	if (!ret)
		ret = regions_find(&r, &g);
	if (!ret)
		ret = args_fill(&g);
	if (!ret)
		ret = program_run(&r, &g);
	remote_close(&r);
	return ret;
}

/* --- list --------------------------------------------------------------------------------- */

static void regions_print(const struct remote *r)
{
	struct warp_active_region_info info;
	char rights[5];

	for (unsigned int i = 0; !warp_active_region_get(r->client, i, &info); i++)
		printf("%3u  %-4s  0x%012" PRIx64 "  %12" PRIu64 "  %s\n", info.number,
		       rights_text(info.rights, rights), info.addr, info.size, info.name);
}

static int object_list(const char *path)
{
	struct ebpf_object *object;
	int ret = local_object(path, EBPF_LOAD_NO_JIT, &object);

	if (ret)
		return ret;
	activecc_listing_print(object);
	ebpf_object_destroy(object);
	return DONE;
}

int list_main(int argc, char **argv)
{
	struct remote r;
	struct given g;
	int ret;

	given_read(&g, argc, argv, 0, 1);
	if (g.object && g.address)
		return command_wrong(g.command, "an object, or the regions of a server");
	if (g.object)
		return object_list(g.object);
	ret = remote_open(&r, &g);
	if (!ret)
		regions_print(&r);
	remote_close(&r);
	return ret;
}

/* --- save --------------------------------------------------------------------------------- */

static int region_read(const struct remote *r, const struct warp_active_region_info *info, FILE *f)
{
	static uint8_t part[PART];

	for (uint64_t at = 0; at < info->size; at += sizeof(part)) {
		const struct warp_active_access read = { .op = WARP_ACTIVE_OP_READ,
							 .region = info->number,
							 .offset = at,
							 .buffer = part,
							 .len = info->size - at < sizeof(part)
									? info->size - at
									: sizeof(part) };
		struct warp_active_request *request;
		int ret = warp_active_access(r->client, &read, &request);

		if (!ret)
			ret = warp_active_wait(request, -1, NULL);
		if (!ret && fwrite(part, 1, read.len, f) != read.len)
			ret = -errno;
		if (ret)
			return ret;
	}
	return 0;
}

static int region_save(const struct remote *r, const char *name, const char *path)
{
	struct warp_active_region_info info;
	FILE *f;
	int ret;

	if (warp_active_region_find(r->client, name, &info))
		return complain(name, "the server has no such region");
	f = fopen(path, "we");
	if (!f)
		return complain(path, strerror(errno));
	ret = region_read(r, &info, f);
	if (fclose(f) && !ret)
		ret = -errno;
	if (ret)
		return complain(name, strerror(-ret));
	printf("--region %s=%s@0x%" PRIx64 "\n", name, path, info.addr);
	return DONE;
}

int save_main(int argc, char **argv)
{
	struct remote r;
	struct given g;
	int ret;

	given_read(&g, argc, argv, 2, 2);
	ret = remote_open(&r, &g);
	if (!ret)
		ret = region_save(&r, g.object, g.function);
	remote_close(&r);
	return ret;
}
