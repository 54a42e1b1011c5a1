/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The software provider without its progress thread: an error, and no wait without an end.
 */
#include <criterion/criterion.h>
#include <sys/socket.h>

#include "tests/unit/soft/end.h"
#include "tests/unit/threadless.h"

static struct warp_device *dev, *there;
static struct end a, b;

static void begin(int err)
{
	threadless = err;
	end_devices_open(&dev, &there);
	end_init(&a, dev, 16);
	end_init(&b, there, 16);
}

/* With a thread again, all is as ever */
static void finish(void)
{
	threadless = 0;
	ends_connect(&a, &b, NULL, NULL);
	end_uninit(&a);
	end_uninit(&b);
	end_devices_close(dev, there);
}

TestSuite(soft_threadless, .timeout = 60);

Test(soft_threadless, who_connects_is_told)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct sockaddr_storage at;
		struct warp_listener *l;
		struct warp_conn *conn = NULL;

		begin(threadless_errors[i]);
		l = end_listen(there, &at);
		for (int k = 0; k < 2; k++)
			cr_expect_eq(warp_connect(a.qp, (struct sockaddr *)&at,
						  sizeof(struct sockaddr_in), NULL, &conn),
				     -threadless_errors[i], "try %d", k);
		cr_expect_null(conn);
		cr_assert_eq(warp_listener_destroy(l), 0);
		finish();
	}
}

/* A client that finds a server without a thread is not kept waiting */
Test(soft_threadless, who_comes_is_sent_away)
{
	for (unsigned int i = 0; i < 2; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		struct sockaddr_storage at;
		struct warp_listener *l;
		struct warp_conn *conn;
		char c;

		begin(threadless_errors[i]);
		l = end_listen(there, &at);
		cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)), 0);
		cr_expect_eq(warp_listener_get(l, 100, &conn), -ETIMEDOUT);
		cr_expect_leq(recv(fd, &c, 1, 0), 0);
		close(fd);
		cr_assert_eq(warp_listener_destroy(l), 0);
		finish();
	}
}
