/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statistics: docs/amudp.md says what each number counts.
 *
 * Sent counts are of messages, retransmissions apart; received counts include retransmissions.
 * With the sums of a whole job, what was sent and what arrived tell how many packets were lost
 * and how many retransmissions were useless.
 */
#include "am/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "am/endpoint.h"
#include "am/lock.h"
#include "base/bits.h"

const amudp_stats_t AMUDP_initial_stats = { .RequestMinLatency = UINT64_MAX };

#define STATS_WORDS (sizeof(amudp_stats_t) / sizeof(uint64_t))

int AMUDP_GetEndpointStatistics(ep_t ep, amudp_stats_t *stats)
{
	if (!am_endpoint_valid(ep) || !stats)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	am_lock_take(ep->lock);
	*stats = ep->stats;
	am_lock_drop(ep->lock);
	return AM_OK;
}

int AMUDP_GetEndpointExtendedStatistics(ep_t ep, amudp_xstats_t *stats)
{
	int i;

	if (!am_endpoint_valid(ep) || !stats)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	am_lock_take(ep->lock);
	*stats = ep->xstats;
	for (i = 0; i < ep->num_nics; i++) {
		stats->SystemCallsSend += ep->nics[i]->calls_send;
		stats->SystemCallsReceive += ep->nics[i]->calls_receive;
		stats->ArrivalsDropped +=
			ep->nics[i]->ops->dropped(ep->nics[i]) - ep->nics[i]->dropped_before;
	}
	am_lock_drop(ep->lock);
	return AM_OK;
}

int AMUDP_ResetEndpointStatistics(ep_t ep)
{
	int i;

	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	am_lock_take(ep->lock);
	ep->stats = AMUDP_initial_stats;
	memset(&ep->xstats, 0, sizeof(ep->xstats));
	for (i = 0; i < ep->num_nics; i++) {
		ep->nics[i]->calls_send = 0;
		ep->nics[i]->calls_receive = 0;
		ep->nics[i]->dropped_before = ep->nics[i]->ops->dropped(ep->nics[i]);
	}
	am_lock_drop(ep->lock);
	return AM_OK;
}

int AMUDP_AggregateStatistics(amudp_stats_t *runningsum, amudp_stats_t *newvalues)
{
	uint64_t *sum = (uint64_t *)runningsum;
	const uint64_t *add = (const uint64_t *)newvalues;
	uint64_t min, max;
	size_t i;

	if (!runningsum || !newvalues)
		am_return_error(AM_ERR_BAD_ARG, "two sets are needed");
	min = runningsum->RequestMinLatency < newvalues->RequestMinLatency
		      ? runningsum->RequestMinLatency
		      : newvalues->RequestMinLatency;
	max = runningsum->RequestMaxLatency > newvalues->RequestMaxLatency
		      ? runningsum->RequestMaxLatency
		      : newvalues->RequestMaxLatency;
	for (i = 0; i < STATS_WORDS; i++)
		sum[i] += add[i];
	runningsum->RequestMinLatency = min;
	runningsum->RequestMaxLatency = max;
	return AM_OK;
}

struct text {
	char *at;
	size_t left;
};

static void print(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void print(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at, t->left, fmt, args);
	va_end(args);
	if (n > 0 && (size_t)n < t->left) {
		t->at += n;
		t->left -= (size_t)n;
	}
}

static void print_counts(struct text *t, const amudp_stats_t *s)
{
	print(t,
	      " Requests: %8" PRIu64 " sent, %4" PRIu64 " retransmitted, %8" PRIu64 " received\n",
	      am_stats_total(s->RequestsSent), am_stats_total(s->RequestsRetransmitted),
	      am_stats_total(s->RequestsReceived));
	print(t,
	      " Replies:  %8" PRIu64 " sent, %4" PRIu64 " retransmitted, %8" PRIu64
	      " received, %4" PRIu64 " squashed\n",
	      am_stats_total(s->RepliesSent), am_stats_total(s->RepliesRetransmitted),
	      am_stats_total(s->RepliesReceived), am_stats_total(s->RepliesSquashed));
	print(t, " Returned messages:%2" PRIu64 "\n", s->ReturnedMessages);
	print(t, " Misordered receipt: %" PRIu64 " requests, %" PRIu64 " replies\n",
	      s->OutOfOrderRequests, s->OutOfOrderReplies);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Only with the sums of a whole job do these differences mean anything. */
static void print_global(struct text *t, const amudp_stats_t *s)
{
	uint64_t requests =
		am_stats_total(s->RequestsSent) + am_stats_total(s->RequestsRetransmitted);
	uint64_t replies = am_stats_total(s->RepliesSent) + am_stats_total(s->RepliesRetransmitted);
	uint64_t again =
		am_stats_total(s->RequestsRetransmitted) + am_stats_total(s->RepliesRetransmitted);
	uint64_t lost_requests = less(requests, am_stats_total(s->RequestsReceived));
	uint64_t lost_replies = less(replies, am_stats_total(s->RepliesReceived));
	uint64_t lost = lost_requests + lost_replies, sent = requests + replies;

	print(t, " Requests lost:      %" PRIu64 "\n", lost_requests);
	print(t, " Replies lost:       %" PRIu64 "\n", lost_replies);
	print(t, " Total packets lost: %" PRIu64 " (%.2f%%)\n", lost,
	      sent ? 100.0 * (double)lost / (double)sent : 0.0);
	print(t, " Useless retransmits: %" PRIu64 "\n", less(again, lost));
}

static void print_latency(struct text *t, const amudp_stats_t *s)
{
	/* near enough: copies and fragments of replies count, too, and some may be under way */
	uint64_t n = base_min(am_stats_total(s->RepliesReceived), am_stats_total(s->RequestsSent));

	if (!n || s->RequestMinLatency == UINT64_MAX) {
		print(t, " Latency (request sent to reply received): no requests\n");
		return;
	}
	print(t,
	      " Latency (request sent to reply received): min: %" PRIu64 " max: %" PRIu64
	      " avg: %" PRIu64 " microseconds\n",
	      s->RequestMinLatency, s->RequestMaxLatency, s->RequestSumLatency / n);
}

static void print_row(struct text *t, const char *name, const uint64_t *v)
{
	print(t, "  %-22s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", name,
	      v[amudp_Short], v[amudp_Medium], v[amudp_Long], am_stats_total(v));
}

static void print_breakdown(struct text *t, const amudp_stats_t *s)
{
	print(t, " Message breakdown:            short       medium         long        total\n");
	print_row(t, "Requests", s->RequestsSent);
	print_row(t, "Replies", s->RepliesSent);
	print_row(t, "Request data bytes", s->RequestDataBytesSent);
	print_row(t, "Reply data bytes", s->ReplyDataBytesSent);
	print_row(t, "Request total bytes", s->RequestTotalBytesSent);
	print_row(t, "Reply total bytes", s->ReplyTotalBytesSent);
	print(t, " Total bytes sent: %" PRIu64 "\n", s->TotalBytesSent);
}

const char *AMUDP_DumpStatistics(void *fp, amudp_stats_t *stats, int globalanalysis)
{
	static __thread char buffer[4096];
	struct text t = { buffer, sizeof(buffer) };

	if (!stats)
		return NULL;
	print_counts(&t, stats);
	if (globalanalysis)
		print_global(&t, stats);
	print_latency(&t, stats);
	print_breakdown(&t, stats);
	if (fp)
		fputs(buffer, fp);
	return buffer;
}
