/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions that are for one client alone: made when it comes, gone with it.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <warp/active.h>

#include "tests/active/world.h"

enum { SIZE = 1 << 16 };

static struct warp_active_server *server;
static struct warp_active_region *shared, *last;
static struct sockaddr_storage addr;
static int again; /* what a second region of the same name is told */

static int admit(void *context, const struct warp_active_peer *peer)
{
	const struct warp_active_region_attr attr = { .name = "mine",
						      .size = SIZE,
						      .rights = 15,
						      .flags = WARP_ACTIVE_HEAP,
						      .heap_offset = 64,
						      .peer = peer };
	int ret = warp_active_grant(peer, shared, 9);

	/* That of another client, if there is one, is not to be had */
	if (!ret && last)
		cr_assert_eq(warp_active_grant(peer, last, 1), -EINVAL);
	if (!ret)
		ret = warp_active_export(server, &attr, &last);
	if (!ret)
		again = warp_active_export(server, &attr, &last);
	return ret;
}

static void set_up(void)
{
	const struct warp_active_region_attr attr = { .name = "shared", .size = SIZE, .rights = 9 };
	const struct warp_active_server_attr server_attr = { .admit = admit };
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	cr_assert_not(warp_active_server_create(&server_attr, &server));
	cr_assert_not(warp_active_export(server, &attr, &shared));
	cr_assert_not(warp_active_server_listen(server, (struct sockaddr *)&any, sizeof(any)));
	cr_assert_not(warp_active_server_addr(server, &addr));
}

static void tear_down(void)
{
	warp_active_server_destroy(server);
}

TestSuite(active_own, .init = set_up, .fini = tear_down, .timeout = 60);

static struct warp_active_client *connected(struct warp_active_region_info *mine)
{
	struct warp_active_client *client;

	cr_assert_not(warp_active_connect((struct sockaddr *)&addr, sizeof(struct sockaddr_in),
					  NULL, &client));
	cr_assert_not(warp_active_region_find(client, "mine", mine));
	return client;
}

static struct warp_active_result run(struct warp_active_client *client, const char *function,
				     uint32_t region, uint64_t a, uint64_t b)
{
	const struct warp_active_grant grant = { region, 7 };
	struct warp_active_run r = { .function = function,
				     .args = (const uint64_t[]){ a, b },
				     .args_len = 16,
				     .grants = &grant,
				     .grant_count = 1 };
	struct warp_active_object *object;
	struct warp_active_result result;

	cr_assert_not(warp_active_object_open(ACTIVE_PROGRAMS "/active.object", &object));
	r.object = object;
	cr_assert_not(warp_active_run(client, &r, &result));
	warp_active_object_destroy(object);
	return result;
}

static bool is_mapped(uint64_t at)
{
	unsigned char there;

	return !mincore((void *)at, 1, &there);
}

Test(active_own, each_client_has_its_own)
{
	struct warp_active_region_info a_mine, b_mine;
	struct warp_active_client *a = connected(&a_mine), *b = connected(&b_mine);
	struct warp_active_result r;
	struct warp_active_stats stats;

	cr_assert_eq(again, -EEXIST);
	cr_assert_neq(a_mine.addr, b_mine.addr);
	cr_assert_eq(run(a, "poke", a_mine.number, a_mine.addr, 7).code, WARP_ACTIVE_OK);
	cr_assert_eq(run(a, "poke", a_mine.number, b_mine.addr, 7).code, WARP_ACTIVE_ADDRESS);
	r = run(b, "peek", b_mine.number, b_mine.addr, 0);
	cr_assert(r.code == WARP_ACTIVE_OK && !r.value);
	cr_assert_eq(run(b, "take", b_mine.number, 0, 100).code, WARP_ACTIVE_OK);
	warp_active_server_query(server, &stats);
	cr_assert_eq(stats.heap_bytes, 128);
	cr_assert(is_mapped(a_mine.addr) && is_mapped(b_mine.addr));
	cr_assert_not(warp_active_disconnect(a));
	for (int i = 0; i < 500 && is_mapped(a_mine.addr); i++)
		usleep(10000);
	cr_assert(!is_mapped(a_mine.addr) && is_mapped(b_mine.addr));
	cr_assert_eq(run(b, "poke", b_mine.number, b_mine.addr, 7).code, WARP_ACTIVE_OK);
	cr_assert_not(warp_active_disconnect(b));
}

/* More clients than a server has room for regions */
Test(active_own, clients_come_and_go)
{
	struct warp_active_region_info mine;

	for (int i = 0; i < 200; i++) {
		last = NULL; /* it goes with its client */
		cr_assert_not(warp_active_disconnect(connected(&mine)));
	}
}

Test(active_own, by_rdma_too)
{
	struct warp_active_region_info mine;
	struct warp_active_client *client = connected(&mine);
	uint64_t word = 42, back = 0;

	cr_assert_eq(world_access(client, WARP_ACTIVE_OP_WRITE, mine.number, 8, &word, 8), 0);
	cr_assert_eq(world_access(client, WARP_ACTIVE_OP_READ, mine.number, 8, &back, 8), 0);
	cr_assert(back == 42 && ((uint64_t *)mine.addr)[1] == 42);
	cr_assert_not(warp_active_disconnect(client));
}
