/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen() where a device may listen, too.
 *
 * Where the device leaves the kernel its port (RoCE, InfiniBand) the two listen beside each other,
 * and accept() takes from them in turn. Where it does not (iWARP) the device is alone, if that is
 * wished for, and the program's socket stays bound and unheard. Where a listener is waited for, the
 * proxy stands for it (preload/sock/listener_proxy.c).
 */
#include "preload/device/device.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "preload/guard/sandbox.h"
#include "preload/rules/choose.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/provider.h"
#include "preload/table/libc.h"
#include "rnic/rnic.h"
#include "rnic/rnic_carrier.h"
#include "rnic/rnic_stream.h"

static bool is_wanted(struct sock *s, const struct sockaddr *name, socklen_t len)
{
	struct choice choice;

	if (s->opts.mode_set)
		return s->opts.mode != CONFIG_USE_TCP;
	choose_serves(name, len, &choice);
	provider_wish(s, choice.provider);
	return choice.mode != CONFIG_USE_TCP;
}

static socklen_t own_name(const struct sock *s, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	return libc.getsockname(s->fd, (struct sockaddr *)out, &len) ? 0 : len;
}

/* enum rnic_listens; 0: the kernel alone, as where nobody has named a device that takes its port */
static unsigned int ways(struct sock *s, const struct sockaddr *name, socklen_t len)
{
	bool by_route = !s->opts.provider[0];
	const struct rnic_ops *rnic = provider_of(s);
	int how;

	if (!rnic)
		return 0;
	/* The libraries of others make calls of their own */
	how = __atomic_load_n(&sandbox_on, __ATOMIC_ACQUIRE)
		      ? -EPERM
		      : rnic->stream->native->listens(name, len);
	if (how < 0 && !by_route)
		provider_forgo(s, provider_reason(how));
	if (how < 0)
		return 0;
	if (by_route)
		how &= RNIC_LISTENS_BESIDE;
	return how & RNIC_LISTENS_ALONE ? RNIC_LISTENS_ALONE : (unsigned int)how;
}

static bool is_only_six(const struct sock *s)
{
	return base_sock_number(s->fd, IPPROTO_IPV6, IPV6_V6ONLY) > 0;
}

/* At the socket's name, which has a port by now */
static int open_at(struct sock *s, int backlog)
{
	struct sockaddr_storage name;
	socklen_t len = own_name(s, &name);
	struct rnic_native_address at = { (struct sockaddr *)&name, len, backlog,
					  name.ss_family == AF_INET6 && is_only_six(s),
					  s->proxy.beside };
	struct rnic_native_listener *listener;
	int err = -EADDRNOTAVAIL;

	/* One that the kernel is to choose is the socket's */
	if (len && base_address_port(&name))
		err = provider_ops(s)->listen(&at, &listener);
	if (!err) {
		provider_use();
		err = listener_proxy_open(s, listener);
		if (err)
			provider_ops(s)->unlisten(listener);
	}
	if (err)
		base_debug("descriptor %d: no device listens there: %s", s->fd, strerror(-err));
	return err;
}

/* The device's own socket is bound to the same port */
static void port_share(int fd)
{
	int on = 1;

	libc.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

/* In the kernel's place: 0 */
static int alone(struct sock *s, int fd, int backlog)
{
	int err;

	port_share(fd);
	err = open_at(s, backlog);
	if (err)
		provider_forgo(s, provider_reason(err));
	return err;
}

static void beside(struct sock *s, int backlog)
{
	bool by_route = !s->opts.provider[0];

	if (by_route)
		provider_choose(s, provider_of(s)->name);
	s->proxy.beside = true;
	if (!open_at(s, backlog))
		return;
	s->proxy.beside = false;
	/* Another listener may have the device's port, and that nobody has asked for */
	if (by_route)
		provider_choose(s, "");
	else
		provider_forgo(s, CONFIG_REASON_PROVIDER_UNAVAILABLE);
}

long device_listen(struct sock *s, int fd, int backlog)
{
	struct sockaddr_storage name;
	unsigned int how = 0;
	socklen_t len;
	long err;

	/* It is connected, though not by the kernel */
	if (sock_on_device(s))
		return -EINVAL;
	if (listener_proxy_listens(s) && !s->proxy.beside)
		return 0;
	len = sock_role(s) == SOCK_NEW ? own_name(s, &name) : 0;
	if (len && is_wanted(s, (struct sockaddr *)&name, len))
		how = ways(s, (struct sockaddr *)&name, len);
	if (how == RNIC_LISTENS_ALONE && !alone(s, fd, backlog))
		return 0;
	err = libc_try(libc.listen(fd, backlog));
	if (!err && how == RNIC_LISTENS_BESIDE)
		beside(s, backlog);
	return err;
}
