/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a stream of a socket is made by: the process's options, what its program or the rules wish,
 * and how long each party of its start-up may take.
 *
 *	role, mode	the peer's frame may take	the program is held up for
 *	client, on	WARPSOCK_START			50 ms or four round trips
 *	client, auto	50 ms or four round trips	as long
 *	client, auto,	WARPSOCK_START			50 ms or four round trips
 *	  surely DDP, or asked
 *	server, on	WARPSOCK_START			no time: its writes are held
 *	server, auto	WARPSOCK_START, from the first	the grace: then it may be plain
 *			octet of a Request on
 */
#include "preload/sock/param.h"

#include "preload/rules/probe.h"
#include "preload/sock/grace.h"
#include "preload/sock/sock.h"
#include "preload/sock/urgent.h"

static void probe_limit(struct stream_param *param)
{
	bool computed = sock_config.probe == CONFIG_COMPUTED;

	param->start_limit = computed ? PROBE_LIMIT : sock_config.probe;
	param->start_rtts = computed ? PROBE_RTTS : 0;
}

void sock_param_init(struct stream_param *param, struct sock *s)
{
	param->dir = sock_config.dir;
	param->may_probe = single_flight_may_probe;
	param->probed = single_flight_probed;
	param->urgent = urgent_signal;
	param->ctx = s;
}

/* When the program may go on although the peer has not decided the connection */
static void decide_limit(struct stream_param *param, const struct sock *s)
{
	bool computed = sock_config.grace == CONFIG_COMPUTED;

	if (s->native || s->opts.mode == CONFIG_USE_TCP)
		return;
	if (!param->initiator && s->opts.mode == CONFIG_USE_AUTO) {
		param->decide_limit = computed ? GRACE_LIMIT : sock_config.grace;
		param->decide_rtts = computed ? GRACE_RTTS : 0;
		param->decide_max = computed ? GRACE_MAX : 0;
	} else if (param->initiator && (s->opts.mode == CONFIG_USE_DDP || s->sure) &&
		   !sock_config.strict) {
		param->decide_limit = PROBE_LIMIT;
		param->decide_rtts = PROBE_RTTS;
	}
}

void sock_param_made(struct stream_param *param, const struct sock *s)
{
	bool only = s->opts.mode == CONFIG_USE_DDP;

	param->opts = s->opts;
	param->probe = s->probing;
	param->peer = &s->peer;
	param->peer_len = s->peer_len;
	param->name = &s->name;
	param->start_limit = sock_config.start;
	param->apart_limit = sock_config.probe == CONFIG_COMPUTED ? 0 : sock_config.probe;
	param->native = s->native;
	decide_limit(param, s);
	/* A listener of this process may be long in coming to it, and TCP's has all the time */
	if (param->initiator && param->hold && only)
		param->start_limit = 0;
	else if (s->probing && !param->hold && !s->sure)
		probe_limit(param);
}
