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
 * Before that, the host of a peer of which nothing is known is asked beside the connection
 * (preload/rules/ask.h), and its answer is waited for here: from the end of TCP's handshake, for as
 * long as one more takes. It had all of the first one's time, for the question went with the SYN.
 *
 * Who asks is seen to by its program, which may do nothing but wait for one of the others. Then
 * the worker thread does it.
 */
#include "preload/sock/single_flight.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/rules/ask.h"
#include "preload/rules/probe.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"

#define LOOK_MIN BASE_NS_PER_MS
#define LOOK_PART 8

static int waive(struct sock *s, enum config_reason reason)
{
	__atomic_store_n(&s->flight.waived, (uint32_t)reason, __ATOMIC_RELEASE);
	return -ENOMSG;
}

/* Another one asks */
static int wait_for(struct sock *s, uint64_t limit, uint64_t now, uint64_t *when)
{
	struct single_flight *t = &s->flight;
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

/* --- the peer's host --- */

/* A SYN that was lost may have taken the question with it */
static bool syn_was_lost(const struct sock *s)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return !sock_on_device(s) && !libc.getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_total_retrans;
}

static void hear_begin(struct sock *s, uint64_t now)
{
	const struct sockaddr *peer = (struct sockaddr *)&s->peer;
	struct single_flight *t = &s->flight;
	uint64_t rtt = base_sock_rtt(s->fd);

	t->heard = now;
	t->timeout = s->native ? ASK_WAIT_DEVICE : base_max(ASK_WAIT, rtt);
	if (!syn_was_lost(s))
		return;
	ask_repeat(peer, s->peer_len);
	t->timeout += rtt;
}

static int hear_wait(struct sock *s, uint64_t now, uint64_t *when)
{
	const struct single_flight *t = &s->flight;
	uint64_t end = base_deadline(t->heard, t->timeout);

	if (base_deadline_passed(end, now)) {
		ask_expire((struct sockaddr *)&s->peer, s->peer_len);
		return waive(s, CONFIG_REASON_ASK_SILENT);
	}
	waive(s, CONFIG_REASON_PEER_NOT_MPA);
	*when = base_min(end, now + base_max(ASK_LOOK, (now - t->heard) / LOOK_PART));
	return -EAGAIN;
}

/* 0: it has a listener for DDP, or who waited for another one knows so by now */
static int hear(struct sock *s, uint64_t now, uint64_t *when)
{
	const struct sockaddr *peer = (struct sockaddr *)&s->peer;

	if (probe_known(peer, s->peer_len, now) == PROBE_DDP)
		return 0;
	if (!s->flight.heard)
		hear_begin(s, now);
	switch (ask_look(peer, s->peer_len)) {
	case ASK_KNOWN_YES:
		return 0;
	case ASK_KNOWN_NO:
		return waive(s, CONFIG_REASON_ASK_NO);
	case ASK_KNOWN_SILENT:
		return waive(s, CONFIG_REASON_ASK_SILENT);
	default:
		return hear_wait(s, now, when);
	}
}

/* --- turns --- */

/* Before its peer has had a Request. A device's connection does not exist before that */
static bool peer_has_spoken(const struct sock *s)
{
	return !s->native && base_sock_ready(s->fd, POLLIN) & POLLIN;
}

static int may_probe(struct sock *s, uint64_t limit, uint64_t now, uint64_t *when)
{
	/* The program had connected, and called nothing while its server began to speak plainly */
	if (peer_has_spoken(s))
		return waive(s, CONFIG_REASON_PEER_NOT_MPA);
	/* It may be asked until its time is over; who dies asking is forgotten then */
	switch (probe_flight((struct sockaddr *)&s->peer, s->peer_len, limit, now)) {
	case PROBE_PLAIN:
		return waive(s, CONFIG_REASON_PEER_KNOWN_PLAIN);
	case PROBE_ASKED:
		return wait_for(s, limit, now, when);
	case PROBE_UNKNOWN:
		s->flight.asker = getpid();
		__atomic_store_n(&s->flight.asks, true, __ATOMIC_RELEASE);
		break;
	case PROBE_DDP:
		s->flight.knew = true;
		break;
	}
	waive(s, CONFIG_REASON_NONE);
	return 0;
}

int single_flight_may_probe(void *sock, uint64_t limit, uint64_t *when)
{
	struct sock *s = sock;
	uint64_t now = base_now();
	int err = 0;

	/* It is the one who asks, over a device until now */
	if (__atomic_load_n(&s->flight.asks, __ATOMIC_ACQUIRE))
		return 0;
	if (s->way == CONNECT_ASK)
		err = hear(s, now, when);
	return err ? err : may_probe(s, limit, now, when);
}

void single_flight_probed(void *sock)
{
	struct sock *s = sock;
	uint64_t life = s->way == CONNECT_ASK ? ASK_WRONG_LIFE : sock_config.forget_plain;

	__atomic_store_n(&s->flight.asks, false, __ATOMIC_RELEASE);
	/* A server that is busy, or begins anew, speaks DDP afterwards as before */
	if (s->flight.knew)
		probe_doubt((struct sockaddr *)&s->peer, s->peer_len, base_now());
	else
		probe_note((struct sockaddr *)&s->peer, s->peer_len, PROBE_PLAIN, life, base_now());
}

void single_flight_give_up(struct sock *s)
{
	if (__atomic_exchange_n(&s->flight.asks, false, __ATOMIC_ACQ_REL) &&
	    s->flight.asker == getpid())
		probe_flight_end((struct sockaddr *)&s->peer, s->peer_len, base_now());
}

enum config_reason single_flight_waived(const struct sock *s)
{
	return (enum config_reason)__atomic_load_n(&s->flight.waived, __ATOMIC_ACQUIRE);
}

void sock_settle(struct sock *s)
{
	enum sock_start was = sock_start(s);
	struct stream_stats stats;

	if (was != SOCK_START_CONNECTING && was != SOCK_START_UNDECIDED)
		return;
	stream_stats(s->stream, &stats);
	if (!sock_state_leave(&sock_start_moves, &s->start, was,
			      stats.opened ? SOCK_START_OPEN : SOCK_START_NEW) ||
	    was == SOCK_START_UNDECIDED)
		return;
	if (!stats.opened) {
		single_flight_give_up(s);
		return;
	}
	__atomic_store_n(&s->flight.asks, false, __ATOMIC_RELEASE);
	probe_note((struct sockaddr *)&s->peer, s->peer_len, PROBE_DDP, sock_config.forget_ddp,
		   base_now());
}
