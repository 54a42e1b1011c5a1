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
#include "preload/sock/gate.h"
#include "preload/sock/provider.h"
#include "preload/table/libc.h"
#include "preload/table/pieces.h"
#include "rnic/rnic_carrier.h"

/* --- what TCP would call it --- */

static int stream_state(struct sock *s)
{
	uint8_t shut = __atomic_load_n(&s->shut, __ATOMIC_RELAXED);
	unsigned int levels = s->stream->ops->levels(s->stream, NULL);

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
	return s->accepted && !(s->stream->ops->levels(s->stream, NULL) & STREAM_STARTED);
}

/* 0: that the kernel knows */
static int state_of(struct sock *s)
{
	if (sock_on_device(s) && !waits_for_answer(s))
		sock_progress(s);
	if (sock_on_device(s))
		return stream_state(s);
	return gate_listens(s) ? TCP_LISTEN : 0;
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

long device_option(struct sock *s, int level, int name, void *value, socklen_t *len)
{
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return tcp_info_get(s, value, len);
	if (level == SOL_SOCKET && name == SO_ACCEPTCONN && gate_listens(s))
		return listens_get(s, value, len);
	return CALL_THEIRS;
}

/* --- getsockname(), getpeername() --- */

/* A socket of IPv6 shows its IPv4 addresses mapped */
static void name_map(const struct sock *s, struct sockaddr_storage *name)
{
	if (base_address_is_four(name) &&
	    base_sock_number(s->fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6)
		base_address_map(name);
}

long device_name_give(const struct sock *s, bool peer, struct sockaddr *addr, socklen_t *len)
{
	const struct rnic_native *native = s->native;
	struct sockaddr_storage name;
	socklen_t own;
	size_t n;

	if (!native || provider_ops(s)->name(native, peer, &name))
		return -ENOTCONN;
	if (pieces_wild(len, sizeof(*len)))
		return -EFAULT;
	if ((int)*len < 0)
		return -EINVAL;
	name_map(s, &name);
	own = base_address_len(&name);
	n = base_min(*len, own);
	if (n && pieces_wild(addr, n))
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
	if (pieces_wild(addr, len))
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
