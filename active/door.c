/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that lets clients in.
 */
#include <errno.h>
#include <time.h>

#include "active/session.h"
#include "base/log.h"

enum { WAIT_MS = 200 }; /* how late it may notice that it is to end */

static void *door(void *arg)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct warp_active_server *server = arg;
	struct warp_conn *conn;

	/* pairs with warp_active_server_destroy() */
	while (!__atomic_load_n(&server->stop, __ATOMIC_ACQUIRE)) {
		int ret = warp_listener_get(server->listener, WAIT_MS, &conn);

		if (!ret) {
			active_session_create(server, conn);
		} else if (ret != -ETIMEDOUT && ret != -EINTR) {
			base_log(BASE_LOG_WARN, "active: no client can be taken: error %d", -ret);
			nanosleep(&pause, NULL); /* out of descriptors, say */
		}
	}
	return NULL;
}

int active_door_start(struct warp_active_server *server)
{
	int ret = -pthread_create(&server->door_thread, NULL, door, server);

	server->door_runs = !ret;
	return ret;
}
