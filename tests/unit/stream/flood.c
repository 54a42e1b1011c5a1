/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that sends without an end what brings nothing: one look takes in a bounded part and says
 * so, nothing is granted before all has been looked at, and behind a number of such messages in a
 * row the connection is over.
 */
#include "tests/unit/stream/ends.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/crc32c.h"

#define RING(p) be32toh((p)->theirs.data_buf.key)
#define RING_TO(p) be64toh((p)->theirs.data_buf.addr)
#define FRAME 20u
#define BLOCK 8000u /* frames: more than one recv has room for */
#define MESSAGE 28u
#define ROW 1000u

static struct ends_peer peer;
static struct stream *s;
static int fds[2];
static uint32_t msn;
static uint8_t block[BLOCK * FRAME];

static void crc_put(uint8_t *frame, size_t len)
{
	uint32_t crc = base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, frame, len));

	base_put_le32(frame + len, crc);
}

/* Writes of no octets: length, DDP's header, any STag and offset, CRC */
static void block_make(void)
{
	uint8_t frame[FRAME] = { 0, 14, 0xC1, 0x40, 0, 0, 0, 1 };

	crc_put(frame, FRAME - 4);
	for (unsigned int i = 0; i < BLOCK; i++)
		memcpy(block + i * FRAME, frame, FRAME);
}

/* Sends of four octets, by hand, for they are to be fast: length, header with MSN, CRC */
static void messages(uint32_t msg, unsigned int n)
{
	static uint8_t frames[ROW * MESSAGE];
	static const uint8_t head[] = { 0, 22, 0x41, 0x43 };

	memset(frames, 0, sizeof(frames));
	for (uint8_t *f = frames; f < frames + n * MESSAGE; f += MESSAGE) {
		memcpy(f, head, sizeof(head));
		base_put_be32(f + 12, ++msn);
		base_put_le32(f + 20, msg);
		crc_put(f, MESSAGE - 4);
	}
	cr_assert_eq(send(fds[0], frames, n * MESSAGE, 0), n * MESSAGE);
}

static void begin(void)
{
	struct rs_conn_data pd;
	int large = 1 << 20;

	block_make();
	ends_tcp(fds);
	setsockopt(fds[1], SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
	s = ends_attach(fds[1], false);
	ends_peer_init(&peer, fds[0]);
	pd = ends_conn_data(&peer, 384, 4096);
	cr_assert(ends_peer_open(&peer, s, &pd, sizeof(pd)));
}

static void end(void)
{
	close(fds[1]);
	stream_destroy(s);
	ends_peer_destroy(&peer);
}

static void empties(unsigned int n)
{
	cr_assert_eq(send(fds[0], block, n * FRAME, 0), n * FRAME);
	usleep(5000);
}

/* All that has come */
static void settle(void)
{
	int tries = 100;

	do {
		stream_progress(s);
	} while ((stream_more(s) || !usleep(1000)) && --tries);
}

static struct stream_info told(void)
{
	struct stream_info info;

	stream_info(s, &info);
	return info;
}

Test(flood, one_look_takes_a_part_and_says_so)
{
	uint64_t before;

	begin();
	before = told().rx_fpdus;
	empties(BLOCK);
	cr_expect_eq(stream_progress(s), 0);
	cr_expect(stream_more(s));
	cr_expect_lt(told().rx_fpdus - before, BLOCK);
	settle();
	cr_expect_not(stream_more(s));
	cr_expect_eq(told().rx_fpdus - before, BLOCK);
	cr_expect(told().open && !told().broken);
	end();
}

/* Octets that use up half of the ring: a grant is due as soon as they are read */
Test(flood, nothing_is_granted_while_more_is_there)
{
	static char octets[4096];
	struct iovec iov = { octets, sizeof(octets) };
	unsigned int said;

	ends_param.opts.ring = STREAM_RING_MIN;
	begin();
	settle();
	ends_peer_drain(&peer);
	ends_peer_write(&peer, RING(&peer), RING_TO(&peer), octets, sizeof(octets));
	ends_peer_message(&peer, rs_msg(RS_OP_DATA, sizeof(octets)));
	empties(BLOCK);
	stream_progress(s);
	cr_assert(stream_more(s));
	empties(BLOCK);
	said = peer.n;
	cr_expect_eq(stream_recv(s, &iov, 1, 0), (ssize_t)sizeof(octets));
	cr_assert(stream_more(s));
	ends_peer_drain(&peer);
	cr_expect_eq(peer.n, said, "the peer's end may be among what is still there");
	cr_expect(stream_owes(s), "somebody must come back to it");
	settle();
	ends_peer_drain(&peer);
	cr_expect_gt(peer.n, said);
	end();
}

static void empty_row(void)
{
	empties(ROW);
}

static void keepalive_row(void)
{
	messages(rs_msg(RS_OP_CTRL, RS_CTRL_KEEPALIVE), ROW);
}

static void credit_row(void)
{
	messages(rs_msg(RS_OP_SGL, 384), ROW);
}

/* Rows of a thousand until it is over; @between: octets behind every tenth */
static unsigned int rows(void (*row)(void), unsigned int most, bool between)
{
	char octet;
	struct iovec iov = { &octet, 1 };
	unsigned int n;

	for (n = 0; n < most && !told().broken; n++) {
		row();
		if (between && n % 10 == 9) {
			ends_peer_write(&peer, RING(&peer), RING_TO(&peer) + n / 10, "x", 1);
			messages(rs_msg(RS_OP_DATA, 1), 1);
		}
		while (stream_progress(s), stream_more(s))
			;
		stream_recv(s, &iov, 1, 0);
	}
	return n;
}

static void ended_by(void (*row)(void))
{
	begin();
	cr_expect_lt(rows(row, 40, false), 40);
	cr_expect_eq(told().broken, STREAM_FLOODED);
	cr_expect_not(stream_more(s));
	end();
}

Test(flood, empty_writes_are_ended)
{
	ended_by(empty_row);
}

Test(flood, keepalives_are_ended)
{
	ended_by(keepalive_row);
}

Test(flood, credits_are_ended)
{
	ended_by(credit_row);
}

Test(flood, octets_begin_the_row_anew)
{
	begin();
	cr_expect_eq(rows(keepalive_row, 60, true), 60);
	cr_expect_not(told().broken);
	end();
}
