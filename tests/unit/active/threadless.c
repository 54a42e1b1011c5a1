/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server of Active RDMA that gets no thread, or too few: it says so, refuses its clients, and can
 * be tried again.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>
#include <warp/active.h>

#include "base/bits.h"
#include "tests/unit/threadless.h"

#define WORKERS 2

static struct warp_active_server *create(void)
{
	struct warp_active_server_attr attr = { .workers = WORKERS };
	struct warp_active_server *server;

	cr_assert_eq(warp_active_server_create(&attr, &server), 0);
	return server;
}

static int serve(struct warp_active_server *server)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	return warp_active_server_listen(server, (struct sockaddr *)&at, sizeof(at));
}

static bool has_client(struct warp_active_server *server)
{
	struct warp_active_client *client;
	struct sockaddr_storage at;

	cr_assert_eq(warp_active_server_addr(server, &at), 0);
	if (warp_active_connect((struct sockaddr *)&at, sizeof(struct sockaddr_in), NULL, &client))
		return false;
	cr_assert_eq(warp_active_disconnect(client), 0);
	return true;
}

/* The device's own, which begins with the first client, and ours: workers, the lane, the door */
Test(active_threadless, each_of_them, .timeout = 60)
{
	for (unsigned int i = 0; i < 2 * (WORKERS + 2); i++) {
		struct warp_active_server *server = create();
		struct sockaddr_storage at;

		threadless = threadless_errors[i % 2];
		threadless_from = i / 2;
		cr_expect_eq(serve(server), -threadless, "thread %u", i / 2);
		cr_expect_eq(warp_active_server_addr(server, &at), -ENOTCONN);
		threadless = 0;
		cr_expect_eq(serve(server), 0, "thread %u", i / 2);
		cr_expect(has_client(server), "thread %u", i / 2);
		warp_active_server_destroy(server);
	}
}

Test(active_threadless, destroyed_at_once, .timeout = 60)
{
	for (unsigned int i = 0; i < WORKERS + 2; i++) {
		struct warp_active_server *server = create();

		threadless = EAGAIN;
		threadless_from = i;
		cr_expect_eq(serve(server), -EAGAIN);
		warp_active_server_destroy(server);
	}
	threadless = 0;
}

/* The door of datagrams has one of its own */
Test(active_threadless, datagrams, .timeout = 60)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct warp_active_region_attr attr = { .name = "open", .size = 4096, .rights = 15 };
	struct warp_active_server *server = create();
	struct warp_active_region *region;

	cr_assert_eq(warp_active_export(server, &attr, &region), 0);
	for (unsigned int i = 0; i < 2; i++) {
		threadless = threadless_errors[i];
		cr_expect_eq(warp_active_udp_serve(server, region, (struct sockaddr *)&at,
						   sizeof(at)),
			     -threadless);
	}
	threadless = 0;
	cr_expect_eq(warp_active_udp_serve(server, region, (struct sockaddr *)&at, sizeof(at)), 0);
	warp_active_server_destroy(server);
}
