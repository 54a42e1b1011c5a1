/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exactly once: every kind of fault on both sides, and each request and each reply still runs
 * its handler one time. That the faults were done is counted: what never happens proves nothing.
 */
#include "pair.h"

#include <errno.h>

#define MESSAGES 3000

static unsigned char ran[MESSAGES], answered[MESSAGES];
static int returned;

static void on_request(void *token, void *buf, int nbytes, int i)
{
	ran[i]++;
	cr_assert_eq(((unsigned char *)buf)[0], (unsigned char)i);
	cr_assert_eq(((unsigned char *)buf)[nbytes - 1], (unsigned char)i);
	if (i % 3 == 0)
		AM_ReplyXfer1(token, (uintptr_t)(i % 512) * 8000, 2, buf, nbytes, i);
	else
		AM_ReplyI1(token, 2, buf, nbytes, i);
}

static void on_reply(void *token, void *buf, int nbytes, int i)
{
	answered[i]++;
	cr_assert_eq(((unsigned char *)buf)[nbytes - 1], (unsigned char)i);
}

static void on_returned(int status, op_t opcode, void *token)
{
	returned++;
}

static int sum(const unsigned char *v, int value)
{
	int i, n = 0;

	for (i = 0; i < MESSAGES; i++)
		n += v[i] == value;
	return n;
}

/* Both ends are in this process: a call that waits would wait for ever. */
static int transfer(struct pair *p, unsigned char *data, int n, int i)
{
	int ret;

	do {
		pair_poll(p);
		ret = AM_RequestXferAsync1(p->ep[0], 0, (uintptr_t)(i % 512) * 8000, 1, data, n, i);
	} while (ret == AM_ERR_IN_USE);
	return ret;
}

/* Of both ends */
static amudp_xstats_t counts(const struct pair *p)
{
	amudp_xstats_t sum = { 0 }, one;
	uint64_t *to = (uint64_t *)&sum, *from = (uint64_t *)&one;
	size_t i;
	int end;

	for (end = 0; end < 2; end++) {
		cr_assert_eq(AMUDP_GetEndpointExtendedStatistics(p->ep[end], &one), AM_OK);
		for (i = 0; i < sizeof(one) / sizeof(*from); i++)
			to[i] += from[i];
	}
	return sum;
}

/* Nothing is under way or held back any more: what was not dropped has come, and copies too. */
static bool all_taken(const struct pair *p)
{
	amudp_xstats_t x = counts(p);

	return x.PacketsReceived == x.PacketsSent - x.FaultsDropped + x.FaultsDuplicated;
}

/* So many of these packets at this rate, give or take a fifth; none without a rate. */
static void expect_share(const char *what, uint64_t done, double rate, uint64_t packets)
{
	double want = rate * (double)packets;

	if (rate > 0)
		cr_assert_gt(done, 0u, "none %s", what);
	cr_assert_leq((double)done, want * 1.2, "%lu %s, not %.0f", done, what, want);
	cr_assert_geq((double)done, want * 0.8, "%lu %s, not %.0f", done, what, want);
}

static void expect_faults(struct pair *p)
{
	double delay = atof(getenv("FAULT_DELAY")), corrupt = atof(getenv("FAULT_CORRUPT"));
	amudp_xstats_t x = counts(p);
	uint64_t got = x.PacketsSent - x.FaultsDropped;

	expect_share("dropped", x.FaultsDropped, atof(getenv("FAULT_RATE")), x.PacketsSent);
	expect_share("twice", x.FaultsDuplicated, atof(getenv("FAULT_DUPLICATE")), got);
	expect_share("corrupted", x.FaultsCorrupted, corrupt, got);
	expect_share("delayed", x.FaultsDelayed, delay, got);
	expect_share("reordered", x.FaultsReordered,
		     atof(getenv("AMUDP_FAULT_REORDER")) * (1 - delay), got);
	/* and what was counted was done */
	cr_assert_eq(x.BadChecksums + x.BadPackets, x.FaultsCorrupted);
}

/* Returns what both ends counted. */
static amudp_xstats_t run(const char *drop, const char *duplicate, const char *reorder,
			  const char *delay, const char *corrupt, int size)
{
	static unsigned char data[8000];
	amudp_xstats_t x;
	struct pair p;
	int i;

	setenv("FAULT_RATE", drop, 1);
	setenv("FAULT_DUPLICATE", duplicate, 1);
	setenv("AMUDP_FAULT_REORDER", reorder, 1);
	setenv("FAULT_DELAY", delay, 1);
	setenv("FAULT_CORRUPT", corrupt, 1);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "2000", 1);
	pair_open(&p, AM_SEQ);
	for (i = 0; i < 2; i++) {
		AM_SetHandler(p.ep[i], 0, on_returned);
		AM_SetHandler(p.ep[i], 1, on_request);
		AM_SetHandler(p.ep[i], 2, on_reply);
	}
	pair_map(&p, 16);
	for (i = 0; i < MESSAGES; i++) {
		int n = size ? size : 1 + i % 700;

		memset(data, i, (size_t)n);
		while (p.ep[0]->outstanding >= 16)
			pair_poll(&p);
		if (!size && i % 2)
			cr_assert_eq(AM_RequestI1(p.ep[0], 0, 1, data, n, i), AM_OK);
		else
			cr_assert_eq(transfer(&p, data, n, i), AM_OK);
	}
	pair_until(&p, p.ep[0]->outstanding == 0);
	for (i = 0; i < 2000; i++)
		pair_poll(&p);
	pair_until(&p, all_taken(&p));
	cr_assert_eq(sum(ran, 1), MESSAGES, "%d requests ran once", sum(ran, 1));
	cr_assert_eq(sum(answered, 1), MESSAGES, "%d replies ran once", sum(answered, 1));
	cr_assert_eq(returned, 0);
	expect_faults(&p);
	x = counts(&p);
	pair_close(&p);
	return x;
}

Test(faults, none, .timeout = 60)
{
	run("0", "0", "0", "0", "0", 0);
}

Test(faults, loss, .timeout = 60)
{
	run("0.3", "0", "0", "0", "0", 0);
}

Test(faults, duplicates_and_reordering, .timeout = 60)
{
	run("0", "0.3", "0.3", "0", "0", 0);
}

Test(faults, delay_and_corruption, .timeout = 60)
{
	run("0", "0", "0", "0.1", "0.1", 0);
}

Test(faults, all_at_once, .timeout = 60)
{
	run("0.1", "0.1", "0.1", "0.1", "0.1", 0);
}

/* What was lost goes again, and no more than about that. */
Test(faults, fragments_on_a_lossy_path, .timeout = 60)
{
	amudp_xstats_t x;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	x = run("0.05", "0.05", "0.05", "0", "0.02", 7000);
	cr_assert_gt(x.FragmentsRetransmitted, 0u);
	cr_assert_lt(x.FragmentsRetransmitted, x.FragmentsSent / 3, "%lu of %lu",
		     x.FragmentsRetransmitted, x.FragmentsSent);
}

static void on_silent(void *token)
{
}

/* Of thousands under way, too: one lost or late fragment is no reason to send others again. */
Test(faults, only_lost_fragments_go_again, .timeout = 60)
{
	const int octets = 3 << 20;
	uint64_t again, dropped;
	uint8_t *data;
	struct pair p;
	int i;

	setenv("AMUDP_MAX_PACKET", "1400", 1);
	setenv("FAULT_RATE", "0.05", 1);
	pair_open(&p, AM_SEQ);
	AM_SetHandler(p.ep[1], 1, on_silent);
	pair_map(&p, 4);
	data = calloc(1, (size_t)octets);
	for (i = 0; i < 3; i++)
		cr_assert_eq(AM_RequestXferAsync1(p.ep[0], 0, 0, 1, data, octets, 0), AM_OK);
	pair_until(&p, p.ep[0]->outstanding == 0);
	again = p.ep[0]->xstats.FragmentsRetransmitted;
	dropped = p.ep[1]->xstats.FaultsDropped;
	cr_assert_gt(dropped, 100u);
	cr_assert_leq(again, dropped + dropped / 2, "%lu sent again, %lu dropped", again, dropped);
	free(data);
	pair_close(&p);
}

Test(faults, same_seed_same_faults)
{
	struct am_fault a, b, c;

	setenv("FAULT_RATE", "0.5", 1);
	setenv("FAULT_SEED", "7", 1);
	am_fault_init(&a, 3);
	am_fault_init(&b, 3);
	am_fault_init(&c, 4);
	cr_assert_neq(a.state, c.state);
	setenv("FAULT_SEED", "8", 1);
	am_fault_init(&c, 3);
	cr_assert(a.on);
	cr_assert_eq(a.state, b.state);
	cr_assert_neq(a.state, c.state);
	cr_assert_eq(a.drop, 1u << 31);
}

/* One datagram at the first end, at this moment; its octets are no packet. */
static void arrive(struct pair *p, uint8_t *octets, uint32_t n, uint64_t now)
{
	memset(octets, 0, n);
	am_fault_receive(p->ep[0], octets, n, &p->name[1], now);
}

static void faults_begin(struct pair *p)
{
	am_fault_uninit(&p->ep[0]->fault);
	am_fault_init(&p->ep[0]->fault, 5);
	AMUDP_ResetEndpointStatistics(p->ep[0]);
}

/* What is done to a datagram when it is certain: passed on now, and when time has passed. */
Test(faults, each_alone)
{
	static const struct {
		const char *variable;
		unsigned int now, later, flipped;
		uint64_t after; /* ns; 0: not held */
	} rows[] = {
		{ "FAULT_RATE", 0, 0, 0, 0 },	     { "FAULT_DUPLICATE", 1, 2, 0, 65536 },
		{ "FAULT_REORDER", 0, 1, 0, 30000 }, { "FAULT_DELAY", 0, 1, 0, 7000000 },
		{ "FAULT_CORRUPT", 1, 1, 1, 0 },
	};
	const uint64_t now = BASE_NS_PER_S;
	uint8_t octets[64];
	struct pair p;
	size_t i, j;

	pair_open(&p, AM_SEQ);
	setenv("FAULT_DELAY_US", "7000", 1);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *what = rows[i].variable;
		const amudp_xstats_t *x = &p.ep[0]->xstats;
		unsigned int flipped = 0;

		setenv(what, "1", 1);
		faults_begin(&p);
		unsetenv(what);
		cr_assert(p.ep[0]->fault.on, "%s", what);
		arrive(&p, octets, sizeof(octets), now);
		for (j = 0; j < sizeof(octets); j++)
			flipped += (unsigned int)__builtin_popcount(octets[j]);
		cr_assert_eq(flipped, rows[i].flipped, "%s: %u bits", what, flipped);
		cr_assert_eq(x->PacketsReceived, rows[i].now, "%s", what);
		cr_assert_eq(x->FaultsDropped + x->FaultsDuplicated + x->FaultsReordered +
				     x->FaultsDelayed + x->FaultsCorrupted,
			     1u, "%s", what);
		cr_assert_eq(am_fault_deadline(&p.ep[0]->fault) == BASE_NEVER, !rows[i].after);
		if (rows[i].after)
			cr_assert_leq(am_fault_deadline(&p.ep[0]->fault), now + rows[i].after);
		if (rows[i].after && rows[i].later == 1) /* a second copy comes at any time */
			cr_assert_eq(am_fault_deadline(&p.ep[0]->fault), now + rows[i].after);
		am_fault_release(p.ep[0], now - 1);
		cr_assert_eq(x->PacketsReceived, rows[i].now, "%s: too early", what);
		am_fault_release(p.ep[0], now + rows[i].after);
		cr_assert_eq(x->PacketsReceived, rows[i].later, "%s: later", what);
		cr_assert_eq(p.ep[0]->fault.held_count, 0);
	}
	pair_close(&p);
}

#define ARRIVALS 1000

/* What happened to each of them under this seed: a digest of the counters, one after the other */
static void trace(struct pair *p, const char *seed, uint64_t out[ARRIVALS])
{
	const uint64_t *x = (const uint64_t *)&p->ep[0]->xstats;
	uint8_t octets[64];
	size_t i, j;

	setenv("FAULT_SEED", seed, 1);
	faults_begin(p);
	for (i = 0; i < ARRIVALS; i++) {
		arrive(p, octets, sizeof(octets), i * 1000);
		am_fault_release(p->ep[0], i * 1000);
		out[i] = 0;
		for (j = 0; j < sizeof(amudp_xstats_t) / sizeof(*x); j++)
			out[i] = out[i] * 1000003 + x[j];
		for (j = 0; j < sizeof(octets); j++)
			out[i] = out[i] * 1000003 + octets[j];
	}
}

Test(faults, same_seed_same_faults_of_a_thousand)
{
	static uint64_t first[ARRIVALS], again[ARRIVALS], other[ARRIVALS];
	amudp_xstats_t x;
	struct pair p;

	setenv("FAULT_RATE", "0.2", 1);
	setenv("FAULT_DUPLICATE", "0.2", 1);
	setenv("FAULT_REORDER", "0.2", 1);
	setenv("FAULT_DELAY", "0.2", 1);
	setenv("FAULT_CORRUPT", "0.2", 1);
	pair_open(&p, AM_SEQ);
	trace(&p, "7", first);
	x = p.ep[0]->xstats;
	expect_share("dropped", x.FaultsDropped, 0.2, ARRIVALS);
	expect_share("twice", x.FaultsDuplicated, 0.2, ARRIVALS - x.FaultsDropped);
	trace(&p, "7", again);
	cr_assert_arr_eq(first, again, sizeof(first));
	trace(&p, "8", other);
	cr_assert_neq(first[ARRIVALS - 1], other[ARRIVALS - 1]);
	pair_close(&p);
}
