/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a stream of a socket is made by: its options, and where its state is.
 */
#include "preload/sock/param.h"

#include "base/sockutil.h"
#include "preload/rules/grace.h"
#include "preload/sock/info.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/sock/urgent.h"

/* An edge has moved: of all that a byte passes, others cost this one question */
static void changed(void *ctx)
{
	struct sock *s = ctx;

	info_tell(s);
	sock_tell(s);
	if (others_have(s))
		others_tell(s);
}

void sock_param_init(struct stream_param *param, struct sock *s)
{
	param->dir = sock_config.dir;
	param->may_probe = single_flight_may_probe;
	param->probed = single_flight_probed;
	param->urgent = urgent_signal;
	param->changed = changed;
	param->ctx = s;
}

static void times_take(struct stream_param *param, const struct sock *s)
{
	struct connect_times_facts facts = {
		.way = s->way,
		.mode = s->opts.mode,
		.initiator = param->initiator,
		.hold = param->hold,
		.device = s->native,
	};
	struct connect_times times = connect_plan_times(&sock_config, &facts);

	param->start_limit = times.start_limit;
	param->start_rtts = times.start_rtts;
	param->decide_limit = times.decide_limit;
	param->decide_max = times.decide_max;
	param->decide_rtts = times.decide_rtts;
}

void sock_param_made(struct stream_param *param, const struct sock *s)
{
	param->opts = s->opts;
	param->probe = connect_way_is_probe(s->way);
	param->peer = &s->peer;
	param->peer_len = s->peer_len;
	param->name = &s->name;
	param->apart_limit = sock_config.probe == CONFIG_COMPUTED ? 0 : sock_config.probe;
	param->native = s->native;
	times_take(param, s);
}

uint64_t sock_grace(const struct sock *s)
{
	if (sock_config.grace != CONFIG_COMPUTED)
		return sock_config.grace;
	return grace_by(base_sock_rtt(stream_fd(s->stream)));
}
