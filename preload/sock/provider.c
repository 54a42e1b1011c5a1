/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections that a device carries.
 *
 * The program's socket is never connected then, and the kernel knows nothing of its peer: it keeps
 * the options and the number. Where no device serves, the software provider does, over the
 * socket itself; the reason is in DDP_INFO and in the report. Where nobody has named a provider,
 * the route decides, and that it leads over no device is no reason to tell of.
 */
#include "preload/sock/provider.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/guard/sandbox.h"
#include "preload/rules/host.h"
#include "preload/rules/report.h"
#include "preload/sock/sock.h"
#include "rnic/rnic.h"
#include "rnic/rnic_carrier.h"
#include "rnic/rnic_stream.h"

static const struct rnic_native_ops *ops_of(const struct rnic_ops *rnic)
{
	return rnic && rnic->stream ? rnic->stream->native : NULL;
}

const struct rnic_native_ops *provider_ops(const struct sock *s)
{
	return s->opts.provider[0] ? ops_of(rnic_find(s->opts.provider)) : NULL;
}

const struct rnic_ops *provider_of(const struct sock *s)
{
	const struct rnic_ops *rnic = NULL;

	if (s->opts.provider[0]) {
		rnic = rnic_find(s->opts.provider);
		return ops_of(rnic) ? rnic : NULL;
	}
	for (unsigned int i = 0; (rnic = rnic_at(i)); i++)
		if (ops_of(rnic))
			break;
	return rnic;
}

void provider_choose(struct sock *s, const char *provider)
{
	memcpy(s->opts.provider, provider, strlen(provider) + 1);
}

void provider_wish(struct sock *s, const char *provider)
{
	if (provider && !s->opts.provider_set)
		provider_choose(s, strcmp(provider, "auto") ? provider : "");
}

void provider_forgo(struct sock *s, enum config_reason reason)
{
	base_info("descriptor %d: provider %s: %s", s->fd, s->opts.provider,
		  config_reason_text(reason));
	report_reason(reason, 1);
	s->forgone = reason;
	provider_choose(s, "soft");
}

/* A port of the program's own is the socket's, and a device's connection cannot have it */
static bool is_bound(const struct sock *s)
{
	return base_address_port(&s->name);
}

enum config_reason provider_reason(int err)
{
	return err == -EXDEV ? CONFIG_REASON_FORKED : CONFIG_REASON_PROVIDER_UNAVAILABLE;
}

static bool used; /* atomic */

void provider_use(void)
{
	__atomic_store_n(&used, true, __ATOMIC_RELAXED);
}

bool provider_is_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

static int reach(struct sock *s, const struct rnic_native_ops *ops, const struct sockaddr *peer,
		 socklen_t len)
{
	bool by_route = !s->opts.provider[0];
	struct rnic_native *native;
	int err;

	if (is_bound(s))
		return -ENODEV;
	if (__atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE))
		return by_route ? -ENODEV
				: -EPERM; /* libraries of others make calls of their own */
	err = ops->reach(peer, len, &native);
	if (err)
		return err;
	/* To an address of this host no route leads over a device, though one may have it */
	if (by_route && host_is_local(peer, len)) {
		ops->destroy(native);
		return -ENODEV;
	}
	s->native = native;
	provider_use();
	return 0;
}

int provider_reach(struct sock *s, const struct sockaddr *peer, socklen_t len)
{
	bool by_route = !s->opts.provider[0];
	const struct rnic_ops *rnic = provider_of(s);
	int err;

	if (!rnic)
		return -EOPNOTSUPP;
	err = reach(s, ops_of(rnic), peer, len);
	if (!err && by_route)
		provider_choose(s, rnic->name);
	if (!err)
		return 0;
	base_debug("descriptor %d: no device leads there: %s", s->fd, strerror(-err));
	if (!by_route || err != -ENODEV)
		provider_forgo(s, provider_reason(err));
	return -ENODEV;
}

void provider_drop(struct sock *s)
{
	provider_ops(s)->destroy(s->native);
	s->native = NULL;
	provider_forgo(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
}

void provider_refuse(const struct sock *s, struct rnic_native *native)
{
	if (native)
		provider_ops(s)->destroy(native);
}

void provider_keepalive(const struct sock *s)
{
	bool on = base_sock_number(s->fd, SOL_SOCKET, SO_KEEPALIVE) > 0;
	int idle = on ? base_sock_number(s->fd, IPPROTO_TCP, TCP_KEEPIDLE) : 0;
	const struct rnic_native_ops *ops = provider_ops(s);
	struct rnic_native *native = base_once(s->native);

	/* Another thread may find that the device came to nothing */
	if (ops && native)
		ops->keepalive(native, (uint64_t)base_max(idle, 0) * BASE_NS_PER_S);
}
