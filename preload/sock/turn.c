/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who asks a peer that nobody knows, when several connect to it at once.
 *
 * The first whose TCP connection is there asks, and says so in the cache (preload/rules/probe.c).
 * Those that come while it is asking wait for what comes of it, not longer than they would wait for
 * an answer of their own. So a plain peer is asked once however many connect, and a pool of
 * connections to a peer with DDP is on DDP. They look again after a millisecond, or after an eighth
 * of the time that they have waited for: nobody has to tell them, and it is the same for threads,
 * for sockets of one thread and for processes.
 *
 * Who asks is seen to by its program, which may do nothing but wait for one of the others. Then
 * the attendant does it.
 */
#include "preload/sock/turn.h"

#include <errno.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "preload/rules/probe.h"
#include "preload/sock/attend.h"
#include "preload/sock/sock.h"

#define LOOK_MIN BASE_NS_PER_MS
#define LOOK_PART 8

static int waive(struct sock *s, enum config_reason reason)
{
	__atomic_store_n(&s->turn.waived, (uint32_t)reason, __ATOMIC_RELEASE);
	return -ENOMSG;
}

/* Another one asks */
static int wait_for(struct sock *s, uint64_t limit, uint64_t now, uint64_t *when)
{
	struct turn *t = &s->turn;
	bool first = !t->since;

	if (first)
		t->since = now;
	else
		__atomic_store_n(&t->waits, true, __ATOMIC_RELEASE);
	limit = base_deadline(t->since, limit);
	if (base_deadline_passed(limit, now))
		return waive(s, CONFIG_REASON_PROBE_TIMEOUT);
	/* What it is if the peer speaks before */
	waive(s, CONFIG_REASON_PEER_NOT_MPA);
	*when = base_min(limit, now + base_max(LOOK_MIN, (now - t->since) / LOOK_PART));
	return -EAGAIN;
}

int turn_may_probe(void *sock, uint64_t limit, uint64_t *when)
{
	struct sock *s = sock;
	uint64_t now = base_now();

	/* It is the one who asks, over a device until now */
	if (__atomic_load_n(&s->turn.asks, __ATOMIC_ACQUIRE))
		return 0;
	/* It may be asked until its time is over; who dies asking is forgotten then */
	switch (probe_turn((struct sockaddr *)&s->peer, s->peer_len, limit, now)) {
	case PROBE_PLAIN:
		return waive(s, CONFIG_REASON_PEER_KNOWN_PLAIN);
	case PROBE_ASKED:
		return wait_for(s, limit, now, when);
	case PROBE_UNKNOWN:
		__atomic_store_n(&s->turn.asks, true, __ATOMIC_RELEASE);
		break;
	case PROBE_DDP:
		break;
	}
	waive(s, CONFIG_REASON_NONE);
	return 0;
}

void turn_probed(void *sock)
{
	struct sock *s = sock;

	__atomic_store_n(&s->turn.asks, false, __ATOMIC_RELEASE);
	probe_note((struct sockaddr *)&s->peer, s->peer_len, PROBE_PLAIN, sock_config.forget_plain,
		   base_now());
}

static void attend_asking(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_of_entry(ent);

	if (sock_stream_of_entry(ent) && __atomic_load_n(&s->turn.asks, __ATOMIC_ACQUIRE))
		attend_starting(s);
}

void turn_help(struct sock *s)
{
	if (__atomic_load_n(&s->turn.waits, __ATOMIC_ACQUIRE) &&
	    !__atomic_exchange_n(&s->turn.helped, true, __ATOMIC_ACQ_REL))
		fdtab_each(attend_asking, NULL);
}

enum config_reason turn_waived(const struct sock *s)
{
	return (enum config_reason)__atomic_load_n(&s->turn.waived, __ATOMIC_ACQUIRE);
}
