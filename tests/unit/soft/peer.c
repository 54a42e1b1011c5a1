/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers that do what ours never do: read without end, or go while their answers are still in the
 * socket.
 */
#include "tests/unit/soft/pair.h"
#include "tests/unit/soft/raw.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>

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
		raw_get(fd, ulpdu, drive);
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

/* --- a socket that takes what it likes --- */

static void send_check(const uint8_t *ulpdu, uint32_t msn, uint32_t mo)
{
	struct ddp_untagged h;

	memcpy(&h, ulpdu, sizeof(h));
	cr_assert_eq(be32toh(h.msn), msn);
	cr_assert_eq(be32toh(h.mo), mo);
}

Test(soft_peer, what_the_socket_cuts_arrives_whole)
{
	enum { MESSAGES = 24, LEN = 40000 };
	static uint8_t ulpdu[65536];
	int pair[2];

	MUST(warp_device_open("soft", &dev) == 0);
	end_init(&a, dev, 32);
	tcp_pair(pair, 0, 5000); /* a frame each, and what is taken at once is not a multiple */
	fd = pair[1];
	raw_connect(&a, pair, 1);
	for (size_t i = 0; i < MESSAGES * LEN; i++)
		a.mem[i] = (uint8_t)(i / 7 + i / 40000);
	for (uint64_t i = 0; i < MESSAGES; i++)
		cr_assert_eq(end_post(&a, (struct warp_send_wr){ .wr_id = i }, i * LEN, LEN), 1);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		for (uint32_t mo = 0; mo < LEN;) {
			size_t n = raw_get(fd, ulpdu, drive) - DDP_UNTAGGED_LEN;

			send_check(ulpdu, i + 1, mo);
			cr_assert_arr_eq(ulpdu + DDP_UNTAGGED_LEN, a.mem + i * LEN + mo, n);
			mo += (uint32_t)n;
		}
	}
	for (uint64_t i = 0; i < MESSAGES; i++)
		cr_assert_eq(end_next(&a, NULL).wr_id, i);
	end_drop();
}

/* --- the queue --- */

Test(soft_peer, a_local_invalidation_waits_for_its_fence)
{
	struct warp_send_wr rd = { .opcode = WARP_WR_READ, .remote_stag = 0x100 };
	struct warp_send_wr inv = { .opcode = WARP_WR_LOCAL_INVALIDATE, .flags = WARP_SEND_FENCE };

	end_make(1);
	inv.inv_stag = warp_mr_stag(a.mr);
	cr_assert_eq(end_post(&a, rd, 0, 8), 1);
	cr_assert_eq(end_post(&a, inv, 0, 0), 1);
	raw_read_request(fd, 1, &a, 8);
	cr_assert_eq(message_get(), RDMAP_READ_REQ);
	cr_assert_eq(message_get(), RDMAP_READ_RESP);
	end_drop();
}

static bool readable(int number, int timeout_ms)
{
	struct pollfd p = { .fd = number, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

Test(soft_peer, arming_chooses_what_wakes)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_WRITE, .remote_stag = 0x100 };

	end_make(1);
	cr_assert_eq(warp_cq_arm(a.cq, true), 0);
	cr_assert_eq(end_post(&a, wr, 0, 8), 1);
	cr_assert_not(readable(warp_cq_fd(a.cq), 50));
	cr_assert_eq(warp_cq_arm(a.cq, false), 0);
	cr_assert_eq(end_post(&a, wr, 0, 8), 1);
	cr_assert(readable(warp_cq_fd(a.cq), 1000));
	cr_assert_eq(warp_cq_ack(a.cq), 0);
	cr_assert_not(readable(warp_cq_fd(a.cq), 50));
	end_drop();
}

Test(soft_peer, one_work_request_hears_of_a_fault)
{
	static const enum warp_wc_status heard[] = { WARP_WC_REMOTE_ACCESS, WARP_WC_SUCCESS,
						     WARP_WC_FLUSHED };
	struct warp_send_wr rd = { .opcode = WARP_WR_READ, .remote_stag = 0x100 };
	struct warp_send_wr wr = { .wr_id = 1, .opcode = WARP_WR_WRITE, .remote_stag = 0x100 };

	end_make(4);
	cr_assert_eq(end_post(&a, rd, 0, 8), 1);
	cr_assert_eq(end_post(&a, wr, 0, 8), 1);
	rd.wr_id = 2;
	cr_assert_eq(end_post(&a, rd, 0, 8), 1);
	raw_terminate(fd);
	for (uint64_t i = 0; i < 3; i++) {
		struct warp_wc wc = end_next(&a, NULL);

		cr_assert_eq(wc.wr_id, i);
		cr_assert_eq(wc.status, heard[i], "%lu: %s", (unsigned long)i,
			     warp_wc_status_text(wc.status));
	}
	end_drop();
}

/* --- ends --- */

/* A socket that is closed while octets come resets the connection, and drops what it had to send */
Test(soft_peer, what_comes_after_the_end_is_thrown_away)
{
	char c;

	end_make(1);
	cr_assert_eq(warp_conn_disconnect(a.conn), 0);
	cr_assert_eq(warp_conn_destroy(a.conn), 0);
	a.conn = NULL;
	cr_assert_eq(recv(fd, &c, 1, 0), 0);
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(send(fd, "late", 4, MSG_NOSIGNAL), 4);
		usleep(5000);
	}
	end_drop();
}

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
		raw_get(fd, ulpdu, drive);
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

/* --- refused --- */

/* It reads why as long as no FIN has come behind it (docs/interop.md), and is not waited for */
Test(soft_peer, who_is_refused_ends_first)
{
	static const char request[] = "MPA ID Req Frame\x00\x01\x00\x00";
	struct warp_conn_param p = { .flags = WARP_CONN_REV1 | WARP_CONN_NO_CRC };
	struct pollfd there = { .events = POLLIN };
	char reply[22], more;
	struct warp_conn *c;
	int pair[2];

	MUST(warp_device_open("soft", &dev) == 0);
	raw_pair(pair);
	there.fd = pair[1];
	cr_assert_eq(warp_accept_fd(dev, pair[0], &p, &c), 0);
	MUST(send(pair[1], request, 20, 0) == 20);
	cr_assert_eq(warp_conn_wait(c, 5000), 0);
	cr_assert_eq(warp_conn_reject(c, "no", 2), 0);
	MUST(recv(pair[1], reply, 22, MSG_WAITALL) == 22);
	cr_expect_eq(memcmp(reply + 20, "no", 2), 0);
	cr_assert_eq(warp_conn_destroy(c), 0);
	cr_expect_eq(poll(&there, 1, 300), 0);
	MUST(shutdown(pair[1], SHUT_WR) == 0);
	cr_assert_eq(poll(&there, 1, 1000), 1);
	cr_expect_eq(recv(pair[1], &more, 1, 0), 0);
	close(pair[1]);
	cr_assert_eq(warp_device_close(dev), 0);
}
