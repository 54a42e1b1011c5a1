/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each entry point's errors, limits and plain answers; no message is sent.
 */
#include "pair.h"

#include <signal.h>

static void handler(void *token)
{
}

Test(arguments, before_init)
{
	eb_t eb;
	ep_t ep;
	en_t name;

	cr_assert_eq(AM_Terminate(), AM_ERR_NOT_INIT);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &eb), AM_ERR_NOT_INIT);
	cr_assert_eq(AM_AllocateEndpoint(NULL, &ep, &name), AM_ERR_NOT_INIT);
	cr_assert_eq(AM_Request0((ep_t)NULL, 0, 1), AM_ERR_NOT_INIT);
}

Test(arguments, init_nests)
{
	eb_t eb;

	cr_assert_eq(AM_Init(), AM_OK);
	cr_assert_eq(AM_Startup(), AM_OK);
	cr_assert_eq(AM_Terminate(), AM_OK);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &eb), AM_OK);
	cr_assert_eq(AM_Terminate(), AM_OK);
	cr_assert_eq(AM_Terminate(), AM_ERR_NOT_INIT);
}

Test(arguments, limits)
{
	uintptr_t length = 0;
	int n = 0;

	cr_assert_eq(AM_MaxShort(), 16);
	cr_assert_eq(AM_MaxMedium(), 65000);
	cr_assert_eq(AM_MaxLong(), 65000);
	cr_assert_eq(AM_MaxNumHandlers(), 256);
	cr_assert_eq(AM_MaxNumTranslations(&n), AM_OK);
	cr_assert_eq(n, 1 << 20);
	cr_assert_eq(AM_MaxSegLength(&length), AM_OK);
	cr_assert_eq(length, UINTPTR_MAX);
	cr_assert_eq(AM_MaxSegLength(NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(sizeof(amudp_stats_t), 320u);
}

Test(arguments, bundles)
{
	eb_t eb[AMUDP_MAX_BUNDLES + 1];
	int i, mask = -1;

	AM_Init();
	cr_assert_eq(AM_AllocateBundle(AM_NUM_BUNDLE_MODES, &eb[0]), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_AllocateBundle(-1, &eb[0]), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, NULL), AM_ERR_BAD_ARG);
	for (i = 0; i < AMUDP_MAX_BUNDLES; i++)
		cr_assert_eq(AM_AllocateBundle(i % 2, &eb[i]), AM_OK);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &eb[i]), AM_ERR_RESOURCE);
	cr_assert_eq(AM_GetEventMask(eb[0], &mask), AM_OK);
	cr_assert_eq(mask, AM_NOEVENTS);
	cr_assert_eq(AM_SetEventMask(eb[0], AM_NUMEVENTMASKS), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetEventMask(eb[0], AM_NOTEMPTY), AM_OK);
	cr_assert_eq(AM_GetEventMask(eb[0], &mask), AM_OK);
	cr_assert_eq(mask, AM_NOTEMPTY);
	cr_assert_eq(AM_GetEventMask(eb[0], NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_FreeBundle(eb[0]), AM_OK);
	cr_assert_eq(AM_AllocateBundle(AM_SEQ, &eb[0]), AM_OK);
	cr_assert_eq(AM_FreeBundle(NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Poll(NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_WaitSema(NULL), AM_ERR_BAD_ARG);
	AM_Terminate();
}

Test(arguments, waiting_for_no_event_is_fatal, .signal = SIGABRT)
{
	eb_t eb;

	AM_Init();
	AM_AllocateBundle(AM_SEQ, &eb);
	AM_WaitSema(eb);
}

Test(arguments, endpoints)
{
	struct pair p;
	uintptr_t length;
	void *segment;
	tag_t tag;

	pair_open(&p, AM_SEQ);
	cr_assert_neq(p.name[0].sin_port, p.name[1].sin_port);
	cr_assert_eq(AM_GetTag(p.ep[0], &tag), AM_OK);
	cr_assert_eq(tag, PAIR_TAG);
	cr_assert_eq(AM_GetTag(p.ep[0], NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetTag(NULL, 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_GetSeg(p.ep[0], &segment, &length), AM_OK);
	cr_assert_eq(length, PAIR_SEGMENT);
	cr_assert_eq(AM_SetSeg(p.ep[0], NULL, 10), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_GetSeg(p.ep[0], NULL, &length), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_MoveEndpoint(p.ep[0], p.eb[1], p.eb[0]), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_MoveEndpoint(p.ep[0], p.eb[0], p.eb[1]), AM_OK);
	cr_assert_eq(AM_MoveEndpoint(p.ep[0], p.eb[1], p.eb[0]), AM_OK);
	cr_assert_eq(AM_FreeEndpoint(NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_AllocateEndpoint(p.eb[0], NULL, NULL), AM_ERR_BAD_ARG);
	pair_close(&p);
}

Test(arguments, handlers)
{
	struct pair p;
	handler_t h = 0;
	int n = 0, i;

	pair_open(&p, AM_SEQ);
	cr_assert_eq(AM_GetNumHandlers(p.ep[0], &n), AM_OK);
	cr_assert_eq(n, 256);
	cr_assert_eq(AM_SetNumHandlers(p.ep[0], 257), AM_ERR_RESOURCE);
	cr_assert_eq(AM_SetHandler(p.ep[0], 5, NULL), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetHandler(p.ep[0], 2, handler), AM_OK);
	cr_assert_eq(AM_SetHandlerAny(p.ep[0], &h, handler), AM_OK);
	cr_assert_eq(h, 1);
	cr_assert_eq(AM_SetHandlerAny(p.ep[0], &h, handler), AM_OK);
	cr_assert_eq(h, 3);
	for (i = 4; i < 256; i++)
		cr_assert_eq(AM_SetHandlerAny(p.ep[0], &h, handler), AM_OK);
	cr_assert_eq(AM_SetHandlerAny(p.ep[0], &h, handler), AM_ERR_RESOURCE);
	cr_assert_eq(AM_SetHandlerAny(p.ep[0], NULL, handler), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetNumHandlers(p.ep[0], 8), AM_OK);
	cr_assert_eq(AM_SetHandler(p.ep[0], 8, handler), AM_ERR_BAD_ARG);
	cr_assert_eq(AMUDP_SetHandlerCallbacks(NULL, NULL, NULL), AM_ERR_BAD_ARG);
	pair_close(&p);
}

Test(arguments, translations)
{
	struct pair p;
	en_t name;
	tag_t tag;
	int n = 0, i;

	pair_open(&p, AM_SEQ);
	cr_assert_eq(AM_GetNumTranslations(p.ep[0], &n), AM_OK);
	cr_assert_eq(n, 256);
	cr_assert_eq(AM_Map(p.ep[0], 256, p.name[1], 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Map(p.ep[0], -1, p.name[1], 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Map(p.ep[0], 3, p.name[1], 11), AM_OK);
	cr_assert_eq(AM_Map(p.ep[0], 3, p.name[1], 11), AM_ERR_RESOURCE);
	cr_assert_eq(AM_GetTranslationInuse(p.ep[0], 3), AM_OK);
	cr_assert_eq(AM_GetTranslationInuse(p.ep[0], 4), AM_ERR_RESOURCE);
	cr_assert_eq(AM_GetTranslationInuse(p.ep[0], 300), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_GetTranslationTag(p.ep[0], 3, &tag), AM_OK);
	cr_assert_eq(tag, 11u);
	cr_assert_eq(AM_GetTranslationTag(p.ep[0], 4, &tag), AM_ERR_RESOURCE);
	cr_assert_eq(AM_GetTranslationName(p.ep[0], 3, &name), AM_OK);
	cr_assert_eq(name.sin_port, p.name[1].sin_port);
	cr_assert_eq(AMUDP_SetTranslationTag(p.ep[0], 3, 12), AM_OK);
	cr_assert_eq(AM_GetTranslationTag(p.ep[0], 3, &tag), AM_OK);
	cr_assert_eq(tag, 12u);
	cr_assert_eq(AM_MapAny(p.ep[0], &i, p.name[1], 13), AM_OK);
	cr_assert_eq(i, 0);
	cr_assert_eq(AM_UnMap(p.ep[0], 0), AM_OK);
	cr_assert_eq(AM_UnMap(p.ep[0], 0), AM_ERR_RESOURCE);
	cr_assert_eq(AM_SetNumTranslations(p.ep[0], 3), AM_ERR_RESOURCE, "entry 3 is in use");
	cr_assert_eq(AM_SetNumTranslations(p.ep[0], 0), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetNumTranslations(p.ep[0], (1 << 20) + 1), AM_ERR_RESOURCE);
	cr_assert_eq(AM_SetNumTranslations(p.ep[0], 5000), AM_OK);
	cr_assert_eq(AM_Map(p.ep[0], 4999, p.name[0], 1), AM_OK);
	cr_assert_eq(AM_SetExpectedResources(p.ep[0], 2, 0), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetExpectedResources(p.ep[0], 2, 1025), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_SetExpectedResources(p.ep[0], 2, 4), AM_OK);
	cr_assert_eq(AM_SetExpectedResources(p.ep[0], 2, 4), AM_ERR_RESOURCE);
	cr_assert_eq(AM_Map(p.ep[0], 7, p.name[1], 11), AM_ERR_RESOURCE);
	cr_assert_eq(AM_UnMap(p.ep[0], 3), AM_ERR_RESOURCE);
	cr_assert_eq(AM_SetNumTranslations(p.ep[0], 6000), AM_ERR_RESOURCE);
	cr_assert_eq(AMUDP_SetJobNonce(p.ep[0], 4), AM_ERR_RESOURCE);
	pair_close(&p);
}

Test(arguments, requests)
{
	struct pair p;
	char data[8] = { 0 };

	pair_open(&p, AM_SEQ);
	cr_assert_eq(AM_Map(p.ep[0], 0, p.name[1], PAIR_TAG), AM_OK);
	cr_assert_eq(AM_Request0(p.ep[0], 0, 1), AM_ERR_NOT_INIT);
	AM_SetExpectedResources(p.ep[0], 1, 4);
	cr_assert_eq(AM_Request0((ep_t)NULL, 0, 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Request0(p.ep[0], 1, 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Request0(p.ep[0], 70000, 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AMUDP_Request(p.ep[0], 0, 1, 17), AM_ERR_BAD_ARG);
	cr_assert_eq(AMUDP_Request(p.ep[0], 0, 1, -1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_RequestI0(p.ep[0], 0, 1, NULL, 8), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_RequestI0(p.ep[0], 0, 1, data, 65001), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_RequestI0(p.ep[0], 0, 1, data, -1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_RequestXfer0(p.ep[0], 0, 0, 1, data, AMUDP_MaxXfer() + 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_GetXfer0(p.ep[0], 0, 0, 1, PAIR_SEGMENT - 4, 8), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Reply0(NULL, 1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_Reply0(data, 1), AM_ERR_RESOURCE);
	cr_assert_eq(AM_ReplyI0(data, 1, data, 65001), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_ReplyXfer0(data, 0, 1, data, -1), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_GetSourceEndpoint(data, &p.name[0]), AM_ERR_BAD_ARG);
	cr_assert_eq(AM_GetDestEndpoint(data, &p.ep[0]), AM_ERR_BAD_ARG);
	pair_close(&p);
}

static ep_t endpoint_under(const char *variable, const char *value, const char *prefix)
{
	char name[64];
	en_t own;
	eb_t eb;
	ep_t ep;

	snprintf(name, sizeof(name), "%s%s", prefix, variable);
	setenv(name, value, 1);
	AM_AllocateBundle(AM_SEQ, &eb);
	cr_assert_eq(AM_AllocateEndpoint(eb, &ep, &own), AM_OK);
	unsetenv(name);
	return ep;
}

#define OPTION(member) offsetof(struct amudp_ep, member), sizeof(((struct amudp_ep *)0)->member)

/* What endpoints read of the environment, by both of its names. */
Test(arguments, environment)
{
	static const struct {
		const char *variable, *value;
		size_t offset, size;
		uint64_t want;
	} rows[] = {
		{ "REQUESTTIMEOUT_INITIAL", "70", OPTION(options.timeout_initial), 70000 },
		{ "REQUESTTIMEOUT_INITIAL", "", OPTION(options.timeout_initial), 100000000 },
		{ "REQUESTTIMEOUT_MAX", "80", OPTION(options.timeout_max), 80000 },
		{ "REQUESTTIMEOUT_MAX", "0", OPTION(options.timeout_max), BASE_NEVER },
		{ "REQUESTTIMEOUT_MAX", "-1", OPTION(options.timeout_max), BASE_NEVER },
		{ "REQUESTTIMEOUT_BACKOFF", "3", OPTION(options.backoff), 3 },
		{ "REQUESTTIMEOUT_BACKOFF", "1", OPTION(options.backoff), 1 },
		{ "SENDDEPTH", "5", OPTION(options.send_depth), 5 },
		{ "SENDDEPTH", "-1", OPTION(options.send_depth), (uint32_t)-1 },
		{ "SPIN", "9", OPTION(options.spin), 9000 },
		{ "CHECKSUM", "no", OPTION(options.checksum), AM_CHOICE_NO },
		{ "CHECKSUM", "yes", OPTION(options.checksum), AM_CHOICE_YES },
		{ "CHECKSUM", "1", OPTION(options.checksum), AM_CHOICE_YES },
		{ "CHECKSUM", "Auto", OPTION(options.checksum), AM_CHOICE_AUTO },
		{ "CHECKSUM", "", OPTION(options.checksum), AM_CHOICE_AUTO },
		{ "BATCH", "7", OPTION(options.batch), 7 },
		{ "FAULT_DELAY_US", "6", OPTION(fault.delay_ns), 6000 },
		{ "FAULT_RATE", "0.5", OPTION(fault.drop), 1u << 31 },
	};
	uint64_t value;
	size_t i, j;

	AM_Init();
	AMUDP_SetUDPInterface(pair_place(0));
	for (i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		j = i / 2;
		value = 0;
		memcpy(&value,
		       (char *)endpoint_under(rows[j].variable, rows[j].value,
					      i % 2 ? "AMUDP_" : "") +
			       rows[j].offset,
		       rows[j].size);
		cr_expect_eq(value, rows[j].want, "%s=%s: %lu", rows[j].variable, rows[j].value,
			     (unsigned long)value);
		AM_Terminate();
		AM_Init();
	}
	cr_expect_lt(endpoint_under("RECVDEPTH", "1", "")->nics[0]->receive_bytes, 1u << 18);
}

Test(arguments, statistics)
{
	amudp_stats_t sum = AMUDP_initial_stats, add = AMUDP_initial_stats;
	const char *text;

	cr_assert_eq(sum.RequestMinLatency, UINT64_MAX);
	add.RequestsSent[amudp_Medium] = 5;
	add.RepliesReceived[amudp_Short] = 5;
	add.RequestMinLatency = 3;
	add.RequestMaxLatency = 9;
	add.RequestSumLatency = 25;
	cr_assert_eq(AMUDP_AggregateStatistics(&sum, &add), AM_OK);
	add.RequestMinLatency = 4;
	cr_assert_eq(AMUDP_AggregateStatistics(&sum, &add), AM_OK);
	cr_assert_eq(sum.RequestsSent[amudp_Medium], 10u);
	cr_assert_eq(sum.RequestMinLatency, 3u);
	cr_assert_eq(sum.RequestMaxLatency, 9u);
	text = AMUDP_DumpStatistics(NULL, &sum, 1);
	cr_assert_eq(strncmp(text,
			     " Requests:       10 sent,    0 retransmitted,        0 received", 63),
		     0);
	cr_assert(strstr(text, "avg: 5 microseconds"));
	cr_assert(strstr(text, "Useless retransmits:"));
	cr_assert(!strstr(AMUDP_DumpStatistics(NULL, &sum, 0), "Useless retransmits:"));
	cr_assert_eq(AMUDP_AggregateStatistics(NULL, &add), AM_ERR_BAD_ARG);
	cr_assert_eq(AMUDP_GetEndpointStatistics(NULL, &add), AM_ERR_BAD_ARG);
}
