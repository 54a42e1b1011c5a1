/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages between two endpoints: every form, every size class, every reason to be returned.
 */
#include "pair.h"

#include <errno.h>
#include <unistd.h>

enum { H_SHORT = 1, H_DATA, H_SILENT, H_REPLY_SHORT, H_REPLY_DATA, H_TWICE, H_BAD_REPLY, H_LAST };

static struct {
	int requests;
	int replies;
	int returned;
	int status;
	int opcode;
	int args[16];
	int nbytes;
	unsigned char first, last;
	void *buffer;
	int second_reply;
	int reply_of_reply;
	int source;
	tag_t tag;
	ep_t dest;
	en_t name;
} seen;

static void note_token(void *token)
{
	AMUDP_GetSourceId(token, &seen.source);
	AM_GetMsgTag(token, &seen.tag);
	AM_GetDestEndpoint(token, &seen.dest);
	AM_GetSourceEndpoint(token, &seen.name);
}

static void note_data(void *buf, int nbytes)
{
	seen.buffer = buf;
	seen.nbytes = nbytes;
	seen.first = nbytes ? ((unsigned char *)buf)[0] : 0;
	seen.last = nbytes ? ((unsigned char *)buf)[nbytes - 1] : 0;
}

static void on_short(void *token, int a0, int a1, int a2, int a3, int a4, int a5, int a6, int a7,
		     int a8, int a9, int a10, int a11, int a12, int a13, int a14, int a15)
{
	int all[16] = { a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15 };

	memcpy(seen.args, all, sizeof(all));
	seen.requests++;
	note_token(token);
	cr_assert_eq(AM_Reply16(token, H_REPLY_SHORT, a15, a14, a13, a12, a11, a10, a9, a8, a7, a6,
				a5, a4, a3, a2, a1, a0),
		     AM_OK);
}

static void on_data(void *token, void *buf, int nbytes, int how, int offset)
{
	seen.requests++;
	note_token(token);
	note_data(buf, nbytes);
	if (how == 0)
		cr_assert_eq(AM_ReplyI1(token, H_REPLY_DATA, buf, nbytes, 7), AM_OK);
	else
		cr_assert_eq(AM_ReplyXfer1(token, offset, H_REPLY_DATA, buf, nbytes, 8), AM_OK);
}

static void on_silent(void *token)
{
	seen.requests++;
}

static void on_reply_short(void *token, int a0)
{
	seen.replies++;
	seen.args[0] = a0;
	seen.reply_of_reply = AM_Reply0(token, H_REPLY_SHORT);
	note_token(token);
}

static void on_reply_data(void *token, void *buf, int nbytes, int a0, int missing)
{
	seen.replies++;
	seen.args[0] = a0;
	seen.args[1] = missing;
	note_data(buf, nbytes);
}

static void on_twice(void *token)
{
	seen.requests++;
	cr_assert_eq(AM_Reply1(token, H_REPLY_SHORT, 1), AM_OK);
	seen.second_reply = AM_Reply1(token, H_REPLY_SHORT, 2);
}

static void on_bad_reply(void *token)
{
	seen.requests++;
	cr_assert_eq(AM_Reply0(token, 200), AM_OK);
}

static void on_returned(int status, op_t opcode, void *token)
{
	seen.returned++;
	seen.status = status;
	seen.opcode = opcode;
	note_token(token);
}

static void open_all(struct pair *p, int mode, int depth)
{
	int i;

	memset(&seen, 0, sizeof(seen));
	pair_open(p, mode);
	for (i = 0; i < 2; i++) {
		AM_SetHandler(p->ep[i], 0, on_returned);
		AM_SetHandler(p->ep[i], H_SHORT, on_short);
		AM_SetHandler(p->ep[i], H_DATA, on_data);
		AM_SetHandler(p->ep[i], H_SILENT, on_silent);
		AM_SetHandler(p->ep[i], H_REPLY_SHORT, on_reply_short);
		AM_SetHandler(p->ep[i], H_REPLY_DATA, on_reply_data);
		AM_SetHandler(p->ep[i], H_TWICE, on_twice);
		AM_SetHandler(p->ep[i], H_BAD_REPLY, on_bad_reply);
	}
	pair_map(p, depth);
}

static unsigned char *pattern(int n)
{
	unsigned char *data = malloc((size_t)n + 1);
	int i;

	for (i = 0; i < n; i++)
		data[i] = (unsigned char)(i * 31 + i / 251);
	return data;
}

Test(exchange, short_with_all_arguments)
{
	struct pair p;
	int i;

	open_all(&p, AM_SEQ, 4);
	cr_assert_eq(AM_Request16(p.ep[0], 0, H_SHORT, 0, -1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11,
				  12, -13, 14, INT32_MIN),
		     AM_OK);
	pair_until(&p, seen.replies == 1);
	for (i = 0; i < 15; i++)
		cr_assert_eq(seen.args[i], i == 0 ? INT32_MIN : i % 2 ? -i : i);
	cr_assert_eq(seen.requests, 1);
	cr_assert_eq(seen.source, 0);
	cr_assert_eq(seen.dest, p.ep[0]);
	cr_assert_eq(seen.name.sin_port, p.name[1].sin_port);
	cr_assert_eq(seen.reply_of_reply, AM_ERR_RESOURCE);
	pair_close(&p);
}

Test(exchange, the_handler_sees_its_tag_and_arguments)
{
	struct pair p;

	open_all(&p, AM_SEQ, 4);
	AM_Request2(p.ep[0], 0, H_SHORT, 41, 42);
	pair_until(&p, seen.requests == 1);
	cr_assert_eq(seen.tag, PAIR_TAG);
	cr_assert_eq(seen.args[1], 42);
	cr_assert_eq(seen.args[2], 0, "arguments not sent are 0");
	pair_close(&p);
}

static const int sizes[] = { 0, 1, 7, 8, 64, 127, 128, 129, 511, 513, 1400, 4096, 32000, 65000 };

Test(exchange, medium_of_all_sizes, .timeout = 30)
{
	struct pair p;
	size_t i;

	open_all(&p, AM_SEQ, 4);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *data = pattern(sizes[i]);
		int n = sizes[i];

		seen.replies = 0;
		cr_assert_eq(AM_RequestI1(p.ep[0], 0, H_DATA, data, n, 0), AM_OK);
		pair_until(&p, seen.replies == 1);
		cr_assert_eq(seen.nbytes, n);
		cr_assert_eq(seen.args[0], 7);
		cr_assert_eq(seen.args[1], 0, "a parameter without an argument is 0");
		cr_assert_eq(seen.first, n ? data[0] : 0, "%d", n);
		cr_assert_eq(seen.last, n ? data[n - 1] : 0, "%d", n);
		free(data);
	}
	cr_assert_eq(seen.returned, 0);
	pair_close(&p);
}

static void transfer(struct pair *p, int n, uintptr_t offset)
{
	unsigned char *data = pattern(n), *to, *back;
	uintptr_t len;

	AM_GetSeg(p->ep[1], (void **)&to, &len);
	AM_GetSeg(p->ep[0], (void **)&back, &len);
	seen.replies = 0;
	cr_assert_eq(AM_RequestXferAsync2(p->ep[0], 0, offset, H_DATA, data, n, 1, 64), AM_OK);
	pair_until(p, seen.replies == 1);
	cr_assert_eq(memcmp(to + offset, data, (size_t)n), 0, "%d octets at %lu", n, offset);
	cr_assert_eq(memcmp(back + 64, data, (size_t)n), 0, "%d octets back", n);
	cr_assert_eq(seen.buffer, back + 64);
	cr_assert_eq(seen.nbytes, n);
	free(data);
}

Test(exchange, long_and_bulk, .timeout = 30)
{
	struct pair p;

	open_all(&p, AM_SEQ, 4);
	transfer(&p, 0, 0);
	transfer(&p, 1, 4095);
	transfer(&p, 65000, 128);
	transfer(&p, 65001, 128);
	transfer(&p, 300000, 17);
	transfer(&p, 3000001, 17);
	cr_assert_eq(seen.requests, 6);
	cr_assert_eq(seen.returned, 0);
	pair_close(&p);
}

Test(exchange, get, .timeout = 30)
{
	struct pair p;
	unsigned char *from, *to;
	uintptr_t len;
	int n[] = { 0, 100, 65000, 1000000 }, i;

	open_all(&p, AM_SEQ, 4);
	AM_GetSeg(p.ep[1], (void **)&from, &len);
	AM_GetSeg(p.ep[0], (void **)&to, &len);
	for (i = 0; i < 1000000; i++)
		from[50 + i] = (unsigned char)(i * 7);
	for (i = 0; i < 4; i++) {
		seen.replies = 0;
		cr_assert_eq(AM_GetXfer1(p.ep[0], 0, 50, H_REPLY_DATA, 200, n[i], i), AM_OK);
		pair_until(&p, seen.replies == 1);
		cr_assert_eq(seen.nbytes, n[i]);
		cr_assert_eq(seen.args[0], i);
		cr_assert_eq(memcmp(to + 200, from + 50, (size_t)n[i]), 0);
	}
	cr_assert_eq(AM_GetXfer0(p.ep[0], 0, PAIR_SEGMENT - 4, H_REPLY_DATA, 0, 8), AM_OK);
	pair_until(&p, seen.returned == 1);
	cr_assert_eq(seen.status, EBADLENGTH);
	cr_assert_eq(seen.opcode, AM_GET_XFER_M);
	pair_close(&p);
}

Test(exchange, one_reply_to_a_request)
{
	struct pair p;

	open_all(&p, AM_SEQ, 4);
	AM_Request0(p.ep[0], 0, H_TWICE);
	pair_until(&p, seen.replies == 1);
	cr_assert_eq(seen.second_reply, AM_ERR_RESOURCE);
	cr_assert_eq(seen.args[0], 1);
	pair_close(&p);
}

#define SEQUENCE_NUMBERS 65536

/* Its sequence number begins again, too. */
Test(exchange, no_reply_frees_the_slot, .timeout = 60)
{
	struct pair p;
	int i;

	open_all(&p, AM_SEQ, 1);
	for (i = 1; i <= SEQUENCE_NUMBERS + 100; i++) {
		cr_assert_eq(AM_Request0(p.ep[0], 0, H_SILENT), AM_OK);
		pair_until(&p, seen.requests == i && p.ep[0]->outstanding == 0);
	}
	cr_assert_eq(p.ep[0]->translations[0].peer->tx[0].seq, 100);
	cr_assert_eq(seen.replies, 0);
	pair_close(&p);
}

Test(exchange, asynchronous_does_not_wait_for_a_slot)
{
	struct pair p;
	char data[8] = { 0 };

	open_all(&p, AM_SEQ, 1);
	cr_assert_eq(AM_RequestXferAsync2(p.ep[0], 0, 0, H_DATA, data, 8, 1, 0), AM_OK);
	cr_assert_eq(AM_RequestXferAsync2(p.ep[0], 0, 0, H_DATA, data, 8, 1, 0), AM_ERR_IN_USE);
	pair_until(&p, seen.replies == 1);
	cr_assert_eq(AM_RequestXferAsync2(p.ep[0], 0, 0, H_DATA, data, 8, 1, 0), AM_OK);
	pair_until(&p, seen.replies == 2);
	pair_close(&p);
}

static void expect_return(struct pair *p, int status, int opcode)
{
	int before = seen.returned;

	pair_until(p, seen.returned == before + 1);
	cr_assert_eq(seen.status, status, "%d, not %d", seen.status, status);
	cr_assert_eq(seen.opcode, opcode);
	pair_until(p, p->ep[0]->outstanding == 0);
}

Test(exchange, refusals)
{
	struct pair p;
	char data[8] = { 0 };

	open_all(&p, AM_SEQ, 4);
	AM_Request0(p.ep[0], 0, 99);
	expect_return(&p, EBADHANDLER, AM_REQUEST_M);
	AM_RequestI0(p.ep[0], 0, 99, data, 8);
	expect_return(&p, EBADHANDLER, AM_REQUEST_IM);
	AM_RequestXfer0(p.ep[0], 0, PAIR_SEGMENT - 7, H_DATA, data, 8);
	expect_return(&p, EBADLENGTH, AM_REQUEST_XFER_M);
	AM_RequestXfer0(p.ep[0], 0, UINTPTR_MAX, H_DATA, data, 8);
	expect_return(&p, EBADLENGTH, AM_REQUEST_XFER_M);
	AM_SetTag(p.ep[1], 1234);
	AM_Request0(p.ep[0], 0, H_SILENT);
	expect_return(&p, EBADTAG, AM_REQUEST_M);
	AM_SetTag(p.ep[1], AM_NONE);
	AM_Request0(p.ep[0], 0, H_SILENT);
	expect_return(&p, EBADTAG, AM_REQUEST_M);
	cr_assert_eq(seen.tag, PAIR_TAG);
	cr_assert_eq(seen.requests, 0);
	AM_SetTag(p.ep[1], AM_ALL);
	AM_Request0(p.ep[0], 0, H_SILENT);
	pair_until(&p, seen.requests == 1);
	pair_close(&p);
}

Test(exchange, no_segment_is_refused)
{
	struct pair p;
	char data[8] = { 0 };
	void *segment;
	uintptr_t len;

	open_all(&p, AM_SEQ, 4);
	AM_GetSeg(p.ep[1], &segment, &len);
	AM_SetSeg(p.ep[1], NULL, 0);
	AM_RequestXfer0(p.ep[0], 0, 0, H_DATA, data, 8);
	expect_return(&p, EBADSEGOFF, AM_REQUEST_XFER_M);
	AM_SetSeg(p.ep[1], segment, len);
	pair_close(&p);
}

Test(exchange, unknown_source_and_slot)
{
	struct pair p;

	memset(&seen, 0, sizeof(seen));
	pair_open(&p, AM_SEQ);
	AM_SetHandler(p.ep[0], 0, on_returned);
	AM_SetHandler(p.ep[1], H_SILENT, on_silent);
	AM_Map(p.ep[0], 0, p.name[1], PAIR_TAG);
	AM_SetExpectedResources(p.ep[0], 1, 8);
	AM_Request0(p.ep[0], 0, H_SILENT);
	expect_return(&p, EBADENDPOINT, AM_REQUEST_M);
	AM_Map(p.ep[1], 0, p.name[0], PAIR_TAG);
	AM_SetExpectedResources(p.ep[1], 1, 1);
	AM_Request0(p.ep[0], 0, H_SILENT);
	AM_Request0(p.ep[0], 0, H_SILENT);
	expect_return(&p, EUNREACHABLE, AM_REQUEST_M);
	cr_assert_eq(seen.requests, 1, "the first slot is within the depth");
	pair_close(&p);
}

Test(exchange, another_job_is_not_heard)
{
	struct pair p;

	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "1000", 1);
	setenv("AMUDP_REQUESTTIMEOUT_MAX", "50000", 1);
	memset(&seen, 0, sizeof(seen));
	pair_open(&p, AM_SEQ);
	AM_SetHandler(p.ep[0], 0, on_returned);
	AM_SetHandler(p.ep[1], H_SILENT, on_silent);
	cr_assert_eq(AMUDP_SetJobNonce(p.ep[1], 99), AM_OK);
	pair_map(&p, 4);
	AM_Request0(p.ep[0], 0, H_SILENT);
	expect_return(&p, ECONGESTION, AM_REQUEST_M);
	cr_assert_eq(seen.requests, 0);
	cr_assert_gt(p.ep[1]->xstats.Strangers, 0u);
	pair_close(&p);
}

Test(exchange, a_reply_that_cannot_run_is_returned_once)
{
	struct pair p;
	int i;

	open_all(&p, AM_SEQ, 4);
	AM_Request0(p.ep[0], 0, H_BAD_REPLY);
	pair_until(&p, seen.returned == 1 && p.ep[0]->outstanding == 0);
	cr_assert_eq(seen.status, EBADHANDLER);
	cr_assert_eq(seen.opcode, AM_REPLY_M);
	cr_assert_eq(seen.dest, p.ep[1], "handler 0 runs where the reply was made");
	for (i = 0; i < 1000; i++)
		pair_poll(&p);
	cr_assert_eq(seen.returned, 1);
	pair_close(&p);
}

static int callbacks[2];
static void before(amudp_category_t cat, int request, int id, void *token, void *buf, size_t n,
		   int numargs, uint32_t *args)
{
	callbacks[0]++;
	cr_assert(request);
	cr_assert_eq(cat, amudp_Medium);
	cr_assert_eq(id, H_DATA);
	cr_assert_eq(n, 8u);
	cr_assert_eq(numargs, 2);
	cr_assert_eq(args[1], 5u);
}

static void after(amudp_category_t cat, int request)
{
	callbacks[1]++;
}

Test(exchange, callbacks)
{
	struct pair p;
	char data[8] = { 0 };

	open_all(&p, AM_SEQ, 4);
	AMUDP_SetHandlerCallbacks(p.ep[1], before, after);
	AM_RequestI2(p.ep[0], 0, H_DATA, data, 8, 0, 5);
	pair_until(&p, seen.replies == 1);
	cr_assert_eq(callbacks[0], 1);
	cr_assert_eq(callbacks[1], 1);
	pair_close(&p);
}

Test(exchange, to_itself_in_the_call)
{
	struct pair p;
	char data[100] = { 1 };
	unsigned char *segment;
	amudp_stats_t stats;

	open_all(&p, AM_SEQ, 4);
	pair_drop(&p);
	pair_endpoint(&p, 1);
	AM_SetTag(p.ep[1], PAIR_TAG);
	segment = calloc(1, 4096);
	AM_SetSeg(p.ep[1], segment, 4096);
	AM_SetHandler(p.ep[1], 0, on_returned);
	AM_SetHandler(p.ep[1], H_SHORT, on_short);
	AM_SetHandler(p.ep[1], H_DATA, on_data);
	AM_SetHandler(p.ep[1], H_REPLY_SHORT, on_reply_short);
	AM_SetHandler(p.ep[1], H_REPLY_DATA, on_reply_data);
	AM_Map(p.ep[1], 5, p.name[1], PAIR_TAG);
	AM_SetExpectedResources(p.ep[1], 1, 4);
	AM_Request2(p.ep[1], 5, H_SHORT, 1, 2);
	cr_assert_eq(seen.requests, 1);
	cr_assert_eq(seen.replies, 1);
	cr_assert_eq(seen.source, 5);
	data[99] = 77;
	AM_RequestI1(p.ep[1], 5, H_DATA, data, 100, 0);
	cr_assert_eq(seen.replies, 2);
	cr_assert_eq(seen.last, 77);
	AM_RequestXfer2(p.ep[1], 5, 10, H_DATA, data, 100, 1, 1000);
	cr_assert_eq(seen.replies, 3);
	cr_assert_eq(segment[10 + 99], 77);
	cr_assert_eq(segment[1000 + 99], 77);
	AM_GetXfer0(p.ep[1], 5, 1000, H_REPLY_DATA, 2000, 100);
	cr_assert_eq(seen.replies, 4);
	cr_assert_eq(segment[2000 + 99], 77);
	AM_RequestXfer2(p.ep[1], 5, 4000, H_DATA, data, 100, 1, 0);
	cr_assert_eq(seen.returned, 1);
	cr_assert_eq(seen.status, EBADLENGTH);
	AMUDP_GetEndpointStatistics(p.ep[1], &stats);
	cr_assert_eq(stats.RequestsSent[amudp_Short], 0u);
	pair_close(&p);
}

Test(exchange, counted)
{
	struct pair p;
	amudp_stats_t a, b;
	char data[100] = { 0 };

	open_all(&p, AM_SEQ, 4);
	AM_RequestI1(p.ep[0], 0, H_DATA, data, 100, 0);
	pair_until(&p, seen.replies == 1);
	AM_Request0(p.ep[0], 0, H_SILENT);
	pair_until(&p, p.ep[0]->outstanding == 0);
	AMUDP_GetEndpointStatistics(p.ep[0], &a);
	AMUDP_GetEndpointStatistics(p.ep[1], &b);
	cr_assert_eq(a.RequestsSent[amudp_Medium], 1u);
	cr_assert_eq(a.RequestsSent[amudp_Short], 1u);
	cr_assert_eq(a.RequestDataBytesSent[amudp_Medium], 100u);
	cr_assert_gt(a.RequestTotalBytesSent[amudp_Medium], 100u);
	cr_assert_geq(b.RequestsReceived[amudp_Medium], 1u);
	cr_assert_eq(b.RepliesSent[amudp_Medium], 1u);
	cr_assert_eq(b.RepliesSent[amudp_Short], 1u, "the automatic one");
	cr_assert_eq(b.ReplyDataBytesSent[amudp_Medium], 100u);
	cr_assert_leq(a.RequestMinLatency, a.RequestMaxLatency);
	cr_assert_eq(AMUDP_ResetEndpointStatistics(p.ep[0]), AM_OK);
	AMUDP_GetEndpointStatistics(p.ep[0], &a);
	cr_assert_eq(memcmp(&a, &AMUDP_initial_stats, sizeof(a)), 0);
	pair_close(&p);
}

Test(exchange, batches_share_packets)
{
	struct pair p;
	amudp_xstats_t x;
	int i;

	open_all(&p, AM_SEQ, 64);
	AMUDP_SetBatch(p.ep[0], 32);
	for (i = 0; i < 32; i++) {
		usleep(10); /* longer than a request lets pass between polls */
		AM_Request0(p.ep[0], 0, H_SILENT);
	}
	pair_until(&p, seen.requests == 32);
	AMUDP_GetEndpointExtendedStatistics(p.ep[0], &x);
	cr_assert_lt(x.PacketsSent, 32u, "%lu packets", x.PacketsSent);
	cr_assert_eq(AMUDP_SetBatch(p.ep[0], -1), AM_ERR_BAD_ARG);
	AM_Request0(p.ep[0], 0, H_SILENT);
	cr_assert_eq(AMUDP_Flush(p.ep[0]), AM_OK);
	pair_until(&p, seen.requests == 33);
	pair_close(&p);
}

/* What the first end gives the other one for an answer, as things are */
static uint64_t timeout_of(const struct pair *p)
{
	const struct am_peer *peer = p->ep[0]->translations[0].peer;

	return am_rtt_timeout(&peer->rtt, peer->sleeps, p->ep[0]->options.timeout_initial);
}

/* One after the other */
static void trips(struct pair *p, int n)
{
	for (int i = 1; i <= n; i++) {
		AM_Request0(p->ep[0], 0, H_SILENT);
		pair_until(p, seen.requests == i && p->ep[0]->outstanding == 0);
	}
}

Test(exchange, the_time_out_is_measured)
{
	struct pair p;

	open_all(&p, AM_SEQ, 1);
	cr_assert_eq(timeout_of(&p), 100 * BASE_NS_PER_MS);
	trips(&p, 100);
	cr_assert_lt(timeout_of(&p), 100 * BASE_NS_PER_MS);
	pair_close(&p);
}

/* With one slot nothing overtakes what is lost: only the time-out finds it, a measured one. */
Test(exchange, losses_cost_a_round_trip, .timeout = 60)
{
	amudp_stats_t stats;
	struct pair p;

	setenv("FAULT_RATE", "0.2", 1);
	open_all(&p, AM_SEQ, 1);
	trips(&p, 300);
	AMUDP_GetEndpointStatistics(p.ep[0], &stats);
	cr_assert_gt(stats.RequestsRetransmitted[amudp_Short], 60u);
	cr_assert_lt(stats.RequestSumLatency / 300, 20000u, "%lu us", stats.RequestSumLatency);
	pair_close(&p);
}

static void *send_later(void *ep)
{
	usleep(100000);
	AM_Request0(ep, 0, H_SILENT);
	return NULL;
}

Test(exchange, waits_for_a_message, .timeout = 20)
{
	pthread_t sender;
	struct pair p;

	open_all(&p, AM_SEQ, 4);
	cr_assert_eq(pthread_create(&sender, NULL, send_later, p.ep[0]), 0);
	AM_SetEventMask(p.eb[1], AM_NOTEMPTY);
	cr_assert_eq(AM_WaitSema(p.eb[1]), AM_OK);
	cr_assert_eq(seen.requests, 1);
	cr_assert(p.ep[1]->sleeps);
	pthread_join(sender, NULL);
	cr_assert_not(p.ep[0]->translations[0].peer->sleeps);
	pair_until(&p, p.ep[0]->outstanding == 0);
	cr_assert(p.ep[0]->translations[0].peer->sleeps, "it says so");
	cr_assert_geq(timeout_of(&p), 2 * BASE_NS_PER_MS);
	pair_close(&p);
}

Test(exchange, bulk_as_the_very_first_message, .timeout = 20)
{
	struct pair p;

	open_all(&p, AM_SEQ, 4);
	transfer(&p, 200000, 0);
	pair_close(&p);
}

/* What a plain socket beside the second end is sent: the checksum's flag, and the checksum. */
static void read_first(const char *checksum, bool *flag, uint32_t *crc)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);
	uint8_t packet[2048];
	struct pair p;
	int fd;

	setenv("AMUDP_CHECKSUM", checksum, 1);
	pair_open(&p, AM_SEQ);
	name.sin_addr.s_addr = pair_place(1);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	pair_place(0);
	cr_assert_eq(AM_Map(p.ep[0], 0, name, PAIR_TAG), AM_OK);
	cr_assert_eq(AM_SetExpectedResources(p.ep[0], 1, 4), AM_OK);
	cr_assert_eq(AM_Request0(p.ep[0], 0, H_SILENT), AM_OK);
	cr_assert_gt(recv(fd, packet, sizeof(packet), 0), 32);
	cr_assert_eq(packet[0], 0xA2);
	*flag = packet[1] & 1;
	memcpy(crc, packet + 4, sizeof(*crc));
	close(fd);
	pair_close(&p);
}

Test(exchange, checksums_can_be_left_out)
{
	uint32_t crc;
	bool flag;

	read_first("1", &flag, &crc);
	cr_assert(flag);
	cr_assert_neq(crc, 0u);
	read_first("0", &flag, &crc);
	cr_assert_not(flag);
	cr_assert_eq(crc, 0u);
}
