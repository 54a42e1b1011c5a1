/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A responder that overlooks what comes while it sends its Reply, until another frame does: its
 * initiator, of queue pairs, sends Writes of nothing.
 */
#include "tests/unit/soft/end.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A Write of nothing, but for its CRC */
static const uint8_t nothing[20] = { 0, 14, 0xc1, 0x40, 0, 0, 0, 1 };
static struct warp_device *dev;
static struct end a;
static int peer; /* the responder's socket */

TestSuite(soft_write_retry, .timeout = 60);

static bool readable(int timeout_ms)
{
	struct pollfd p = { .fd = peer, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static void frame_get(void *frame, size_t len)
{
	cr_assert_eq(recv(peer, frame, len, MSG_WAITALL), (ssize_t)len);
}

static void frame_put(const void *frame, size_t len)
{
	cr_assert_eq(send(peer, frame, len, 0), (ssize_t)len);
}

static void open_one(void)
{
	static const char reply[] = "MPA ID Rep Frame\x00\x01\x00\x00";
	struct warp_conn_param p = { .flags = WARP_CONN_REV1 | WARP_CONN_NO_CRC };
	uint8_t request[20];
	int fd[2];

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 4);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	peer = fd[1];
	cr_assert_eq(warp_connect_fd(a.qp, fd[0], &p, &a.conn), 0);
	frame_get(request, sizeof(request));
	frame_put(reply, 20);
	cr_assert_eq(warp_conn_wait(a.conn, 5000), 0);
}

static void close_one(void)
{
	close(peer);
	end_uninit(&a);
	cr_assert_eq(warp_device_close(dev), 0);
}

static struct warp_conn_info info_of(void)
{
	struct warp_conn_info info;

	cr_assert_eq(warp_conn_query(a.conn, &info), 0);
	return info;
}

static void say(void)
{
	cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = 1 }, 0, 8), 1);
}

/* How many frames it has sent in all, when no more comes */
static uint64_t all_sent(void)
{
	uint8_t octets[64];

	while (readable(700))
		cr_assert_gt(recv(peer, octets, sizeof(octets), 0), 0);
	return info_of().tx_fpdus;
}

Test(soft_write_retry, a_silent_responder)
{
	uint8_t frame[32];

	open_one();
	cr_assert_not(readable(60), "nothing was sent yet that could be overlooked");
	say();
	frame_get(frame, sizeof(frame));
	for (int i = 0; i < 3; i++) {
		cr_assert(readable(5000));
		frame_get(frame, sizeof(nothing));
		cr_assert_eq(memcmp(frame, nothing, 16), 0);
	}
	/* Which one of nothing is enough for */
	frame_put(nothing, sizeof(nothing));
	cr_assert_lt(all_sent(), 1 + 6);
	close_one();
}

/* It may have spoken before it looked */
Test(soft_write_retry, a_responder_that_speaks)
{
	open_one();
	say();
	frame_put(nothing, sizeof(nothing));
	cr_expect_gt(all_sent(), 1);
	close_one();
}

Test(soft_write_retry, a_responder_that_spoke_first)
{
	open_one();
	frame_put(nothing, sizeof(nothing));
	while (!info_of().rx_fpdus)
		;
	say();
	cr_expect_eq(all_sent(), 1);
	close_one();
}
