/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a client goes about a connection.
 *
 * In mode auto a Request goes only where there is reason to expect an answer: plain servers take
 * it for input, and do all kinds of things. Where there is no reason, the peer's host is asked
 * beside the connection, if it may be.
 *
 *	role, mode	the peer's frame may take	the program is held up for
 *	client, on	WARPSOCK_START			50 ms or four round trips
 *	client, auto	50 ms or four round trips	as long
 *	client, auto,	WARPSOCK_START			50 ms or four round trips
 *	  surely DDP, or asked
 *	server, on	WARPSOCK_START			no time: its writes are held
 *	server, auto	WARPSOCK_START, from the first	the grace: then it may be plain
 *			byte of a Request on
 */
#include "preload/rules/connect_plan.h"

#include "base/clock.h"
#include "preload/rules/ask.h"
#include "preload/rules/choose.h"
#include "preload/rules/grace.h"
#include "preload/rules/host.h"
#include "preload/rules/probe.h"

/* --- may it ask, and how --- */

static struct connect_plan plain(enum config_reason reason)
{
	return (struct connect_plan){ .way = CONNECT_PLAIN, .reason = reason };
}

static struct connect_plan probe(enum connect_way way, const struct choice *choice)
{
	return (struct connect_plan){ .way = way, .provider = choice->provider };
}

/* No reason is known */
static struct connect_plan ask(const struct connect_facts *f, const struct choice *choice)
{
	switch (ask_begin(f->peer, f->len, choice->ask)) {
	case ASK_KNOWN_ASKED:
	case ASK_KNOWN_YES:
		return probe(CONNECT_ASK, choice);
	case ASK_KNOWN_NO:
		return plain(CONFIG_REASON_ASK_NO);
	case ASK_KNOWN_SILENT:
		return plain(CONFIG_REASON_ASK_SILENT);
	default:
		return plain(CONFIG_REASON_PEER_UNKNOWN);
	}
}

static struct connect_plan plan_auto(const struct connect_facts *f, const struct choice *choice)
{
	enum probe_answer known = probe_known(f->peer, f->len, base_now());

	if (known == PROBE_PLAIN)
		return plain(CONFIG_REASON_PEER_KNOWN_PLAIN);
	if (host_listens(f->peer, f->len))
		return probe(CONNECT_SURE, choice);
	if (f->here || known == PROBE_DDP || (choice->named && choice->ask != CONFIG_ASK_ALWAYS))
		return probe(CONNECT_PROBE, choice);
	return ask(f, choice);
}

struct connect_plan connect_plan_make(const struct connect_facts *f)
{
	struct choice choice = { .mode = f->opts->mode, .reason = CONFIG_REASON_MODE_OFF };

	if (!f->opts->mode_set)
		choose_client(f->peer, f->len, &choice);
	if (choice.mode == CONFIG_USE_TCP)
		return plain(choice.reason);
	if (f->barred && choice.mode == CONFIG_USE_AUTO)
		return plain(f->barred);
	if (f->barred)
		return (struct connect_plan){ .way = CONNECT_REFUSED, .reason = f->barred };
	if (choice.mode == CONFIG_USE_DDP)
		return probe(CONNECT_REQUEST, &choice);
	return plan_auto(f, &choice);
}

/* --- how long --- */

static bool is_sure(enum connect_way way)
{
	return way == CONNECT_SURE || way == CONNECT_ASK;
}

/* When the program may go on although the peer has not decided the connection */
static void decide_times(const struct config *c, const struct connect_times_facts *f,
			 struct connect_times *out)
{
	bool computed = c->grace == CONFIG_COMPUTED;

	if (f->device || f->mode == CONFIG_USE_TCP)
		return;
	if (!f->initiator && f->mode == CONFIG_USE_AUTO) {
		out->decide_limit = computed ? GRACE_LIMIT : c->grace;
		out->decide_rtts = computed ? GRACE_RTTS : 0;
		out->decide_max = computed ? GRACE_MAX : 0;
	} else if (f->initiator && (f->mode == CONFIG_USE_DDP || is_sure(f->way)) && !c->strict) {
		out->decide_limit = PROBE_LIMIT;
		out->decide_rtts = PROBE_RTTS;
	}
}

struct connect_times connect_plan_times(const struct config *c, const struct connect_times_facts *f)
{
	bool computed = c->probe == CONFIG_COMPUTED;
	struct connect_times out = { .start_limit = c->start };

	decide_times(c, f, &out);
	/* A listener of this process may be long in coming to it, and TCP's has all the time */
	if (f->initiator && f->hold && f->mode == CONFIG_USE_DDP) {
		out.start_limit = 0;
	} else if (f->way == CONNECT_PROBE && !f->hold) {
		out.start_limit = computed ? PROBE_LIMIT : c->probe;
		out.start_rtts = computed ? PROBE_RTTS : 0;
	}
	return out;
}
