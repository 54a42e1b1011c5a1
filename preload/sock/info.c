/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DDP_INFO: what a connection is like, or why it is not on DDP.
 *
 * A socket that is the kernel's has no entry in the table; preload/rules/plain.c remembers why.
 *
 * And the line that the log has for a connection, as soon as it is known what became of it.
 */
#include "preload/sock/info.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/rules/plain.h"
#include "preload/rules/report.h"
#include "preload/sock/provider.h"
#include "preload/sock/sock.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
#include "rnic/rnic_carrier.h"

#define X(name, number, group, text, advice) \
	_Static_assert((int)DDP_REASON_##name == (number), "reason " #name);
CONFIG_REASON_LIST(X)
#undef X

/* A user would wonder: the least time for which a Request has had no answer */
#define UNANSWERED_MS 250u

bool info_plain(int fd, struct ddp_info *out)
{
	if (base_sock_number(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP)
		return false;
	memset(out, 0, sizeof(*out));
	out->mode = DDP_MODE_OFF;
	out->reason = plain_reason(fd);
	return true;
}

enum config_reason sock_reason(int err)
{
	return config_reason_of_error(-err);
}

static struct ddp_fault fault_of(uint32_t fault)
{
	return (struct ddp_fault){
		.present = fault != 0,
		.layer = (__u8)(fault >> 12 & 0xF),
		.type = (__u8)(fault >> 8 & 0xF),
		.code = (__u8)fault,
	};
}

static enum config_reason end_of(const struct stream_info *i)
{
	static const enum config_reason broken[] = {
		[STREAM_TIMED_OUT] = CONFIG_REASON_TIMED_OUT,
		[STREAM_SHARER_DIED] = CONFIG_REASON_SHARER_DIED,
		[STREAM_DAMAGED] = CONFIG_REASON_STATE_DAMAGED,
		[STREAM_NO_MEMORY] = CONFIG_REASON_NO_MEMORY,
		[STREAM_FLOODED] = CONFIG_REASON_FLOODED,
	};

	if (i->start_error)
		return i->reached ? sock_reason(-(int)i->start_error) : CONFIG_REASON_UNREACHABLE;
	if (!i->broken && i->foreign)
		return CONFIG_REASON_NOT_OWNER;
	if (!i->broken)
		return i->over ? CONFIG_REASON_CLOSED : CONFIG_REASON_NONE;
	if (i->aborted)
		return CONFIG_REASON_PEER_ABORTED;
	if (i->broken < base_array_size(broken) && broken[i->broken])
		return broken[i->broken];
	if (i->cut)
		return CONFIG_REASON_PEER_CUT;
	if (i->fault)
		return i->fault_by_peer ? CONFIG_REASON_PEER_TERMINATED : CONFIG_REASON_FAULT;
	return CONFIG_REASON_PEER_RESET;
}

enum config_reason info_end(struct sock *s)
{
	struct stream_info i;

	stream_info(s->stream, &i);
	if (i.start_error && sock_start(s) == SOCK_START_SPOKEN)
		return CONFIG_REASON_LATE_REQUEST;
	return end_of(&i);
}

void info_keep(struct sock *s)
{
	plain_note(s->fd, info_end(s));
}

/* What was kept of a connection, or an attempt, that this socket had before */
static enum config_reason before(const struct sock *s)
{
	enum config_reason reason = plain_reason(s->fd);

	return reason == CONFIG_REASON_RULE_NONE ? CONFIG_REASON_NONE : reason;
}

static __u32 mode_of(const struct sock *s)
{
	static const __u32 modes[] = {
		[CONFIG_USE_TCP] = DDP_MODE_OFF,
		[CONFIG_USE_DDP] = DDP_MODE_ON,
		[CONFIG_USE_AUTO] = DDP_MODE_AUTO,
	};

	return sock_role(s) == SOCK_STREAM_ON || s->opts.mode_set ? modes[s->opts.mode]
								  : DDP_MODE_RULES;
}

static void connection_info(struct sock *s, struct ddp_info *out)
{
	struct stream_info i;

	stream_info(s->stream, &i);
	strncpy(out->provider, i.provider, sizeof(out->provider) - 1);
	out->connected = i.open && !i.broken;
	out->reason = end_of(&i);
	if (!out->reason)
		out->reason = s->forgone;
	out->features = i.features;
	out->mpa_rev = i.mpa_rev;
	out->crc = i.crc;
	out->tx_markers = i.tx_markers;
	out->rx_markers = i.rx_markers;
	out->mulpdu = i.mulpdu;
	out->ring = i.ring;
	out->ird = i.ird;
	out->ord = i.ord;
	*(i.fault_by_peer ? &out->peer : &out->local) = fault_of(i.fault);
	out->tx_octets = i.tx_octets;
	out->rx_octets = i.rx_octets;
	out->tx_fpdus = i.tx_fpdus;
	out->rx_fpdus = i.rx_fpdus;
	out->tx_messages = i.messages_sent;
	out->rx_messages = i.messages_received;
	out->operations = i.jobs;
}

void info_get(struct sock *s, struct ddp_info *out)
{
	memset(out, 0, sizeof(*out));
	out->mode = mode_of(s);
	if (sock_role(s) == SOCK_STREAM_ON)
		connection_info(s, out);
	else
		out->reason = before(s);
	if (sock_start(s) == SOCK_START_SPOKEN)
		out->reason = out->reason ? CONFIG_REASON_LATE_REQUEST : plain_reason(s->fd);
}

/* --- the line in the log --- */

/* By a call that a filter may forbid (preload/calls/raw.c) */
static bool peer_ask(int fd, struct sockaddr_storage *out, socklen_t *len)
{
	return syscall(SYS_getpeername, fd, out, len) < 0;
}

/* NULL: nobody knows. A device's connection has no socket of the kernel's that would tell */
static const struct sockaddr *peer_find(struct sock *s, struct sockaddr_storage *out)
{
	const struct rnic_native_ops *ops = provider_ops(s);
	struct rnic_native *native = base_once(s->native);
	socklen_t len = sizeof(*out);

	if (ops && native)
		return ops->name(native, true, out) ? NULL : (struct sockaddr *)out;
	if (s->peer_len)
		return (struct sockaddr *)&s->peer;
	return peer_ask(s->fd, out, &len) ? NULL : (struct sockaddr *)out;
}

static void tell_up(struct sock *s, const struct stream_info *i)
{
	struct sockaddr_storage peer;

	if (base_log_on(BASE_LOG_INFO))
		report_up(peer_find(s, &peer), s->accepted, i);
}

/* In mode auto it is plain TCP now, which has a line of its own; and TCP may fail without DDP */
static void tell_failed(struct sock *s, enum config_reason reason)
{
	struct sockaddr_storage room;
	const struct sockaddr *peer;

	if (s->opts.mode != CONFIG_USE_DDP || reason == CONFIG_REASON_UNREACHABLE)
		return;
	peer = peer_find(s, &room);
	if (peer)
		report_failed_at(peer, reason);
	else
		report_failed(s->fd, reason);
}

void info_tell(struct sock *s)
{
	struct stream_info i;

	if (__atomic_load_n(&s->said, __ATOMIC_RELAXED) || !s->stream)
		return;
	stream_info(s->stream, &i);
	if ((!i.open && !i.start_error) || __atomic_exchange_n(&s->said, true, __ATOMIC_RELAXED))
		return;
	if (i.open)
		tell_up(s, &i);
	else
		tell_failed(s, info_end(s));
}

/* The Request went this long ago: a peer that can answer has, but for one far away */
static bool unanswered(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return !libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_last_data_sent >= base_max(UNANSWERED_MS, 4 * info.tcpi_rtt / 1000);
}

/* Bytes that were written before the Reply are delivered behind close() */
static bool holds_bytes(struct sock *s)
{
	const void *p;
	size_t urgent;

	return s->stream && stream_held(s->stream, &p, &urgent);
}

/* The program has given up a connection that TCP has, and that the peer has not answered */
void info_tell_close(struct sock *s)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	info_tell(s);
	if (__atomic_load_n(&s->said, __ATOMIC_RELAXED) || s->accepted || holds_bytes(s) ||
	    peer_ask(s->fd, &peer, &len) || !unanswered(s->fd))
		return;
	if (!__atomic_exchange_n(&s->said, true, __ATOMIC_RELAXED))
		tell_failed(s, CONFIG_REASON_PROBE_TIMEOUT);
}

/* --- the report --- */

static void report(struct sock *s)
{
	enum config_reason why = CONFIG_REASON_NONE;
	struct stream_stats stats;

	stream_stats(s->stream, &stats);
	if (stats.failed)
		why = info_end(s);
	if (stats.last)
		info_tell(s);
	report_stream(&stats, why);
}

void sock_report(struct sock *s)
{
	if (__atomic_load_n(&s->stream, __ATOMIC_ACQUIRE) &&
	    !__atomic_exchange_n(&s->reported, true, __ATOMIC_RELAXED))
		report(s);
}

/* What has ended in a process that this one was forked from is that one's */
static bool is_reported_here(const struct sock *s)
{
	unsigned int ended = __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE);

	return !s->executed && (!ended || ended == fork_gen + 1);
}

static void report_object(void *object)
{
	struct sock *s = object;

	if (!fdtab_hold_living(&s->ent))
		return;
	if (is_reported_here(s))
		sock_report(s);
	sock_put(s);
}

void sock_report_all(void)
{
	sock_each(report_object);
}
