/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The UDP driver: what goes together, what goes alone, and how many system calls that takes.
 */
#include "am/nic.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>

#include "am/frame.h"
#include "base/bits.h"
#include "base/clock.h"
#include "include/warp/amudp.h"

#define LONE 600 /* more than twice what makes a connected socket */

static struct am_nic *nic[3];
static struct am_batch *batch[3];
static uint64_t receives; /* asked of all */

static void open_three(bool behind)
{
	struct am_nic_config config = { .receive_bytes = 1 << 20, .one_socket = behind };
	int i;

	config.name.sin_family = AF_INET;
	config.name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(am_udp_ops.create(&nic[i], &config), 0);
		cr_assert_eq(am_udp_ops.batch_create(nic[i], &batch[i]), 0);
	}
}

static void close_three(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		am_udp_ops.batch_destroy(batch[i]);
		am_udp_ops.destroy(nic[i]);
	}
}

static struct am_datagram packet(uint8_t *p, uint32_t n, int to)
{
	struct am_packet header = { .window = 7 };
	struct am_datagram d = { .iov = { { p, n } }, .count = 1, .length = n };

	d.to = nic[to]->name;
	am_packet_put(p, &header);
	am_packet_seal(d.iov, 1);
	return d;
}

/* Waits for something to come; max at a time. */
static int receive(int i, int max)
{
	uint64_t end = base_now() + 10 * BASE_NS_PER_S;
	int n;

	do {
		n = am_udp_ops.receive(nic[i], batch[i], max);
		receives++;
		cr_assert_lt(base_now(), end, "nothing comes");
	} while (n == 0);
	return n;
}

static void one_passes(int from, int to)
{
	uint8_t p[64] = { 0 };
	struct am_datagram d = packet(p, sizeof(p), to);

	cr_assert_eq(am_udp_ops.send(nic[from], &d, 1), 1);
	cr_assert_eq(receive(to, 1), 1);
	cr_assert_eq(batch[to]->arrivals[0].length, sizeof(p));
	cr_assert_eq(batch[to]->arrivals[0].from.sin_port, nic[from]->name.sin_port);
	cr_assert_eq(batch[to]->arrivals[0].from.sin_addr.s_addr, nic[from]->name.sin_addr.s_addr);
}

Test(udp, lone_datagrams_and_a_connected_socket, .timeout = 60)
{
	int i;

	open_three(false);
	for (i = 0; i < LONE; i++) {
		one_passes(0, 1);
		one_passes(1, 0);
	}
	cr_assert_eq(nic[0]->calls_send, (uint64_t)LONE, "one system call each");
	cr_assert_geq(nic[0]->also_fd, 0, "there is a connected socket");
	/* others are heard and spoken to as before */
	one_passes(0, 2);
	one_passes(2, 0);
	cr_assert_eq(nic[2]->also_fd, -1);
	/* and another may be the connected one, or no answer be there */
	for (i = 0; i < LONE; i++) {
		one_passes(2, 0);
		one_passes(0, 2);
		if (i % 100 == 0)
			one_passes(1, 0);
	}
	one_passes(0, 1);
	close_three();
}

Test(udp, a_peer_that_is_gone, .timeout = 60)
{
	struct am_nic_config config = { .receive_bytes = 1 << 20 };
	uint8_t p[64] = { 0 };
	struct am_datagram d;
	int i;

	open_three(false);
	for (i = 0; i < LONE; i++)
		one_passes(0, 1);
	config.name = nic[1]->name;
	am_udp_ops.batch_destroy(batch[1]);
	am_udp_ops.destroy(nic[1]);
	d = packet(p, sizeof(p), 2);
	d.to = config.name;
	for (i = 0; i < 10; i++)
		cr_assert_eq(am_udp_ops.send(nic[0], &d, 1), 1, "as if it had been lost");
	one_passes(2, 0);
	cr_assert_eq(am_udp_ops.create(&nic[1], &config), 0, "the name is free again");
	cr_assert_eq(am_udp_ops.batch_create(nic[1], &batch[1]), 0);
	one_passes(0, 1);
	one_passes(1, 0);
	close_three();
}

static uint64_t dropped(ep_t ep)
{
	amudp_xstats_t stats;

	cr_assert_eq(AMUDP_GetEndpointExtendedStatistics(ep, &stats), AM_OK);
	return stats.ArrivalsDropped;
}

Test(udp, what_finds_no_room_is_counted, .timeout = 60)
{
	uint8_t p[1400] = { 0 };
	struct am_datagram d;
	en_t name;
	eb_t eb;
	ep_t ep;
	int i;

	open_three(false);
	cr_assert_eq(AM_Init(), AM_OK);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &eb), AM_OK);
	setenv("RECVDEPTH", "1", 1);
	AMUDP_SetUDPInterface(htonl(INADDR_LOOPBACK));
	cr_assert_eq(AM_AllocateEndpoint(eb, &ep, &name), AM_OK);
	cr_assert_eq(dropped(ep), 0u);
	d = packet(p, sizeof(p), 2);
	d.to = name;
	for (i = 0; i < LONE; i++)
		cr_assert_eq(am_udp_ops.send(nic[0], &d, 1), 1);
	cr_assert_gt(dropped(ep), 0u);
	cr_assert_lt(dropped(ep), LONE);
	cr_assert_eq(AMUDP_ResetEndpointStatistics(ep), AM_OK);
	cr_assert_eq(dropped(ep), 0u);
	AM_Terminate();
	close_three();
}

Test(udp, none_behind_another_driver, .timeout = 60)
{
	int i;

	open_three(true);
	for (i = 0; i < LONE; i++)
		one_passes(0, 1);
	cr_assert_eq(nic[0]->also_fd, -1);
	close_three();
}

/* So many datagrams of these lengths, from the first to the second. */
static void send_all(const uint32_t *sizes, int count)
{
	static uint8_t octets[AM_NIC_BATCH][1000];
	struct am_datagram d[AM_NIC_BATCH];
	int i, n, done = 0;

	for (i = 0; i < count; i++)
		d[i] = packet(octets[i], sizes[i], 1);
	while (done < count) {
		n = am_udp_ops.send(nic[0], d + done, count - done);
		cr_assert_gt(n, 0);
		done += n;
	}
}

struct taken {
	int useful;	  /* receives that brought something */
	uint32_t longest; /* of what came as one datagram */
};

/* However they arrive, each tells its length. */
static struct taken take_all(const uint32_t *sizes, int count)
{
	struct taken t = { 0 };
	uint32_t at, n;
	int i, got, seen = 0;

	while (seen < count) {
		got = receive(1, AM_NIC_BATCH);
		t.useful++;
		for (i = 0; i < got; i++) {
			const struct am_arrival *a = &batch[1]->arrivals[i];

			t.longest = base_max(t.longest, a->length);
			for (at = 0; at < a->length; at += n) {
				n = (uint32_t)am_packet_length(a->data + at, a->length - at);
				cr_assert_lt(seen, count);
				cr_assert_eq(n, sizes[seen++]);
			}
		}
	}
	cr_assert_eq(nic[1]->calls_receive, receives, "one system call each");
	return t;
}

static const uint32_t batch_sizes[] = { 101, 101, 101, 101, 64, 1000, 1000, 33 };
#define BATCH_COUNT ((int)base_array_size(batch_sizes))

/* Equal ones and a shorter one leave as one, and arrive as one. */
Test(udp, a_batch, .timeout = 60)
{
	struct taken t;

	open_three(false);
	send_all(batch_sizes, BATCH_COUNT);
	cr_assert_eq(nic[0]->calls_send, 1u);
	t = take_all(batch_sizes, BATCH_COUNT);
	cr_assert_eq(t.longest, 2033u);
	cr_assert_lt(t.useful, BATCH_COUNT);
	close_three();
}

/* What goes to the connected peer goes by its socket, which cannot send here; the rest does not. */
Test(udp, a_batch_to_the_connected_peer, .timeout = 60)
{
	static uint8_t octets[3][64];
	struct am_datagram d[3];
	int i;

	open_three(false);
	for (i = 0; i < LONE; i++)
		one_passes(0, 1);
	cr_assert_eq(shutdown(nic[0]->also_fd, SHUT_WR), 0);
	for (i = 0; i < 3; i++)
		d[i] = packet(octets[i], sizeof(octets[i]), 1);
	cr_assert_eq(am_udp_ops.send(nic[0], d, 3), -EPIPE);
	for (i = 0; i < 3; i++) {
		d[i].to = nic[2]->name;
		cr_assert_eq(am_udp_ops.send(nic[0], d, 3), 3, "%d elsewhere", i + 1);
	}
	close_three();
}

/* Each is longer than the one before: none can go with another, and yet one call takes several. */
Test(udp, several_in_one_receive, .timeout = 60)
{
	static const uint32_t sizes[] = { 33, 34, 35, 36, 37, 38, 39, 40 };
	enum { COUNT = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 100 };
	struct taken t = { .useful = COUNT };
	int i;

	open_three(false);
	for (i = 0; i < ROUNDS && t.useful == COUNT; i++) {
		send_all(sizes, COUNT);
		cr_assert_eq(nic[0]->calls_send, (uint64_t)i + 1);
		t = take_all(sizes, COUNT);
		cr_assert_eq(t.longest, 40u);
	}
	cr_assert_lt(t.useful, COUNT);
	close_three();
}

/* A socket that may not compute checksums is refused GSO: asked once, then each goes by itself. */
Test(udp, a_batch_without_gso, .timeout = 60)
{
	const int one = 1;
	struct taken t;
	int i;

	open_three(false);
	cr_assert_eq(setsockopt(nic[0]->wait_fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)), 0);
	for (i = 0; i < 2; i++) {
		send_all(batch_sizes, BATCH_COUNT);
		cr_assert_eq(nic[0]->calls_send, 2u + (uint64_t)i);
		t = take_all(batch_sizes, BATCH_COUNT);
		cr_assert_eq(t.longest, 1000u);
	}
	close_three();
}

/* The same when others have left before it is refused. */
Test(udp, a_batch_without_gso_in_its_midst, .timeout = 60)
{
	static const uint32_t sizes[] = { 50, 60, 70, 70, 70 };
	const int one = 1;

	open_three(false);
	cr_assert_eq(setsockopt(nic[0]->wait_fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)), 0);
	send_all(sizes, 5);
	cr_assert_eq(nic[0]->calls_send, 3u);
	take_all(sizes, 5);
	close_three();
}
