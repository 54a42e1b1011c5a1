/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of statistics, to the letter; and what the counters of two endpoints say of messages
 * whose number, forms and packets are known.
 */
#include "pair.h"

enum { H_DATA = 1, H_SILENT, H_REPLY };

/* Each member another number: 1, 2, 3 by order, but the latencies. */
static amudp_stats_t numbered(void)
{
	amudp_stats_t s;
	uint64_t *words = (uint64_t *)&s;
	size_t i;

	for (i = 0; i < sizeof(s) / sizeof(*words); i++)
		words[i] = i + 1;
	s.RequestsSent[amudp_Short] = 1001;
	s.RepliesSent[amudp_Short] = 1004;
	s.RequestMinLatency = 7;
	s.RequestMaxLatency = 900;
	s.RequestSumLatency = 60 * 33;
	return s;
}

static const char counts[] = " Requests:     1006 sent,   24 retransmitted,       51 received\n"
			     " Replies:      1015 sent,   33 retransmitted,       60 received,"
			     "   42 squashed\n"
			     " Returned messages:22\n"
			     " Misordered receipt: 23 requests, 24 replies\n";
/* 1006 + 24 - 51 and 1015 + 33 - 60 of 2078; all that was retransmitted had been lost */
static const char global[] = " Requests lost:      979\n"
			     " Replies lost:       988\n"
			     " Total packets lost: 1967 (94.66%)\n"
			     " Useless retransmits: 0\n";
static const char latency[] = " Latency (request sent to reply received): min: 7 max: 900 avg: 33"
			      " microseconds\n";
static const char breakdown[] =
	" Message breakdown:            short       medium         long        total\n"
	"  Requests                       1001            2            3         1006\n"
	"  Replies                        1004            5            6         1015\n"
	"  Request data bytes               28           29           30           87\n"
	"  Reply data bytes                 31           32           33           96\n"
	"  Request total bytes              34           35           36          105\n"
	"  Reply total bytes                37           38           39          114\n"
	" Total bytes sent: 40\n";

Test(statistics, text)
{
	amudp_stats_t s = numbered();
	char want[2048];

	snprintf(want, sizeof(want), "%s%s%s", counts, latency, breakdown);
	cr_assert_str_eq(AMUDP_DumpStatistics(NULL, &s, 0), want);
	snprintf(want, sizeof(want), "%s%s%s%s", counts, global, latency, breakdown);
	cr_assert_str_eq(AMUDP_DumpStatistics(NULL, &s, 1), want);
	cr_assert_null(AMUDP_DumpStatistics(NULL, NULL, 1));
}

/* Copies of which not all were for want of a packet; and nothing was sent at all. */
Test(statistics, useless_and_none)
{
	amudp_stats_t s = AMUDP_initial_stats;
	const char *text = AMUDP_DumpStatistics(NULL, &s, 1);

	cr_assert_neq(strstr(text, " Total packets lost: 0 (0.00%)\n Useless retransmits: 0\n"),
		      NULL);
	cr_assert_neq(strstr(text, "\n Latency (request sent to reply received): no requests\n"),
		      NULL);
	s.RequestsSent[amudp_Long] = 90;
	s.RequestsRetransmitted[amudp_Long] = 10;
	s.RequestsReceived[amudp_Long] = 97;
	s.RepliesSent[amudp_Medium] = s.RepliesReceived[amudp_Medium] = 100;
	cr_assert_neq(strstr(AMUDP_DumpStatistics(NULL, &s, 1), " Requests lost:      3\n Replies "
								"lost:       0\n"
								" Total packets lost: 3 (1.50%)\n "
								"Useless retransmits: 7\n"),
		      NULL);
}

Test(statistics, text_at_its_longest)
{
	static const char last[] = " Total bytes sent: 9187201950435737471\n";
	amudp_stats_t s;
	const char *text;

	memset(&s, 0x7F, sizeof(s));
	s.RequestMinLatency = 1;
	text = AMUDP_DumpStatistics(NULL, &s, 1);
	cr_assert_str_eq(text + strlen(text) - strlen(last), last);
}

Test(statistics, text_to_a_file)
{
	amudp_stats_t s = numbered();
	char *written = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&written, &n);
	const char *text = AMUDP_DumpStatistics(f, &s, 1);

	cr_assert_eq(fclose(f), 0);
	cr_assert_str_eq(written, text);
	free(written);
}

/* The mean is of requests, however many fragments and copies of their replies came. */
Test(statistics, mean_latency)
{
	amudp_stats_t s = AMUDP_initial_stats;

	s.RequestsSent[amudp_Long] = 4;
	s.RepliesReceived[amudp_Long] = 200;
	s.RequestMinLatency = 100;
	s.RequestMaxLatency = 300;
	s.RequestSumLatency = 800;
	cr_assert_neq(strstr(AMUDP_DumpStatistics(NULL, &s, 0), "avg: 200 microseconds"), NULL);
}

static int requests, replies;

static void on_data(void *token, void *buf, int nbytes)
{
	requests++;
	cr_assert_eq(AM_ReplyI1(token, H_REPLY, buf, nbytes / 2, 1), AM_OK);
}

static void on_silent(void *token)
{
	requests++;
}

static void on_reply(void *token)
{
	replies++;
}

static void open_counted(struct pair *p)
{
	int i;

	pair_open(p, AM_SEQ);
	for (i = 0; i < 2; i++) {
		AM_SetHandler(p->ep[i], H_DATA, on_data);
		AM_SetHandler(p->ep[i], H_SILENT, on_silent);
		AM_SetHandler(p->ep[i], H_REPLY, on_reply);
	}
	pair_map(p, 4);
}

/*
 * A request of 1000 octets, its reply of 500; a short request and its automatic reply. Octets of
 * docs/amudp-wire.md: packet header 32, message head 24, an argument padded to 8 before data.
 */
Test(statistics, messages_of_known_size)
{
	amudp_stats_t a, b;
	amudp_xstats_t x;
	char data[1000] = { 0 };
	struct pair p;

	open_counted(&p);
	AM_RequestI0(p.ep[0], 0, H_DATA, data, 1000);
	pair_until(&p, replies == 1);
	AM_Request0(p.ep[0], 0, H_SILENT);
	pair_until(&p, p.ep[0]->outstanding == 0);
	AMUDP_GetEndpointStatistics(p.ep[0], &a);
	AMUDP_GetEndpointStatistics(p.ep[1], &b);
	AMUDP_GetEndpointExtendedStatistics(p.ep[0], &x);
	cr_assert_eq(x.LatencySamples, 2u);
	cr_assert_eq(a.RequestsSent[amudp_Medium], 1u);
	cr_assert_eq(a.RequestsSent[amudp_Short], 1u);
	cr_assert_eq(a.RequestDataBytesSent[amudp_Medium], 1000u);
	cr_assert_eq(a.RequestTotalBytesSent[amudp_Medium], 1024u);
	cr_assert_eq(a.RequestDataBytesSent[amudp_Short], 0u);
	cr_assert_eq(a.RequestTotalBytesSent[amudp_Short], 24u);
	cr_assert_eq(b.RepliesSent[amudp_Medium], 1u);
	cr_assert_eq(b.RepliesSent[amudp_Short], 1u);
	cr_assert_eq(b.ReplyDataBytesSent[amudp_Medium], 500u);
	cr_assert_eq(b.ReplyTotalBytesSent[amudp_Medium], 24u + 8 + 500);
	cr_assert_eq(b.ReplyTotalBytesSent[amudp_Short], 24u);
	if (!a.RequestsRetransmitted[amudp_Short] && !a.RequestsRetransmitted[amudp_Medium] &&
	    !x.QuestionsSent) {
		cr_assert_eq(a.RepliesReceived[amudp_Medium], 1u);
		cr_assert_eq(a.RepliesReceived[amudp_Short], 1u);
		cr_assert_eq(b.RequestsReceived[amudp_Medium], 1u);
		cr_assert_eq(b.RequestsReceived[amudp_Short], 1u);
		cr_assert_eq(a.TotalBytesSent, 32u + 1024 + 32 + 24, "frames padded to 8");
		cr_assert_eq(b.TotalBytesSent, 32u + 536 + 32 + 24);
	}
	pair_close(&p);
}

static uint64_t total(const uint64_t *by_category)
{
	return by_category[amudp_Short] + by_category[amudp_Medium] + by_category[amudp_Long];
}

#define ROUNDS 2000

struct ends {
	amudp_stats_t stats[2];
	amudp_xstats_t xstats[2];
};

static const struct ends *ends(const struct pair *p)
{
	static struct ends e;
	int i;

	for (i = 0; i < 2; i++) {
		AMUDP_GetEndpointStatistics(p->ep[i], &e.stats[i]);
		AMUDP_GetEndpointExtendedStatistics(p->ep[i], &e.xstats[i]);
	}
	return &e;
}

/* Of what this end sent some was lost and some came twice; nothing is under way any more. */
static bool all_came(const struct ends *e, int from)
{
	const amudp_xstats_t *x = &e->xstats[!from];

	return x->PacketsReceived ==
	       e->xstats[from].PacketsSent - x->FaultsDropped + x->FaultsDuplicated;
}

/* On a bad path, what each end counted is explained by what the other one did. */
Test(statistics, both_ends_agree, .timeout = 60)
{
	const amudp_stats_t *a, *b;
	struct pair p;
	int i;

	setenv("FAULT_RATE", "0.1", 1);
	setenv("FAULT_DUPLICATE", "0.2", 1);
	setenv("FAULT_REORDER", "0.1", 1);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "2000", 1);
	open_counted(&p);
	for (i = 1; i <= ROUNDS; i++) {
		AM_Request0(p.ep[0], 0, H_SILENT);
		pair_until(&p, requests == i && p.ep[0]->outstanding == 0);
	}
	pair_until(&p, all_came(ends(&p), 0) && all_came(ends(&p), 1));
	a = &ends(&p)->stats[0];
	b = &ends(&p)->stats[1];
	cr_assert_eq(total(a->RequestsSent), (uint64_t)ROUNDS);
	cr_assert_eq(ends(&p)->xstats[0].LatencySamples, (uint64_t)ROUNDS);
	cr_assert_eq(ends(&p)->xstats[1].LatencySamples, 0u);
	cr_assert_eq(total(b->RepliesSent), (uint64_t)ROUNDS);
	/* who came is new, or late, or a copy that was answered or not; others asked */
	cr_assert_eq(total(b->RequestsReceived) + ends(&p)->xstats[1].QuestionsAnswered,
		     total(b->RepliesSent) + total(b->RepliesRetransmitted) +
			     total(b->RepliesSquashed) + b->OutOfOrderRequests);
	cr_assert_gt(total(b->RepliesRetransmitted), 0u);
	cr_assert_gt(b->OutOfOrderRequests, 0u);
	/* of the replies that came, one was awaited for each request */
	cr_assert_eq(total(a->RepliesReceived), (uint64_t)ROUNDS + a->OutOfOrderReplies);
	cr_assert_gt(a->OutOfOrderReplies, 0u);
	pair_close(&p);
}
