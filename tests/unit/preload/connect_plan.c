/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a client goes about a connection, as a table: what the rules say, what is known of the peer,
 * and what comes of it. What it asks of the others is answered here.
 */
#include "preload/rules/connect_plan.h"

#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/bits.h"
#include "base/clock.h"
#include "preload/rules/ask.h"
#include "preload/rules/choose.h"
#include "preload/rules/host.h"
#include "preload/rules/probe.h"

enum { NOBODY_ASKED = -1 };

static struct choice rule;
static enum probe_answer known;
static bool registered;
static int answered; /* enum ask_known, or it must not be asked */
static unsigned int asked;
static enum config_rule_ask asked_how;

void choose_client(const struct sockaddr *addr, socklen_t len, struct choice *out)
{
	*out = rule;
}

enum probe_answer probe_known(const struct sockaddr *peer, socklen_t len, uint64_t now)
{
	return known;
}

bool host_listens(const struct sockaddr *peer, socklen_t len)
{
	return registered;
}

enum ask_known ask_begin(const struct sockaddr *peer, socklen_t len, enum config_rule_ask how)
{
	asked++;
	asked_how = how;
	return (enum ask_known)answered;
}

static const struct {
	const char *name;
	struct choice rule;
	enum config_reason barred;
	bool here, registered;
	enum probe_answer known;
	int answered;
	enum connect_way way;
	enum config_reason reason;
} plans[] = {
	{ "no rule",
	  { .mode = CONFIG_USE_TCP, .reason = CONFIG_REASON_RULE_NONE },
	  0,
	  true,
	  true,
	  PROBE_DDP,
	  NOBODY_ASKED,
	  CONNECT_PLAIN,
	  CONFIG_REASON_RULE_NONE },
	{ "a rule for tcp",
	  { .mode = CONFIG_USE_TCP, .reason = CONFIG_REASON_RULE_TCP },
	  0,
	  false,
	  true,
	  PROBE_DDP,
	  NOBODY_ASKED,
	  CONNECT_PLAIN,
	  CONFIG_REASON_RULE_TCP },
	{ "on",
	  { .mode = CONFIG_USE_DDP },
	  0,
	  false,
	  false,
	  PROBE_PLAIN,
	  NOBODY_ASKED,
	  CONNECT_REQUEST,
	  0 },
	{ "on, barred",
	  { .mode = CONFIG_USE_DDP },
	  CONFIG_REASON_SANDBOXED,
	  false,
	  true,
	  PROBE_DDP,
	  NOBODY_ASKED,
	  CONNECT_REFUSED,
	  CONFIG_REASON_SANDBOXED },
	{ "auto, barred",
	  { .mode = CONFIG_USE_AUTO },
	  CONFIG_REASON_SANDBOXED,
	  true,
	  true,
	  PROBE_DDP,
	  NOBODY_ASKED,
	  CONNECT_PLAIN,
	  CONFIG_REASON_SANDBOXED },
	{ "tcp, barred",
	  { .mode = CONFIG_USE_TCP, .reason = CONFIG_REASON_RULE_NONE },
	  CONFIG_REASON_SANDBOXED,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  NOBODY_ASKED,
	  CONNECT_PLAIN,
	  CONFIG_REASON_RULE_NONE },
	{ "auto, known to be plain",
	  { .mode = CONFIG_USE_AUTO, .named = true },
	  0,
	  true,
	  true,
	  PROBE_PLAIN,
	  NOBODY_ASKED,
	  CONNECT_PLAIN,
	  CONFIG_REASON_PEER_KNOWN_PLAIN },
	{ "auto, a listener of this host",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  true,
	  PROBE_UNKNOWN,
	  NOBODY_ASKED,
	  CONNECT_SURE,
	  0 },
	{ "auto, of this process, too",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  true,
	  true,
	  PROBE_UNKNOWN,
	  NOBODY_ASKED,
	  CONNECT_SURE,
	  0 },
	{ "auto, of this process",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  true,
	  false,
	  PROBE_UNKNOWN,
	  NOBODY_ASKED,
	  CONNECT_PROBE,
	  0 },
	{ "auto, it answered before",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_DDP,
	  NOBODY_ASKED,
	  CONNECT_PROBE,
	  0 },
	{ "auto, the rule names it",
	  { .mode = CONFIG_USE_AUTO, .named = true },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  NOBODY_ASKED,
	  CONNECT_PROBE,
	  0 },
	{ "auto, the rule names it and asks",
	  { .mode = CONFIG_USE_AUTO, .named = true, .ask = CONFIG_ASK_ALWAYS },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  ASK_KNOWN_ASKED,
	  CONNECT_ASK,
	  0 },
	{ "auto, asked",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  ASK_KNOWN_ASKED,
	  CONNECT_ASK,
	  0 },
	{ "auto, another one is asking",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_ASKED,
	  ASK_KNOWN_ASKED,
	  CONNECT_ASK,
	  0 },
	{ "auto, the host said yes",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  ASK_KNOWN_YES,
	  CONNECT_ASK,
	  0 },
	{ "auto, the host said no",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  ASK_KNOWN_NO,
	  CONNECT_PLAIN,
	  CONFIG_REASON_ASK_NO },
	{ "auto, the host is silent",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  ASK_KNOWN_SILENT,
	  CONNECT_PLAIN,
	  CONFIG_REASON_ASK_SILENT },
	{ "auto, the host is far",
	  { .mode = CONFIG_USE_AUTO },
	  0,
	  false,
	  false,
	  PROBE_UNKNOWN,
	  ASK_KNOWN_FAR,
	  CONNECT_PLAIN,
	  CONFIG_REASON_PEER_UNKNOWN },
};

static struct connect_plan plan_of(unsigned int i, const struct conn_opts *opts)
{
	const struct sockaddr_in peer = { .sin_family = AF_INET };
	struct connect_facts facts = { (const struct sockaddr *)&peer, sizeof(peer), opts,
				       plans[i].barred, plans[i].here };

	known = plans[i].known;
	registered = plans[i].registered;
	answered = plans[i].answered;
	asked = 0;
	return connect_plan_make(&facts);
}

Test(connect_plan, by_the_rules)
{
	for (unsigned int i = 0; i < base_array_size(plans); i++) {
		const struct conn_opts opts = { .mode = CONFIG_USE_DDP };
		struct connect_plan plan;

		rule = plans[i].rule;
		rule.provider = "verbs";
		plan = plan_of(i, &opts);
		cr_expect_eq(plan.way, plans[i].way, "%s: way %d", plans[i].name, plan.way);
		cr_expect_eq(plan.reason, plans[i].reason, "%s: reason %d", plans[i].name,
			     plan.reason);
		cr_expect_eq(asked, plans[i].answered != NOBODY_ASKED, "%s: asked %u times",
			     plans[i].name, asked);
		if (asked)
			cr_expect_eq(asked_how, rule.ask, "%s", plans[i].name);
		if (plan.way > CONNECT_REFUSED)
			cr_expect_str_eq(plan.provider, "verbs", "%s", plans[i].name);
	}
}

/* The same where the program has set its mode: the rules say something else, and are not asked */
Test(connect_plan, by_the_program)
{
	for (unsigned int i = 0; i < base_array_size(plans); i++) {
		const struct conn_opts opts = { .mode = plans[i].rule.mode, .mode_set = true };
		bool off = opts.mode == CONFIG_USE_TCP;
		struct connect_plan plan;

		if (plans[i].rule.named)
			continue;
		rule = (struct choice){ .mode = off ? CONFIG_USE_DDP : CONFIG_USE_TCP,
					.provider = "verbs" };
		plan = plan_of(i, &opts);
		cr_expect_eq(plan.way, plans[i].way, "%s: way %d", plans[i].name, plan.way);
		cr_expect_eq(plan.reason, off ? CONFIG_REASON_MODE_OFF : plans[i].reason,
			     "%s: reason %d", plans[i].name, plan.reason);
		cr_expect_null(plan.provider, "%s", plans[i].name);
	}
}

#define MS BASE_NS_PER_MS
#define START (7000 * MS)

#define ANY_TIME                                          \
	{                                                 \
		.decide_limit = 50 * MS, .decide_rtts = 4 \
	}
#define ONLY_START                   \
	{                            \
		.start_limit = START \
	}
#define START_AND_DECIDES                                                       \
	{                                                                       \
		.start_limit = START, .decide_limit = 50 * MS, .decide_rtts = 4 \
	}
#define BY_PROBE                                        \
	{                                               \
		.start_limit = 50 * MS, .start_rtts = 4 \
	}
#define GIVEN_PROBE                     \
	{                               \
		.start_limit = 300 * MS \
	}
#define BY_GRACE                                                                     \
	{                                                                            \
		.start_limit = START, .decide_limit = 5 * MS, .decide_max = 50 * MS, \
		.decide_rtts = 2                                                     \
	}
#define GIVEN_GRACE                                           \
	{                                                     \
		.start_limit = START, .decide_limit = 20 * MS \
	}

/* @given: WARPSOCK_PROBE_TIMEOUT is 300 ms and WARPSOCK_GRACE 20 ms, else by the round trip */
static const struct {
	const char *name;
	enum connect_way way;
	enum config_transport mode;
	bool initiator, hold, device;
	struct connect_times computed, given;
} times[] = {
	{ "client, on", CONNECT_REQUEST, CONFIG_USE_DDP, true, false, false, START_AND_DECIDES,
	  START_AND_DECIDES },
	{ "client, on, does not wait", CONNECT_REQUEST, CONFIG_USE_DDP, true, true, false, ANY_TIME,
	  ANY_TIME },
	{ "client, on, device", CONNECT_REQUEST, CONFIG_USE_DDP, true, false, true, ONLY_START,
	  ONLY_START },
	{ "client, auto", CONNECT_PROBE, CONFIG_USE_AUTO, true, false, false, BY_PROBE,
	  GIVEN_PROBE },
	{ "client, auto, does not wait", CONNECT_PROBE, CONFIG_USE_AUTO, true, true, false,
	  ONLY_START, ONLY_START },
	{ "client, auto, device", CONNECT_PROBE, CONFIG_USE_AUTO, true, false, true, BY_PROBE,
	  GIVEN_PROBE },
	{ "client, auto, sure", CONNECT_SURE, CONFIG_USE_AUTO, true, false, false,
	  START_AND_DECIDES, START_AND_DECIDES },
	{ "client, auto, asked", CONNECT_ASK, CONFIG_USE_AUTO, true, false, false,
	  START_AND_DECIDES, START_AND_DECIDES },
	{ "server, on", CONNECT_PLAIN, CONFIG_USE_DDP, false, false, false, ONLY_START,
	  ONLY_START },
	{ "server, on, holds", CONNECT_PLAIN, CONFIG_USE_DDP, false, true, false, ONLY_START,
	  ONLY_START },
	{ "server, auto", CONNECT_PLAIN, CONFIG_USE_AUTO, false, false, false, BY_GRACE,
	  GIVEN_GRACE },
};

static struct connect_times times_of(unsigned int i, const struct config *c)
{
	struct connect_times_facts facts = { times[i].way, times[i].mode, times[i].initiator,
					     times[i].hold, times[i].device };

	return connect_plan_times(c, &facts);
}

static void expect_times(const char *name, const struct connect_times *got,
			 const struct connect_times *want)
{
	cr_expect_eq(got->start_limit, want->start_limit, "%s: start_limit", name);
	cr_expect_eq(got->start_rtts, want->start_rtts, "%s: start_rtts", name);
	cr_expect_eq(got->decide_limit, want->decide_limit, "%s: decide_limit", name);
	cr_expect_eq(got->decide_max, want->decide_max, "%s: decide_max", name);
	cr_expect_eq(got->decide_rtts, want->decide_rtts, "%s: decide_rtts", name);
}

Test(connect_plan, times)
{
	struct config c = { .start = START, .grace = CONFIG_COMPUTED, .probe = CONFIG_COMPUTED };
	struct config given = { .start = START, .grace = 20 * MS, .probe = 300 * MS };

	for (unsigned int i = 0; i < base_array_size(times); i++) {
		struct connect_times t = times_of(i, &c);

		expect_times(times[i].name, &t, &times[i].computed);
		t = times_of(i, &given);
		expect_times(times[i].name, &t, &times[i].given);
	}
}

/* WARPSOCK_CONNECT=strict: connect() waits for the Reply */
Test(connect_plan, strict)
{
	struct config c = {
		.start = START, .grace = CONFIG_COMPUTED, .probe = CONFIG_COMPUTED, .strict = true
	};

	for (unsigned int i = 0; i < base_array_size(times); i++) {
		struct connect_times t = times_of(i, &c);

		cr_expect_eq(t.start_limit, times[i].computed.start_limit, "%s", times[i].name);
		cr_expect_eq(t.decide_limit,
			     times[i].initiator ? 0 : times[i].computed.decide_limit, "%s",
			     times[i].name);
	}
}
