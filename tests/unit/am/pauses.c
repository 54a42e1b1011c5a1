/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer that is away for longer than any time-out, again and again, as on a crowded machine:
 * nothing is lost, so at most one request in a hundred may go twice. Counted, not timed: that
 * the machine pauses as well changes nothing.
 */
#include "pair.h"

#include <netinet/udp.h>

#include "base/bits.h"

#define ROUNDS 60
#define DEPTH 64
#define QUICK 16 /* round trips, after which the estimate is of them */
#define PAUSE_NS (30 * BASE_NS_PER_MS)

/* What may go needlessly: the budget, and without one a copy for each time the delay doubles. */
#define BUDGET(requests) (8u + (uint64_t)(requests)*3 / 1000)
#define DELAYS 10u

static int ran;

static void on_request(void *token)
{
	ran++;
}

static void poll_alone(eb_t eb, uint64_t ns)
{
	uint64_t end = base_now() + ns;

	while (base_now() < end)
		AM_Poll(eb);
}

/* Frames that an interface without room may throw away: the test runs over AF_XDP, too */
#define LOST 2

Test(pauses, few_copies_are_needless, .timeout = 120)
{
	uint64_t copies, again;
	struct pair p;
	int i, j;

	pair_open(&p, AM_SEQ);
	AM_SetHandler(p.ep[1], 1, on_request);
	pair_map(&p, DEPTH);
	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < QUICK; j++) {
			AM_Request0(p.ep[0], 0, 1);
			pair_until(&p, p.ep[0]->outstanding == 0);
		}
		for (j = 0; j < DEPTH; j++)
			cr_assert_eq(AM_Request0(p.ep[0], 0, 1), AM_OK);
		poll_alone(p.eb[0], PAUSE_NS);
		pair_until(&p, p.ep[0]->outstanding == 0);
	}
	copies = p.ep[0]->xstats.NeedlessRetransmissions;
	again = p.ep[0]->stats.RequestsRetransmitted[amudp_Short];
	cr_assert(copies <= again && again - copies <= LOST, "%lu of %lu are needless",
		  (unsigned long)copies, (unsigned long)again);
	cr_assert_eq(ran, ROUNDS * (QUICK + DEPTH));
	cr_assert_leq(copies, BUDGET(ran) + DELAYS, "%lu of %d", copies, ran);
	pair_close(&p);
}

#define HOLD_NS (20 * BASE_NS_PER_US)
#define SHORT_OCTETS 100000 /* more than goes to a peer that has not told its window */

/* Fragments, not all of a message, are on their way to the second endpoint; nothing is lost. */
static void open_fragments(struct pair *p)
{
	static uint8_t data[SHORT_OCTETS];
	const int zero = 0;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	pair_open(p, AM_SEQ);
	AM_SetHandler(p->ep[1], 1, on_request);
	pair_map(p, 4);
	/* glued together they would come as one */
	setsockopt(p->ep[1]->nics[0]->wait_fd, IPPROTO_UDP, UDP_GRO, &zero, sizeof(zero));
	setsockopt(p->ep[1]->nics[0]->also_fd, IPPROTO_UDP, UDP_GRO, &zero, sizeof(zero));
	cr_assert_eq(AM_RequestXferAsync0(p->ep[0], 0, 0, 1, data, SHORT_OCTETS), AM_OK);
	cr_assert_gt(p->ep[0]->xstats.FragmentsSent, 10u);
}

Test(pauses, fragments_share_a_sack)
{
	const amudp_xstats_t *x;
	uint64_t began, ns;
	struct pair p;

	open_fragments(&p);
	x = &p.ep[1]->xstats;
	began = base_now();
	while (x->PacketsReceived < p.ep[0]->xstats.PacketsSent || !x->PacketsSent)
		AM_Poll(p.eb[1]);
	ns = base_now() - began;
	cr_assert_leq(x->PacketsSent, 1 + ns / HOLD_NS, "%lu in %lu ns", x->PacketsSent, ns);
	pair_until(&p, ran == 1);
	pair_close(&p);
}

Test(pauses, nobody_sleeps_over_a_sack)
{
	uint64_t spin = 0;
	struct pair p;

	setenv("AMUDP_SPIN", "0", 1);
	open_fragments(&p);
	while (!p.ep[1]->xstats.PacketsReceived)
		am_bundle_wait(p.eb[1], &spin);
	cr_assert_eq(p.ep[1]->xstats.PacketsSent, 1u);
	pair_until(&p, ran == 1);
	pair_close(&p);
}

/* What comes behind a gap tells of a loss, and that is said at once. */
Test(pauses, a_gap_is_told_at_once)
{
	struct pair p;

	open_fragments(&p);
	p.ep[1]->fault.drop = UINT32_MAX;
	p.ep[1]->fault.on = true;
	while (!p.ep[1]->xstats.FaultsDropped)
		AM_Poll(p.eb[1]);
	p.ep[1]->fault.on = false;
	while (!p.ep[1]->xstats.PacketsReceived)
		AM_Poll(p.eb[1]);
	cr_assert_eq(p.ep[1]->xstats.PacketsSent, 1u);
	pair_until(&p, ran == 1);
	pair_close(&p);
}

#define OCTETS (3 << 20)
#define PROBES 50u /* one for each time-out, which grow; and those of the machine's pauses */
#define PATIENCE_NS (20 * BASE_NS_PER_S)

/*
 * For a pause, and until one fragment more has gone again: where an emulated machine's wire is
 * slow, sending alone, or a time-out, may take longer than a pause.
 */
static void poll_until_late(struct pair *p)
{
	const uint64_t *again = &p->ep[0]->xstats.FragmentsRetransmitted;
	uint64_t before = *again, end = base_now() + PATIENCE_NS;

	poll_alone(p->eb[0], PAUSE_NS);
	while (*again == before) {
		AM_Poll(p->eb[0]);
		cr_assert_lt(base_now(), end, "a time-out passes, and nothing goes again");
	}
}

/* All fragments wait at the peer. One goes again with each time-out; that it came tells nothing. */
Test(pauses, fragments_are_late_and_not_lost, .timeout = 60)
{
	uint8_t *data = calloc(1, OCTETS);
	const amudp_xstats_t *x;
	struct pair p;
	int i;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	pair_open(&p, AM_SEQ);
	x = &p.ep[0]->xstats;
	AM_SetHandler(p.ep[1], 1, on_request);
	pair_map(&p, 4);
	/* Their answers tell of the window, and how soon one is late */
	for (i = 0; i < QUICK; i++) {
		AM_Request0(p.ep[0], 0, 1);
		pair_until(&p, p.ep[0]->outstanding == 0);
	}
	for (i = 0; i < 5; i++) {
		cr_assert_eq(AM_RequestXferAsync0(p.ep[0], 0, 0, 1, data, OCTETS), AM_OK);
		poll_until_late(&p);
		pair_until(&p, p.ep[0]->outstanding == 0);
	}
	cr_assert_eq(ran, QUICK + 5);
	cr_assert_leq(x->FragmentsRetransmitted, 5 * PROBES, "%lu of %lu",
		      x->FragmentsRetransmitted, x->FragmentsSent);
	free(data);
	pair_close(&p);
}
