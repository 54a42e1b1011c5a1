/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_ACTIVE_KERNEL_WORLD_H
#define TESTS_UNIT_ACTIVE_KERNEL_WORLD_H

/*
 * Programs in the kernel: server and client in one process, in a network namespace of its own, with
 * the door at its loopback interface. open_all() and close_all() are for a suite's .init and .fini.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warp/active.h>

#include "tests/active/world.h"

enum { SIZE = 1 << 16, WAIT_MS = 5000 };

static const struct sockaddr_in at = { .sin_family = AF_INET,
				       .sin_port = 0x841c, /* 7300 */
				       .sin_addr.s_addr = 0x0100007f };
static struct warp_active_server *server;
static struct warp_active_client *c;
static struct warp_active_object *object;
static struct warp_active_region *table, *constants, *plain, *open_to_all;
static uint64_t base, rate;

/* A region that is the client's own */
static int own_export(const struct warp_active_peer *peer, const char *name, unsigned int rights)
{
	const struct warp_active_region_attr attr = { .name = name,
						      .size = SIZE,
						      .rights = rights,
						      .flags = WARP_ACTIVE_IN_KERNEL,
						      .peer = peer };
	struct warp_active_region *r;

	return warp_active_export(server, &attr, &r);
}

/*
 * With the token "reader": of the table, to read; and of the region in arena 1. With "own": of the
 * table, and regions of its own. With "blind": of a region of its own
 */
static int admit(void *context, const struct warp_active_peer *peer)
{
	bool reader = peer->token_len == 6, own = !reader && !memcmp(peer->token, "own", 3);
	int ret;

	if (!reader && !memcmp(peer->token, "bli", 3))
		return own_export(peer, "unreadable", 10);
	ret = warp_active_grant(peer, table, reader ? 9 : 15);

	if (!ret && reader)
		return warp_active_grant(peer, open_to_all, 9);
	if (!ret)
		ret = warp_active_grant(peer, constants, 9);
	if (!ret && own)
		ret = own_export(peer, "mine", 15);
	if (!ret && own)
		return own_export(peer, "mine too", 15);
	return ret ? ret : warp_active_grant(peer, plain, 15);
}

static void loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo));
	close(fd);
}

static struct warp_active_region *region(const char *name, unsigned int rights, unsigned int flags,
					 unsigned int arena)
{
	const struct warp_active_region_attr attr = {
		.name = name, .size = SIZE, .rights = rights, .flags = flags, .arena = arena
	};
	struct warp_active_region *r;

	cr_assert_not(warp_active_export(server, &attr, &r));
	return r;
}

static struct warp_active_client *connected(const char *token)
{
	const struct warp_active_client_attr attr = { .token = token, .token_len = strlen(token) };
	struct warp_active_client *client;

	cr_assert_not(
		warp_active_connect((const struct sockaddr *)&at, sizeof(at), &attr, &client));
	return client;
}

static struct warp_active_kernel_attr kernel_attr(void)
{
	return (struct warp_active_kernel_attr){ .interface = "lo",
						 .addr = (const struct sockaddr *)&at,
						 .len = sizeof(at),
						 .size = 4 * SIZE,
						 .programs = 4,
						 .each = 3,
						 .rate = rate };
}

static void open_all(void)
{
	const struct warp_active_server_attr attr = { .admit = admit, .workers = 3 };
	const struct warp_active_kernel_attr kernel = kernel_attr();
	size_t len;
	void *elf = world_file("active.object", &len);
	int ret;

	if (unshare(CLONE_NEWNET))
		cr_skip_test("no network namespace is to be had");
	loopback_up();
	cr_assert_not(warp_active_server_create(&attr, &server));
	ret = warp_active_kernel_serve(server, &kernel);
	if (ret == -EPERM || ret == -EOPNOTSUPP)
		cr_skip_test("no BPF arena: %s", strerror(-ret));
	cr_assert_eq(ret, 0, "%s", strerror(-ret));
	table = region("table", 15, WARP_ACTIVE_IN_KERNEL, 0);
	constants = region("constants", 9, WARP_ACTIVE_IN_KERNEL, 0);
	plain = region("plain", 15, 0, 0);
	open_to_all = region("open", 15, WARP_ACTIVE_IN_KERNEL, 1);
	base = (uintptr_t)warp_active_region_memory(table);
	cr_assert_not(warp_active_server_listen(server, (const struct sockaddr *)&at, sizeof(at)));
	cr_assert_not(warp_active_object_create(elf, len, &object));
	free(elf);
	c = connected("all");
}

static void close_all(void)
{
	warp_active_disconnect(c);
	warp_active_object_destroy(object);
	warp_active_server_destroy(server);
}

static const struct warp_active_grant all_table = { 0, 7 };

static struct warp_active_result try_install(struct warp_active_client *client,
					     const char *function,
					     const struct warp_active_grant *grants, size_t count,
					     struct warp_active_place **out)
{
	const struct warp_active_run run = {
		.object = object, .function = function, .grants = grants, .grant_count = count
	};
	struct warp_active_result r;

	*out = NULL;
	cr_assert_not(warp_active_install(client, &run, out, &r));
	return r;
}

static struct warp_active_place *install(const char *function)
{
	struct warp_active_place *place;
	struct warp_active_result r = try_install(c, function, &all_table, 1, &place);

	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s: %s", function, r.text);
	return place;
}

static struct warp_active_result run_at(struct warp_active_place *place, const uint64_t *args,
					size_t count)
{
	struct warp_active_result r;
	int ret = warp_active_place_run(place, args, count * 8, NULL, 0, WAIT_MS, &r);

	cr_assert_eq(ret, 0, "%s", strerror(-ret));
	return r;
}

#define RUN(place, ...)                            \
	run_at(place, (uint64_t[]){ __VA_ARGS__ }, \
	       sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void refused(struct warp_active_client *client, const char *function,
		    const struct warp_active_grant *grant, enum warp_active_code code,
		    const char *text)
{
	struct warp_active_place *place;
	struct warp_active_result r = try_install(client, function, grant, 1, &place);

	cr_expect(r.code == code && !place && strstr(r.text, text), "%s: %d %s", function, r.code,
		  r.text);
}

#endif
