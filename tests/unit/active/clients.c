/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who may be a client, and which of its threads and processes can use it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "tests/unit/active/one_client.h"

TestSuite(active_clients, .init = open_all, .fini = close_all, .timeout = 60);

/* By IPv4 and by IPv6 these are two hosts, for a server that hears both at one socket */
Test(active_clients, clients_of_one_host)
{
	const struct warp_active_server_attr attr = { .per_host = 2, .clients = 8 };
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *hosts[] = { (void *)&four, (void *)&six };
	const socklen_t lens[] = { sizeof(four), sizeof(six) };
	struct warp_active_client *of[2][2], *more;
	struct warp_active_server *server;
	struct sockaddr_storage addr;
	int ret = -1;

	cr_assert_not(warp_active_server_create(&attr, &server));
	cr_assert_not(warp_active_server_listen(server, (const void *)&any, sizeof(any)));
	cr_assert_not(warp_active_server_addr(server, &addr));
	four.sin_port = six.sin6_port = ((struct sockaddr_in6 *)&addr)->sin6_port;
	for (int i = 0; i < 4; i++)
		cr_assert_not(warp_active_connect(hosts[i % 2], lens[i % 2], NULL,
						  &of[i % 2][i / 2]),
			      "%d", i);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(warp_active_connect(hosts[i], lens[i], NULL, &more), -ECONNREFUSED);
	/* One goes: there is room for one of the same host */
	cr_assert_not(warp_active_disconnect(of[0][0]));
	for (int i = 0; i < 500 && ret; i++) {
		ret = warp_active_connect(hosts[0], lens[0], NULL, &of[0][0]);
		usleep(10000);
	}
	cr_assert_not(ret);
	cr_assert_eq(warp_active_connect(hosts[1], lens[1], NULL, &more), -ECONNREFUSED);
	for (int i = 0; i < 4; i++)
		cr_assert_not(warp_active_disconnect(of[i % 2][i / 2]));
	warp_active_server_destroy(server);
}

static void *run_some(void *arg)
{
	for (uint64_t i = 0; i < 200; i++) {
		struct warp_active_result r =
			world_run(&w, arg, &(const struct world_call){ "steps", { i }, 1 });

		if (r.code != WARP_ACTIVE_OK || r.value != i)
			return arg;
	}
	return NULL;
}

Test(active_clients, from_many_threads)
{
	pthread_t threads[8];
	void *bad;

	for (int i = 0; i < 8; i++)
		cr_assert_not(pthread_create(&threads[i], NULL, run_some, c));
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &bad);
		cr_assert_null(bad);
	}
	cr_assert_eq(world_stats(&w).loads, 1);
}

/* What a child of fork() is told: bits for calls that say something else */
static int child_asks(struct warp_active_request *r)
{
	const struct warp_active_run run = { .object = w.object };
	const struct warp_active_access access = { .buffer = &(uint64_t){ 0 }, .len = 8 };
	struct warp_active_request *out;
	struct warp_active_result result;

	return (warp_active_run(c, &run, &result) != -ECHILD) |
	       (warp_active_start(c, &run, &out) != -ECHILD) << 1 |
	       (warp_active_access(c, &access, &out) != -ECHILD) << 2 |
	       (warp_active_wait(r, 1000, &result) != -ECHILD) << 3 |
	       (warp_active_cancel(r) != -ECHILD) << 4 |
	       (warp_active_poll(c, &out, 1) != -ECHILD) << 5 |
	       (warp_active_disconnect(c) != -ECHILD) << 6;
}

/* The client is its parent's, who notices nothing */
Test(active_clients, a_child_of_fork)
{
	struct warp_active_request *r;
	struct warp_active_result result;
	int status;
	pid_t child;

	CHECK(RUN("sum"), WARP_ACTIVE_OK);
	r = world_start(&w, c, &(const struct world_call){ "spin", .timeout_us = 200000 });
	child = fork();
	if (!child) {
		int wrong = child_asks(r);

		warp_active_drop(r);
		_exit(wrong);
	}
	cr_assert(child > 0 && waitpid(child, &status, 0) == child);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "0x%x", (unsigned int)status);
	result = world_wait(r);
	CHECK(result, WARP_ACTIVE_FUEL);
	for (int i = 0; i < 20; i++)
		CHECK(RUN("sum"), WARP_ACTIVE_OK);
}
