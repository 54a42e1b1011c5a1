/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of strangers and liars at a real endpoint: nothing reaches a handler, nothing
 * changes, and the true peer is served as before.
 */
#include "pair.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

#define SETTLE_NS (20 * BASE_NS_PER_MS) /* which a wire takes at most */

static int ran, returned, why, what;

static void on_request(void *token)
{
	ran++;
}

static void on_returned(int status, op_t opcode, void *token)
{
	returned++;
	why = status;
	what = opcode;
}

static int stranger(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = pair_place(0) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

/* A request that would run if it were believed; the caller spoils it. */
static size_t forge(const struct pair *p, uint8_t *packet, struct am_packet *header)
{
	struct am_frame f = { .type = AM_FRAME_REQUEST, .handler = 1, .seq = 1, .tag = PAIR_TAG };
	struct iovec iov = { packet, 0 };

	am_packet_put(packet, header);
	iov.iov_len = sizeof(struct am_wire_packet) +
		      am_frame_put_message(packet + sizeof(struct am_wire_packet), &f, NULL);
	am_packet_seal(&iov, 1);
	return iov.iov_len;
}

static void fire(const struct pair *p, int fd, const uint8_t *packet, size_t n)
{
	cr_assert_eq(sendto(fd, packet, n, 0, (const struct sockaddr *)&p->name[1],
			    sizeof(p->name[1])),
		     (ssize_t)n);
}

static void settle(struct pair *p)
{
	uint64_t end = base_now() + SETTLE_NS;
	int i;

	for (i = 0; i < 200 || base_now() < end; i++)
		pair_poll(p);
}

static void open_served(struct pair *p)
{
	int i;

	pair_open(p, AM_SEQ);
	for (i = 0; i < 2; i++) {
		AM_SetHandler(p->ep[i], 0, on_returned);
		AM_SetHandler(p->ep[i], 1, on_request);
	}
	AMUDP_SetJobNonce(p->ep[0], 0x1234);
	AMUDP_SetJobNonce(p->ep[1], 0x1234);
	pair_map(p, 4);
	AM_Request0(p->ep[0], 0, 1);
	pair_until(p, ran == 1 && p->ep[0]->outstanding == 0);
}

static void still_served(struct pair *p)
{
	cr_assert_eq(ran, 1);
	cr_assert_eq(returned, 0);
	AM_Request0(p->ep[0], 0, 1);
	pair_until(p, ran == 2 && p->ep[0]->outstanding == 0);
	pair_close(p);
}

static struct am_packet true_header(const struct pair *p)
{
	return (struct am_packet){ .flags = AM_PACKET_CRC,
				   .window = 64,
				   .source_inc = p->ep[0]->incarnation,
				   .addr = p->name[0].sin_addr.s_addr,
				   .port = p->name[0].sin_port,
				   .nonce = 0x1234 };
}

Test(hostile, a_stranger_in_the_peers_name)
{
	struct am_packet header;
	uint8_t packet[256];
	struct pair p;
	uint64_t before;

	open_served(&p);
	header = true_header(&p);
	before = p.ep[1]->xstats.Strangers;
	fire(&p, stranger(), packet, forge(&p, packet, &header));
	settle(&p);
	cr_assert_eq(p.ep[1]->xstats.Strangers, before + 1);
	still_served(&p);
}

Test(hostile, a_later_incarnation_from_elsewhere)
{
	struct am_packet header;
	uint8_t packet[256];
	struct pair p;
	uint32_t before;

	open_served(&p);
	before = p.ep[1]->translations[0].peer->incarnation;
	header = true_header(&p);
	header.source_inc += 100;
	fire(&p, stranger(), packet, forge(&p, packet, &header));
	settle(&p);
	cr_assert_eq(p.ep[1]->translations[0].peer->incarnation, before);
	still_served(&p);
}

Test(hostile, wrong_nonce_checksum_version_and_incarnation)
{
	struct am_packet header, good;
	uint8_t packet[256];
	struct pair p;
	int fd = stranger();
	size_t n;

	open_served(&p);
	good = header = true_header(&p);
	header.nonce++;
	fire(&p, fd, packet, forge(&p, packet, &header));
	header = good;
	header.flags = 0;
	fire(&p, fd, packet, forge(&p, packet, &header));
	header = good;
	header.dest_inc = 77;
	fire(&p, fd, packet, forge(&p, packet, &header));
	header = good;
	header.source_inc = 0;
	fire(&p, fd, packet, forge(&p, packet, &header));
	header = good;
	header.port = p.name[1].sin_port; /* as if from itself */
	fire(&p, fd, packet, forge(&p, packet, &header));
	n = forge(&p, packet, &good);
	packet[n - 1] ^= 1;
	fire(&p, fd, packet, n);
	n = forge(&p, packet, &good);
	packet[1] = 9;
	fire(&p, fd, packet, n);
	for (n = 0; n < 40; n++)
		fire(&p, fd, packet, n);
	settle(&p);
	cr_assert_geq(p.ep[1]->xstats.BadChecksums, 2u);
	cr_assert_geq(p.ep[1]->xstats.BadPackets, 33u);
	close(fd);
	still_served(&p);
}

Test(hostile, an_unknown_name_gets_one_refusal)
{
	struct am_packet header;
	struct sockaddr_in self;
	socklen_t len = sizeof(self);
	uint8_t packet[256], answer[256];
	struct am_frame f;
	struct pair p;
	int fd = stranger();
	ssize_t n;

	open_served(&p);
	getsockname(fd, (struct sockaddr *)&self, &len);
	header = true_header(&p);
	header.port = self.sin_port;
	n = (ssize_t)forge(&p, packet, &header);
	fire(&p, fd, packet, (size_t)n);
	settle(&p);
	len = (socklen_t)recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	cr_assert_gt((int)len, 32);
	cr_assert_leq((ssize_t)len, n, "no amplification");
	cr_assert_gt(am_frame_parse(answer + 32, len - 32, &f), 0);
	cr_assert_eq(f.type, AM_FRAME_REFUSE);
	cr_assert_eq(f.reason, EBADENDPOINT);
	cr_assert_lt(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 0);
	close(fd);
	still_served(&p);
}

/* As many requests as its packet has room for: still one refusal, which is not longer. */
Test(hostile, an_unknown_name_gets_one_refusal_of_many_requests)
{
	struct am_frame f = { .type = AM_FRAME_REQUEST, .handler = 1, .seq = 1, .tag = PAIR_TAG };
	struct am_packet header;
	struct sockaddr_in self;
	socklen_t len = sizeof(self);
	uint8_t packet[1024], answer[256];
	struct iovec iov = { packet, sizeof(struct am_wire_packet) };
	struct pair p;
	int i, fd = stranger();

	open_served(&p);
	getsockname(fd, (struct sockaddr *)&self, &len);
	header = true_header(&p);
	header.port = self.sin_port;
	am_packet_put(packet, &header);
	for (i = 0; i < 30; i++, f.slot++)
		iov.iov_len += am_frame_put_message(packet + iov.iov_len, &f, NULL);
	am_packet_seal(&iov, 1);
	fire(&p, fd, packet, iov.iov_len);
	settle(&p);
	cr_assert_gt(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 32);
	cr_assert_lt(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 0, "a second answer");
	close(fd);
	still_served(&p);
}

/*
 * From the true peer's own socket: what has run already, n times. Returns how many polls took it
 * in: one where the kernel hands over all at once, more where a wire is between.
 */
static unsigned int repeat(struct pair *p, int n)
{
	const uint64_t *received = &p->ep[1]->stats.RequestsReceived[amudp_Short];
	uint64_t want = *received + (uint64_t)n;
	uint64_t end = base_now() + 10 * BASE_NS_PER_S;
	struct am_packet header = true_header(p);
	struct am_datagram d[AM_NIC_BATCH];
	unsigned int polls = 0;
	uint8_t packet[256];
	int i;

	d[0] = (struct am_datagram){ .to = p->name[1], .iov = { { packet, 0 } }, .count = 1 };
	d[0].length = (uint32_t)forge(p, packet, &header);
	d[0].iov[0].iov_len = d[0].length;
	for (i = 1; i < n; i++)
		d[i] = d[0];
	cr_assert_eq(p->ep[0]->nics[0]->ops->send(p->ep[0]->nics[0], d, n), n);
	while (*received < want) {
		uint64_t before = *received;

		p->ep[1]->receive_max = AM_NIC_BATCH;
		AM_Poll(p->eb[1]);
		polls += *received > before;
		cr_assert_lt(base_now(), end, "nothing comes");
	}
	return polls;
}

/* However many copies one poll brings, one answer will do. */
Test(hostile, the_same_request_many_times)
{
	unsigned int i, answers = 0;
	const amudp_stats_t *s;
	struct pair p;

	open_served(&p);
	s = &p.ep[1]->stats;
	for (i = 1; i <= 3; i++) {
		uint64_t packets = p.ep[1]->xstats.PacketsSent;

		unsigned int polls = repeat(&p, 5);

		answers += polls;
		cr_assert_eq(ran, 1);
		cr_assert_eq(s->RequestsReceived[amudp_Short], 1 + 5 * i);
		cr_assert_eq(s->RepliesSent[amudp_Short], 1u);
		cr_assert_eq(s->RepliesRetransmitted[amudp_Short], answers);
		cr_assert_eq(s->RepliesSquashed[amudp_Short], 5 * i - answers);
		cr_assert_eq(p.ep[1]->xstats.PacketsSent, packets + polls);
		settle(&p);
		cr_assert_eq(p.ep[0]->stats.RepliesReceived[amudp_Short], 1 + answers);
		cr_assert_eq(p.ep[0]->stats.OutOfOrderReplies, answers, "nobody waits for them");
	}
	still_served(&p);
}

/* From the true peer's own socket: its first fragment of a message of so many octets. */
static void fragment_fire(struct pair *p, uint32_t nbytes)
{
	struct am_frame f = { .type = AM_FRAME_REQUEST,
			      .flags = amudp_Medium | AM_MESSAGE_FRAGMENT,
			      .handler = 1,
			      .slot = 1,
			      .seq = 1,
			      .tag = PAIR_TAG,
			      .nbytes = nbytes,
			      .fragment_size = 512,
			      .length = 512 };
	struct am_packet header = true_header(p);
	uint8_t packet[1024] = { 0 }, *frame = packet + sizeof(struct am_wire_packet);
	struct am_datagram d = { .to = p->name[1], .iov = { { packet, 0 } }, .count = 1 };
	size_t head;

	am_packet_put(packet, &header);
	head = am_frame_put_message(frame, &f, NULL);
	am_frame_patch_fragment(frame, head, 0, 512);
	d.length = (uint32_t)(sizeof(struct am_wire_packet) + head + 512);
	d.iov[0].iov_len = d.length;
	am_packet_seal(d.iov, 1);
	cr_assert_eq(p->ep[0]->nics[0]->ops->send(p->ep[0]->nics[0], &d, 1), 1);
}

Test(hostile, fragments_that_disagree)
{
	struct am_rx_slot *rx;
	struct pair p;

	open_served(&p);
	fragment_fire(&p, 1500);
	rx = &p.ep[1]->translations[0].peer->rx[1];
	pair_until(&p, rx->state == AM_RX_GATHERING);
	fragment_fire(&p, 1600);
	pair_until(&p, rx->state == AM_RX_REFUSED);
	cr_assert_eq(rx->reason, EBADARGS);
	still_served(&p);
}

/* What stands in the slot of a true message's fragments: its sender is told. */
Test(hostile, fragments_that_disagree_with_a_true_message)
{
	static uint8_t data[3000];
	struct pair p;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	open_served(&p);
	fragment_fire(&p, 1600);
	AM_Request0(p.ep[0], 0, 1); /* it takes the slot that was used */
	AM_RequestI0(p.ep[0], 0, 1, data, sizeof(data));
	pair_until(&p, returned && p.ep[0]->outstanding == 0);
	cr_assert_eq(why, EBADARGS);
	cr_assert_eq(what, AM_REQUEST_IM);
	settle(&p);
	cr_assert_eq(returned, 1);
	cr_assert_eq(ran, 2);
	AM_Request0(p.ep[0], 0, 1);
	pair_until(&p, ran == 3 && p.ep[0]->outstanding == 0);
	pair_close(&p);
}
