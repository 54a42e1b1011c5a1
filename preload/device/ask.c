/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a socket whose connection, or whose listener, is a device's answers about itself.
 *
 * The kernel's socket below was never connected and does not listen, so the kernel's answers are
 * those of a new one. Here are those of the calls by which programs find out what they have.
 */
#include "preload/device/device.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/sockutil.h"
#include "preload/sock/listener_proxy.h"
#include "preload/sock/provider.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "rnic/rnic_carrier.h"

#define HEADERS_FOUR 40u /* of IPv4 and TCP */
#define HEADERS_SIX 60u

/* --- what TCP would call it --- */

static int stream_state(struct sock *s)
{
	uint8_t shut = __atomic_load_n(&s->shut, __ATOMIC_RELAXED);
	unsigned int levels = stream_levels(s->stream, NULL);

	if (levels & STREAM_HUP)
		return TCP_CLOSE;
	if (!(levels & STREAM_STARTED))
		return s->accepted ? TCP_ESTABLISHED : TCP_SYN_SENT;
	if (levels & STREAM_RDHUP)
		return TCP_CLOSE_WAIT;
	return shut & (SHUT_WR + 1) ? TCP_FIN_WAIT2 : TCP_ESTABLISHED;
}

/* Servers ask who has come before they fork: that is no answer to the peer yet */
static bool waits_for_answer(const struct sock *s)
{
	return s->accepted && !(stream_levels(s->stream, NULL) & STREAM_STARTED);
}

/* 0: that the kernel knows */
static int state_of(struct sock *s)
{
	if (sock_on_device(s) && !waits_for_answer(s))
		sock_progress(s);
	if (sock_on_device(s))
		return stream_state(s);
	return listener_proxy_listens(s) ? TCP_LISTEN : 0;
}

/* The rest of it is the socket's, which has moved nothing */
static long tcp_info_get(struct sock *s, void *value, socklen_t *len)
{
	uint8_t state = (uint8_t)state_of(s);
	long err;

	if (!state)
		return CALL_THEIRS;
	err = libc_try(libc.getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, value, len));
	if (!err && *len > offsetof(struct tcp_info, tcpi_state))
		((struct tcp_info *)value)->tcpi_state = state;
	return err;
}

static long listens_get(const struct sock *s, void *value, socklen_t *len)
{
	long err = libc_try(libc.getsockopt(s->fd, SOL_SOCKET, SO_ACCEPTCONN, value, len));
	int listens = 1;

	if (!err)
		memcpy(value, &listens, base_min((size_t)*len, sizeof(listens)));
	return err;
}

/* --- its addresses --- */

/* As the device has it; false: there is none */
static bool carried_name(const struct sock *s, bool peer, struct sockaddr_storage *out)
{
	const struct rnic_native_ops *ops = provider_ops(s);
	struct rnic_native *native = base_once(s->native);

	/* Another thread may find that the device came to nothing */
	return ops && native && !ops->name(native, peer, out);
}

/* A socket of IPv6 shows its IPv4 addresses mapped */
static void name_map(const struct sock *s, struct sockaddr_storage *name)
{
	if (base_address_is_four(name) &&
	    base_sock_number(s->fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6)
		base_address_map(name);
}

/* --- options --- */

/* As the kernel, to which a longer buffer than the name is wrong */
static long peer_get(const struct sock *s, void *value, socklen_t *len)
{
	struct sockaddr_storage name;

	if (!carried_name(s, true, &name))
		return -ENOTCONN;
	if (user_iov_wild(len, sizeof(*len)))
		return -EFAULT;
	name_map(s, &name);
	if (*len > base_address_len(&name))
		return -EINVAL;
	if (*len && user_iov_wild(value, *len))
		return -EFAULT;
	memcpy(value, &name, *len);
	return 0;
}

/* What the kernel says of a socket that is connected to @peer: by the device's route */
static long route_get(const struct sockaddr_storage *peer, int level, int name, void *value,
		      socklen_t *len)
{
	int fd = libc.socket(peer->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	long err;

	if (fd < 0)
		return CALL_THEIRS;
	err = libc_try(libc.connect(fd, (const struct sockaddr *)peer, base_address_len(peer)));
	if (!err)
		err = libc_try(libc.getsockopt(fd, level, name, value, len));
	libc.close(fd);
	return err;
}

static long mtu_get(const struct sock *s, int level, int name, void *value, socklen_t *len)
{
	struct sockaddr_storage peer;

	if (!carried_name(s, true, &peer))
		return -ENOTCONN;
	name_map(s, &peer);
	return route_get(&peer, level, name, value, len);
}

/* What a segment would hold there, unless the program has said how long one may be */
static long segment_get(const struct sock *s, void *value, socklen_t *len)
{
	long err = libc_try(libc.getsockopt(s->fd, IPPROTO_TCP, TCP_MAXSEG, value, len));
	unsigned int own = 0, mtu;
	socklen_t size = sizeof(mtu);
	struct sockaddr_storage peer;
	bool four;

	if (err || *len < sizeof(own) || !carried_name(s, true, &peer))
		return err;
	memcpy(&own, value, sizeof(own));
	four = base_address_is_four(&peer);
	if (own != TCP_MSS_DEFAULT || route_get(&peer, four ? IPPROTO_IP : IPPROTO_IPV6,
						four ? IP_MTU : IPV6_MTU, &mtu, &size))
		return 0;
	own = mtu - (four ? HEADERS_FOUR : HEADERS_SIX);
	memcpy(value, &own, sizeof(own));
	return 0;
}

/* Of a connection; CALL_THEIRS: the kernel knows */
static long carried_get(struct sock *s, int level, int name, void *value, socklen_t *len)
{
	if (level == SOL_SOCKET && name == SO_PEERNAME)
		return peer_get(s, value, len);
	if ((level == IPPROTO_IP && name == IP_MTU) || (level == IPPROTO_IPV6 && name == IPV6_MTU))
		return mtu_get(s, level, name, value, len);
	if (level == IPPROTO_TCP && name == TCP_MAXSEG)
		return segment_get(s, value, len);
	return CALL_THEIRS;
}

long device_option(struct sock *s, int level, int name, void *value, socklen_t *len)
{
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return tcp_info_get(s, value, len);
	if (level == SOL_SOCKET && name == SO_ACCEPTCONN && listener_proxy_listens(s))
		return listens_get(s, value, len);
	return sock_on_device(s) ? carried_get(s, level, name, value, len) : CALL_THEIRS;
}

/* The socket keeps it, and the device's connection does it */
long device_option_set(struct sock *s, int level, int name, const void *value, socklen_t len)
{
	bool keeps = (level == SOL_SOCKET && name == SO_KEEPALIVE) ||
		     (level == IPPROTO_TCP && name == TCP_KEEPIDLE);
	long err;

	if (!keeps || !sock_on_device(s))
		return CALL_THEIRS;
	err = libc_try(libc.setsockopt(s->fd, level, name, value, len));
	if (err)
		return err;
	provider_keepalive(s);
	sock_progress(s);
	return 0;
}

/* --- getsockname(), getpeername() --- */

long device_name_give(const struct sock *s, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage name;
	socklen_t own;
	size_t n;

	if (!carried_name(s, peer, &name))
		return -ENOTCONN;
	if (user_iov_wild(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	name_map(s, &name);
	own = base_address_len(&name);
	n = base_min(*len, own);
	if (n && user_iov_wild(addr, n))
		return -EFAULT;
	memcpy(addr, &name, n);
	*len = own;
	return 0;
}

/* Before the peer has answered, and when both ends are through, there is none */
static bool has_peer(struct sock *s)
{
	int state = state_of(s);

	return state != TCP_SYN_SENT && state != TCP_CLOSE;
}

long device_name_tell(struct sock *s, bool peer, struct sockaddr *addr, socklen_t *len)
{
	if (sock_on_device(s) && peer && !has_peer(s))
		return -ENOTCONN;
	/* It may have begun anew by software */
	return sock_on_device(s) ? device_name_give(s, peer, addr, len) : CALL_THEIRS;
}

/* --- bind() --- */

/*
 * A connected socket has its address: EINVAL. The kernel looks at the argument first, which a
 * socket that nobody has tells
 */
static long bind_refuse(const struct sock *s, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage any = { 0 };
	int domain = base_sock_number(s->fd, SOL_SOCKET, SO_DOMAIN), fd;
	long err;

	if (len > sizeof(any))
		return -EINVAL;
	if (user_iov_wild(addr, len))
		return -EFAULT;
	memcpy(&any, addr, len);
	base_address_set_port(&any, 0); /* another's would be in the way */
	fd = libc.socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -EINVAL;
	err = libc_try(libc.bind(fd, (struct sockaddr *)&any, len));
	libc.close(fd);
	return err && err != -EADDRINUSE ? err : -EINVAL;
}

long device_bind(const struct sock *s, const struct sockaddr *addr, socklen_t len)
{
	return sock_on_device(s) ? bind_refuse(s, addr, len) : CALL_THEIRS;
}
