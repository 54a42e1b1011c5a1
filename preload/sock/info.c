/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DDP_INFO: what a connection is like, or why it is not on DDP.
 *
 * A socket that is the kernel's has no entry in the table; preload/rules/plain.c remembers why.
 */
#include "preload/sock/info.h"

#include <netinet/in.h>
#include <string.h>

#include "base/bits.h"
#include "base/sockutil.h"
#include "preload/rules/plain.h"
#include "preload/sock/fallback.h"
#include "preload/sock/sock.h"

#define X(name, number, group, text, advice) \
	_Static_assert((int)DDP_REASON_##name == (number), "reason " #name);
CONFIG_REASON_LIST(X)
#undef X

bool info_plain(int fd, struct ddp_info *out)
{
	if (base_sock_number(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP)
		return false;
	memset(out, 0, sizeof(*out));
	out->mode = DDP_MODE_OFF;
	out->reason = plain_reason(fd);
	return true;
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

	s->stream->ops->info(s->stream, &i);
	if (i.start_error && __atomic_load_n(&s->late, __ATOMIC_ACQUIRE))
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

	return sock_role(s) == SOCK_STREAM_ON || s->fixed ? modes[s->mode] : DDP_MODE_RULES;
}

static void stream_info(struct sock *s, struct ddp_info *out)
{
	struct stream_info i;

	s->stream->ops->info(s->stream, &i);
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
		stream_info(s, out);
	else
		out->reason = before(s);
	if (__atomic_load_n(&s->late, __ATOMIC_ACQUIRE))
		out->reason = out->reason ? CONFIG_REASON_LATE_REQUEST : plain_reason(s->fd);
}
