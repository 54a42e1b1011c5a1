/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets without a checksum: between two ends of one host that both take them, and nowhere else.
 * A driver of the test's own looks at what each end sends.
 */
#include "pair.h"

#include <ifaddrs.h>
#include <net/if.h>

#include "am/rx.h"

#define BULK 300000 /* octets, many packets */
#define TRIES 100   /* exchanges, of which a busy machine may spoil some */

enum { ON_RETURNED, ON_REQUEST, ON_DATA };

/* What one end has sent. */
struct sent {
	struct am_nic *nic;
	unsigned int sealed, unsealed;
	unsigned int inviting; /* those that say that their sender takes unsealed ones */
	uint8_t first, last;   /* flags */
};

static struct sent sent[2];
static bool cut; /* nothing arrives any more */
static uint8_t pattern[BULK];
static int ran, intact;

static int spy_send(struct am_nic *nic, const struct am_datagram *v, int n)
{
	struct sent *s = &sent[nic == sent[1].nic];
	int i, done = cut ? n : am_udp_ops.send(nic, v, n);

	for (i = 0; i < done; i++) {
		s->last = am_wire_packet_flags(v[i].iov[0].iov_base);
		if (!s->sealed && !s->unsealed)
			s->first = s->last;
		s->sealed += s->last & AM_PACKET_CRC ? 1 : 0;
		s->unsealed += s->last & AM_PACKET_CRC ? 0 : 1;
		s->inviting += s->last & AM_PACKET_UNSEALED ? 1 : 0;
	}
	return done;
}

static void on_returned(int status, op_t opcode, void *token)
{
}

static void on_request(void *token)
{
	ran++;
}

static void on_data(void *token, void *buf, int n)
{
	intact += n == BULK && !memcmp(buf, pattern, BULK);
	AM_ReplyI0(token, ON_REQUEST, buf, 8);
}

static void open_as(struct pair *p, const char *first, const char *second)
{
	static struct am_nic_ops spy;
	int i;

	spy = am_udp_ops;
	spy.send = spy_send;
	cr_assert_eq(AM_Init(), AM_OK);
	for (i = 0; i < 2; i++) {
		setenv("AMUDP_CHECKSUM", i ? second : first, 1);
		cr_assert_eq(AM_AllocateBundle(AM_SEQ, &p->eb[i]), AM_OK);
		pair_endpoint(p, i);
		pair_equip(p->ep[i]);
		p->ep[i]->nics[0]->ops = &spy;
		sent[i] = (struct sent){ .nic = p->ep[i]->nics[0] };
		AM_SetHandler(p->ep[i], ON_RETURNED, on_returned);
		AM_SetHandler(p->ep[i], ON_REQUEST, on_request);
		AM_SetHandler(p->ep[i], ON_DATA, on_data);
	}
	pair_map(p, 4);
}

static struct am_peer *peer_of(const struct pair *p, int end)
{
	return p->ep[end]->translations[0].peer;
}

static void ask(struct pair *p, int end)
{
	cr_assert_eq(AM_Request0(p->ep[end], 0, ON_REQUEST), AM_OK);
	pair_until(p, !p->ep[end]->outstanding);
}

static void bulk(struct pair *p)
{
	int i, before = intact;

	for (i = 0; i < BULK; i++)
		pattern[i] = (uint8_t)(i * 7 + i / 256);
	cr_assert_eq(AM_RequestXferAsync0(p->ep[0], 0, 0, ON_DATA, pattern, BULK), AM_OK);
	pair_until(p, !p->ep[0]->outstanding);
	cr_assert_eq(intact, before + 1);
}

/* From some exchange on this end leaves the checksum out: a time-out may bring it back for one. */
static bool leaves_out(struct pair *p, int end)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		sent[end].sealed = sent[end].unsealed = 0;
		ask(p, 0);
		if (sent[end].unsealed && !sent[end].sealed)
			return true;
	}
	return false;
}

static void nothing_dropped(const struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		cr_assert_eq(p->ep[i]->xstats.BadChecksums, 0u);
		cr_assert_eq(p->ep[i]->xstats.BadPackets, 0u);
	}
}

Test(checksums, are_left_out_by_two_that_leave_it_open, .timeout = 60)
{
	struct pair p;
	int i;

	open_as(&p, "auto", "auto");
	ask(&p, 0);
	cr_assert(sent[0].first & AM_PACKET_CRC, "nothing is known of the other yet");
	for (i = 0; i < 2; i++) {
		cr_assert(sent[i].first & AM_PACKET_UNSEALED);
		cr_assert(leaves_out(&p, i), "end %d", i);
	}
	bulk(&p);
	cr_assert_gt(sent[0].unsealed, 3u, "of its data, too");
	nothing_dropped(&p);
	pair_close(&p);
}

/* Who wants checksums has them, and gives them. */
static void all_sealed(const char *first, const char *second)
{
	struct pair p;
	int i;

	open_as(&p, first, second);
	for (i = 0; i < 10; i++) {
		ask(&p, 0);
		ask(&p, 1);
	}
	bulk(&p);
	for (i = 0; i < 2; i++) {
		bool insists = !strcmp(i ? second : first, "yes");

		cr_assert_eq(sent[i].unsealed, 0u, "end %d", i);
		cr_assert_eq(sent[i].inviting, insists ? 0u : sent[i].sealed, "end %d", i);
	}
	nothing_dropped(&p);
	pair_close(&p);
}

Test(checksums, are_there_when_one_insists, .timeout = 60)
{
	all_sealed("yes", "auto");
	all_sealed("auto", "yes");
	all_sealed("yes", "yes");
}

Test(checksums, one_that_has_none_and_one_that_leaves_it_open, .timeout = 60)
{
	struct pair p;
	int none;

	for (none = 0; none < 2; none++) {
		open_as(&p, none ? "auto" : "no", none ? "no" : "auto");
		ask(&p, 0);
		cr_assert(leaves_out(&p, !none));
		bulk(&p);
		cr_assert_not(sent[none].first & AM_PACKET_CRC);
		cr_assert_eq(sent[none].sealed, 0u);
		cr_assert_eq(sent[none].inviting, sent[none].unsealed);
		nothing_dropped(&p);
		pair_close(&p);
	}
}

Test(checksums, one_that_has_none_and_one_that_insists, .timeout = 60)
{
	struct pair p;

	open_as(&p, "no", "yes");
	cr_assert_eq(AM_Request0(p.ep[0], 0, ON_REQUEST), AM_OK);
	pair_until(&p, p.ep[1]->xstats.BadChecksums > 1);
	cr_assert_eq(ran, 0);
	pair_close(&p);
}

/* A short frame in this name at the first end, as if it came from there. */
static void arrives_of(struct pair *p, const struct sockaddr_in *name, uint8_t flags,
		       uint32_t incarnation, struct am_frame f, const struct sockaddr_in *from)
{
	struct am_packet header = { .flags = flags,
				    .window = 64,
				    .source_inc = incarnation,
				    .addr = name->sin_addr.s_addr,
				    .port = name->sin_port,
				    .nonce = p->ep[0]->nonce };
	uint8_t packet[64];
	struct iovec iov = { packet, sizeof(struct am_wire_packet) };

	am_packet_put(packet, &header);
	iov.iov_len += am_frame_put_number(packet + iov.iov_len, &f);
	am_packet_seal(&iov, 1);
	am_rx_datagram(p->ep[0], packet, (uint32_t)iov.iov_len, from);
}

/* The same in the second end's name. */
static void arrives(struct pair *p, uint8_t flags, uint32_t incarnation, struct am_frame f,
		    const struct sockaddr_in *from)
{
	arrives_of(p, &p->name[1], flags, incarnation, f, from);
}

static struct sockaddr_in far_away(void)
{
	/* TEST-NET-1, which no host has */
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(9),
				     .sin_addr.s_addr = inet_addr("192.0.2.77") };
}

/* Packets of a name that the program has not mapped, which were refused for want of a checksum */
static uint64_t stranger_refused(struct pair *p, const struct sockaddr_in *name, uint8_t flags)
{
	struct am_frame f = { .type = AM_FRAME_MOVE_ACK };
	uint64_t before = p->ep[0]->xstats.BadChecksums;

	arrives_of(p, name, flags, 1, f, name);
	return p->ep[0]->xstats.BadChecksums - before;
}

/* Whatever this end is set to; one that is mapped is the program's own choice. */
Test(checksums, strangers_have_them, .timeout = 60)
{
	static const char *const settings[] = { "no", "auto", "yes" };
	struct am_frame f = { .type = AM_FRAME_MOVE_ACK };
	struct sockaddr_in here, there = far_away();
	struct pair p;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		open_as(&p, settings[i], settings[i]);
		here = p.name[1];
		here.sin_port = htons(9);
		cr_expect_eq(stranger_refused(&p, &here, 0), 1u, "%s", settings[i]);
		cr_expect_eq(stranger_refused(&p, &there, 0), 1u, "%s", settings[i]);
		cr_expect_eq(stranger_refused(&p, &there, AM_PACKET_CRC), 0u, "%s", settings[i]);
		if (!i) {
			ask(&p, 0);
			arrives(&p, 0, p.ep[1]->incarnation, f, &there);
			cr_expect_eq(p.ep[0]->xstats.BadChecksums, 2u);
		}
		pair_close(&p);
	}
}

static void moves(struct pair *p, uint32_t serial, const struct sockaddr_in *to)
{
	struct am_frame f = { .type = AM_FRAME_MOVE, .serial = serial };

	arrives(p, AM_PACKET_CRC | AM_PACKET_UNSEALED, p->ep[1]->incarnation, f, to);
}

Test(checksums, come_back_when_the_peer_leaves_the_host, .timeout = 60)
{
	struct am_frame nothing = { .type = AM_FRAME_MOVE_ACK };
	struct sockaddr_in there = far_away();
	uint64_t bad;
	struct pair p;

	open_as(&p, "auto", "auto");
	cr_assert(leaves_out(&p, 0));
	cut = true;
	moves(&p, 1, &there);
	cr_assert_not(peer_of(&p, 0)->near);
	AMUDP_Flush(p.ep[0]);
	cr_assert_eq(sent[0].last, AM_PACKET_CRC, "what tells that we know is sealed");
	/* whatever it says, and what it sends so is not taken */
	arrives(&p, AM_PACKET_CRC | AM_PACKET_UNSEALED, p.ep[1]->incarnation, nothing, &there);
	AM_Request0(p.ep[0], 0, ON_REQUEST);
	AMUDP_Flush(p.ep[0]);
	cr_assert_eq(sent[0].last, AM_PACKET_CRC);
	bad = p.ep[0]->xstats.BadChecksums;
	arrives(&p, 0, p.ep[1]->incarnation, nothing, &there);
	cr_assert_eq(p.ep[0]->xstats.BadChecksums, bad + 1);
	/* home again it has to be heard first */
	moves(&p, 2, &p.name[1]);
	AMUDP_Flush(p.ep[0]);
	cr_assert_eq(sent[0].last, AM_PACKET_CRC | AM_PACKET_UNSEALED);
	cut = false;
	pair_until(&p, !p.ep[0]->outstanding);
	cr_assert(leaves_out(&p, 0));
	pair_close(&p);
}

/* What was under way goes to a new one of the name before that has said anything. */
Test(checksums, come_back_for_a_new_incarnation, .timeout = 60)
{
	struct am_frame f = { .type = AM_FRAME_RESET };
	struct pair p;

	open_as(&p, "auto", "auto");
	cr_assert(leaves_out(&p, 0));
	f.serial = p.ep[1]->incarnation;
	cut = true;
	AM_Request0(p.ep[0], 0, ON_REQUEST);
	cr_assert_eq(sent[0].last, AM_PACKET_UNSEALED);
	arrives(&p, AM_PACKET_CRC | AM_PACKET_UNSEALED, p.ep[1]->incarnation + 1, f, &p.name[1]);
	AMUDP_Flush(p.ep[0]);
	cr_assert_eq(sent[0].last, AM_PACKET_CRC | AM_PACKET_UNSEALED);
	pair_close(&p);
}

/* A successor at the same place that insists answers nothing that is not sealed. */
Test(checksums, come_back_for_one_that_falls_silent, .timeout = 60)
{
	struct pair p;

	open_as(&p, "auto", "auto");
	cr_assert(leaves_out(&p, 0));
	p.ep[1]->options.checksum = AM_CHOICE_YES;
	ask(&p, 0);
	cr_assert_gt(p.ep[1]->xstats.BadChecksums, 0u);
	pair_close(&p);
}

/* Only what is believed tells whether the peer takes packets without. */
Test(checksums, are_left_out_for_nobody_who_is_not_believed, .timeout = 60)
{
	struct am_frame nothing = { .type = AM_FRAME_MOVE_ACK };
	struct am_frame news = { .type = AM_FRAME_MOVE };
	struct sockaddr_in elsewhere;
	struct am_peer *peer;
	uint32_t incarnation;
	struct pair p;

	open_as(&p, "auto", "yes");
	ask(&p, 0);
	peer = peer_of(&p, 0);
	incarnation = p.ep[1]->incarnation;
	elsewhere = p.name[1];
	elsewhere.sin_port++;
	peer->move_serial = 5;
	news.serial = 4; /* an old one: the path stays */
	arrives(&p, AM_PACKET_CRC | AM_PACKET_UNSEALED, incarnation, nothing, &elsewhere);
	arrives(&p, AM_PACKET_CRC | AM_PACKET_UNSEALED, incarnation, news, &elsewhere);
	arrives(&p, AM_PACKET_CRC | AM_PACKET_UNSEALED, incarnation - 1, nothing, &p.name[1]);
	cr_assert_not(peer->takes_unsealed);
	arrives(&p, AM_PACKET_CRC | AM_PACKET_UNSEALED, incarnation, nothing, &p.name[1]);
	cr_assert(peer->takes_unsealed);
	pair_close(&p);
}

/* So rare that none is altered here */
Test(checksums, are_there_where_packets_are_altered_on_purpose, .timeout = 60)
{
	struct am_frame nothing = { .type = AM_FRAME_MOVE_ACK };
	struct pair p;
	int i;

	setenv("FAULT_CORRUPT", "1e-9", 1);
	open_as(&p, "auto", "auto");
	for (i = 0; i < 10; i++)
		ask(&p, 0);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(sent[i].unsealed, 0u);
		cr_assert_eq(sent[i].inviting, 0u);
	}
	nothing_dropped(&p);
	arrives(&p, 0, p.ep[1]->incarnation, nothing, &p.name[1]);
	cr_assert_eq(p.ep[0]->xstats.BadChecksums, 1u);
	pair_close(&p);
}

/* The first address that is not the loopback's and is the first of its interface; 0: none */
static in_addr_t own_address(void)
{
	struct ifaddrs *all, *i;
	in_addr_t found = 0;

	cr_assert_eq(getifaddrs(&all), 0);
	for (i = all; i && !found; i = i->ifa_next) {
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
		    !(i->ifa_flags & IFF_LOOPBACK))
			found = ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr;
	}
	freeifaddrs(all);
	return found;
}

Test(checksums, which_addresses_are_of_this_host)
{
	const struct {
		in_addr_t address;
		bool near;
	} rows[] = {
		{ inet_addr("127.0.0.1"), true },   { inet_addr("127.9.8.7"), true },
		{ inet_addr("192.0.2.77"), false }, { inet_addr("255.255.255.255"), false },
		{ inet_addr("0.0.0.0"), false },    { own_address(), true },
	};
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct pair p;
	size_t i;

	pair_open(&p, AM_SEQ);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (i == 5 && !rows[i].address)
			break; /* only the loopback here */
		name.sin_addr.s_addr = rows[i].address;
		cr_assert_eq(AM_Map(p.ep[0], (int)i, name, PAIR_TAG), AM_OK);
		cr_expect_eq(p.ep[0]->translations[i].peer->near, rows[i].near, "row %zu", i);
	}
	pair_close(&p);
}
