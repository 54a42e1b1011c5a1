/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers that do what ours never do: read without end, or go while their answers are still in the
 * socket.
 */
#include "tests/unit/soft/raw.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>

static struct warp_device *dev;
static struct end a;
static int fd;

static void end_make(uint16_t ord)
{
	int pair[2];

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 32);
	raw_pair(pair);
	fd = pair[1];
	raw_connect(&a, pair, ord);
}

static void end_drop(void)
{
	close(fd);
	end_uninit(&a);
	cr_assert_eq(warp_device_close(dev), 0);
}

TestSuite(soft_peer, .timeout = 30);

static void drive(void)
{
	cr_assert_eq(warp_cq_poll(a.cq, NULL, 0), 0);
}

/* The opcode of the next message, of which the last frame is returned */
static unsigned int message_get(void)
{
	static uint8_t ulpdu[65536];

	do {
		char c;

		while (recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
			drive();
		raw_get(fd, ulpdu);
	} while (!(ulpdu[0] & DDP_L));
	return ulpdu[1] & RDMAP_OP;
}

/* --- turns --- */

Test(soft_peer, reads_of_the_peer_do_not_hold_up_our_queue)
{
	unsigned int op[12];

	end_make(4);
	/* More than the socket holds, so that the first answer is under way while we post */
	for (uint32_t msn = 1; msn <= 6; msn++)
		raw_read_request(fd, msn, &a, END_ROOM);
	for (int i = 0; i < 1000; i++)
		drive();
	for (uint64_t i = 0; i < 6; i++)
		cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = i }, 0, 10), 1);
	for (unsigned int i = 0; i < 12; i++) {
		op[i] = message_get();
		cr_assert_eq(op[i], i % 2 ? RDMAP_SEND : RDMAP_READ_RESP, "message %u", i);
	}
	end_drop();
}

Test(soft_peer, our_queue_does_not_hold_up_reads_of_the_peer)
{
	unsigned int got = 0;

	end_make(4);
	for (uint64_t i = 0; i < 8; i++)
		cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = i }, 0, END_ROOM), 1);
	raw_read_request(fd, 1, &a, 8);
	for (unsigned int i = 0; i < 3 && !got; i++)
		got = message_get() == RDMAP_READ_RESP;
	cr_assert(got);
	end_drop();
}

/* --- an end amidst answers --- */

/*
 * The peer answers two Reads, the second one in more octets than are received at once, and is
 * gone; a third Read, which waits for the first one's place, cannot leave any more
 */
Test(soft_peer, what_was_answered_before_the_peer_went_counts)
{
	static const uint8_t nothing[DDP_TAGGED_LEN] = { DDP_T | DDP_L | DDP_DV1,
							 RDMAP_RV1 | RDMAP_WRITE };
	struct warp_send_wr wr = { .opcode = WARP_WR_READ, .remote_stag = 0x100 };
	static uint8_t ulpdu[65536];
	struct rdmap_read_req r[2];
	struct warp_wc wc;

	end_make(2);
	/* The progress thread is to leave it alone; it waits for one event yet */
	cr_assert_eq(warp_mr_deregister(a.mr), 0);
	cr_assert_eq(warp_mr_register(a.pd, a.mem, END_ROOM, WARP_ACCESS_LOCAL_WRITE, &a.mr), 0);
	raw_put(fd, nothing, sizeof(nothing));
	usleep(60000);
	for (wr.wr_id = 0; wr.wr_id < 3; wr.wr_id++)
		cr_assert_eq(end_post(&a, wr, 0, wr.wr_id == 1 ? 325000 : 8), 1);
	for (int i = 0; i < 2; i++) {
		raw_get(fd, ulpdu);
		memcpy(&r[i], ulpdu + DDP_UNTAGGED_LEN, sizeof(r[i]));
	}
	raw_read_response(fd, &r[0], 0, 8);
	for (uint32_t off = 0; off < 325000; off += 65000)
		raw_read_response(fd, &r[1], off, 65000);
	close(fd);
	fd = -1;
	for (uint64_t i = 0; i < 3; i++) {
		wc = end_next(&a, NULL);
		cr_assert_eq(wc.wr_id, i);
		cr_assert_eq(wc.status, i < 2 ? WARP_WC_SUCCESS : WARP_WC_TRANSPORT);
	}
	end_drop();
}

/* --- a socket that is open elsewhere, too --- */

/* Is a descriptor of this number, which may be closed, in an epoll set of ours? */
static bool watched(int number)
{
	DIR *d = opendir("/proc/self/fdinfo");
	bool found = false;

	for (struct dirent *at = readdir(d); at; at = readdir(d)) {
		char path[300], line[300];
		FILE *f;
		int n;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", at->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			found = found || (sscanf(line, "tfd: %d", &n) == 1 && n == number);
		if (f)
			fclose(f);
	}
	closedir(d);
	return found;
}

Test(soft_peer, nobody_watches_what_is_closed)
{
	int pair[2], other;

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 32);
	raw_pair(pair);
	fd = pair[1];
	other = dup(pair[0]);
	raw_connect(&a, pair, 1);
	cr_assert(watched(pair[0]));
	cr_assert_eq(warp_conn_destroy(a.conn), 0);
	a.conn = NULL;
	for (int i = 0; i < 2000 && watched(pair[0]); i++)
		usleep(1000);
	cr_assert_not(watched(pair[0]));
	close(other);
	end_drop();
}
