/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that overlooks the first words until something more comes: Writes of no octets, as long as
 * nothing is heard, and no more than six.
 */
#include "tests/unit/stream/ends.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"

static struct ends_peer peer;
static struct stream *s;

static uint64_t sent(void)
{
	struct stream_stats stats;

	stream_stats(s, &stats);
	return stats.tx_fpdus;
}

/* The peer as responder, which says nothing of its own */
static void responder_init(int fd)
{
	const struct rnic_stream_param param = { .crc = true, .mpa_rev = 2 };

	ends_peer_init(&peer, fd);
	memset(peer.mem.state, 0, RNIC_STREAM_STATE);
	peer.sgl.stag = peer.ring.stag = 0;
	cr_assert_eq(peer.rnic->init(&peer.mem, fd, &param), 0);
	cr_assert_eq(peer.rnic->window(&peer.mem, 0, &peer.sgl), 0);
	cr_assert_eq(peer.rnic->window(&peer.mem, 1, &peer.ring), 0);
}

static void open_both(void)
{
	struct rs_conn_data data;
	short events;
	int fd[2], state = -1;

	ends_tcp(fd);
	s = ends_attach(fd[0], true);
	responder_init(fd[1]);
	for (int i = 0; i < 5000 && state != RNIC_STREAM_REQUEST; i++) {
		stream_progress(s);
		state = peer.rnic->start(&peer.mem, peer.fd, NULL, 0, &events);
		usleep(100);
	}
	cr_assert_eq(state, RNIC_STREAM_REQUEST);
	data = ends_conn_data(&peer, 384, 4096);
	cr_assert_eq(peer.rnic->accept(&peer.mem, peer.fd, &data, sizeof(data)), 0);
	for (int i = 0; i < 5000 && stream_progress(s); i++)
		usleep(100);
	cr_assert_eq(stream_progress(s), 0);
}

static void close_both(void)
{
	close(s->fd);
	stream_destroy(s);
	ends_peer_destroy(&peer);
}

static void await_deadline(void)
{
	uint64_t when = stream_wait_deadline(s);

	cr_assert_neq(when, BASE_NEVER);
	while (!base_deadline_passed(when, base_now()))
		usleep(1000);
}

/* How many Writes of no octets to the peer's entries wait at its socket */
static unsigned int write_retries_there(void)
{
	uint8_t write_retry[] = { 0, 14, 0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
		octets[1024];
	ssize_t len = recv(peer.fd, octets, sizeof(octets), MSG_PEEK | MSG_DONTWAIT);
	const uint8_t *at = octets, *found;
	unsigned int n = 0;

	base_put_be32(write_retry + 4, peer.sgl.stag);
	base_put_be64(write_retry + 8, peer.sgl.to);
	while (len > 0 && (found = memmem(at, (size_t)(octets + len - at), write_retry,
					  sizeof(write_retry)))) {
		at = found + sizeof(write_retry);
		n++;
	}
	return n;
}

Test(write_retry, a_silent_peer_gets_six)
{
	uint64_t before, begin;

	open_both();
	before = sent();
	begin = base_now();
	cr_expect_eq(stream_starting(), 1u);
	for (unsigned int i = 1; i <= 6; i++) {
		cr_expect(stream_owes(s));
		await_deadline();
		cr_expect_eq(stream_progress(s), 0);
		cr_expect_eq(sent(), before + i);
	}
	cr_expect_eq(write_retries_there(), 6, "it may look up what they are to");
	cr_expect_geq(base_now() - begin, 1200 * BASE_NS_PER_MS);
	await_deadline();
	cr_expect_eq(stream_progress(s), 0);
	cr_expect_eq(sent(), before + 6);
	cr_expect_eq(stream_wait_deadline(s), BASE_NEVER);
	cr_expect_not(stream_owes(s));
	cr_expect_eq(stream_starting(), 0u);
	close_both();
}

static void say_nothing(struct ends_peer *p)
{
	ends_peer_write(p, 1, 0, NULL, 0);
}

/* It may have spoken before it has looked */
Test(write_retry, one_that_was_heard_gets_one_more)
{
	uint64_t before;

	open_both();
	ends_peer_drain(&peer);
	ends_peer_say(&peer, say_nothing);
	before = sent();
	for (int i = 0; i < 5000 && stream_wait_deadline(s) != BASE_NEVER; i++) {
		cr_assert_eq(stream_progress(s), 0);
		usleep(100);
	}
	cr_expect_eq(sent(), before + 1);
	cr_expect_eq(stream_wait_deadline(s), BASE_NEVER);
	cr_expect_eq(stream_starting(), 0u);
	close_both();
}
