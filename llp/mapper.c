/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks the mapper of a peer's host for a port.
 *
 * The kernel of a host with iWARP devices may give their listeners other TCP ports than those that
 * programs have chosen, so that they do not meet with sockets. Its port mapper (rdma-core's iwpmd)
 * knows which, and tells by UDP who asks: a Request, an Accept or a Reject, and an Ack, without
 * which the Accept is said again.
 *
 * The kernel there keeps what the Request says of the connecting end until it has accepted that
 * connection. So the socket is bound before, and the Request says its port.
 *
 * What was told is one word for each address, so that nobody waits for a lock, in a forked child
 * either. Two addresses of one word take each other's place.
 */
#include "llp/mapper.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <wire/portmap.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/process.h"
#include "base/rand.h"
#include "base/sockutil.h"

#define WORDS 64u
#define LIFE_S 10u
#define TRIES 3

/* A word: tag, 24 bits; second to forget it at, 24; port, 16, 0: none. 0 is no entry */
#define TAG_SHIFT 40
#define TIME_SHIFT 16
#define TIME_MASK ((1u << 24) - 1)
static uint64_t told[WORDS]; /* atomic */

/* What is no part of the place: a program may leave anything there */
static void rest_clear(struct sockaddr_in6 *addr)
{
	if (base_address_is_four(addr))
		memset((char *)addr + offsetof(struct sockaddr_in, sin_zero), 0,
		       sizeof(*addr) - offsetof(struct sockaddr_in, sin_zero));
	else
		addr->sin6_flowinfo = 0;
}

static uint32_t hash(const struct sockaddr_in6 *addr)
{
	const uint8_t *p = (const uint8_t *)addr;
	uint32_t h = 2166136261u;

	for (socklen_t i = 0; i < base_address_len(addr); i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static uint64_t *word_at(uint32_t h)
{
	return &told[h % WORDS];
}

static uint32_t second(void)
{
	return (uint32_t)(base_now() / BASE_NS_PER_S);
}

static void note(uint32_t h, in_port_t port)
{
	uint64_t until = (second() + LIFE_S) & TIME_MASK;
	uint64_t word = (uint64_t)(h >> 8) << TAG_SHIFT | until << TIME_SHIFT | port;

	__atomic_store_n(word_at(h), word, __ATOMIC_RELAXED);
}

static bool known(uint32_t h, in_port_t *port)
{
	uint64_t word = __atomic_load_n(word_at(h), __ATOMIC_RELAXED);
	uint32_t left = ((uint32_t)(word >> TIME_SHIFT) - second()) & TIME_MASK;

	if (!word || word >> TAG_SHIFT != h >> 8 || !left || left > LIFE_S)
		return false;
	*port = (in_port_t)word;
	return true;
}

static void addr_put(uint8_t to[16], const void *addr)
{
	if (base_address_is_four(addr))
		memcpy(to, &((const struct sockaddr_in *)addr)->sin_addr, 4);
	else
		memcpy(to, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
}

static int name_of(int fd, struct sockaddr_in6 *name)
{
	socklen_t len = sizeof(*name);

	return syscall(SYS_getsockname, fd, name, &len) ? -errno : 0;
}

static void port_later(int tcp, int on)
{
	syscall(SYS_setsockopt, tcp, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
}

/* A port, too, where its program leaves that to connect() */
static int bind_at(int tcp, const struct sockaddr_in6 *at, struct sockaddr_in6 *name)
{
	bool later = base_sock_number(tcp, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT) > 0;
	int err;

	if (later)
		port_later(tcp, 0);
	err = syscall(SYS_bind, tcp, at, base_address_len(at)) ? -errno : name_of(tcp, name);
	if (later)
		port_later(tcp, 1);
	return err;
}

/* Of the socket @tcp, at the address of @own unless its program has chosen one, or a port */
static int name_take(int tcp, struct sockaddr_in6 *own)
{
	struct sockaddr_in6 name, at = *own;
	int err = name_of(tcp, &name);

	if (err)
		return err;
	if (!base_address_is_any(&name))
		at = name;
	else if (base_address_is_four(own) && !base_address_is_four(&name))
		base_address_map(&at);
	base_address_set_port(&at, base_address_port(&name));
	if (!base_address_port(&at))
		err = bind_at(tcp, &at, &at);
	base_address_unmap(&at);
	*own = at;
	return err;
}

static int request_put(struct portmap_message *m, const struct sockaddr_in6 *peer, int fd, int tcp)
{
	struct sockaddr_in6 own;
	uint64_t handle;
	int err = base_rand_u64(&handle);

	if (!err)
		err = name_of(fd, &own);
	if (!err)
		err = name_take(tcp, &own);
	if (err)
		return err;
	*m = (struct portmap_message){
		.kind = PORTMAP_REQUEST | (base_address_is_four(peer) ? 4 : 6),
		.mapped_port = base_address_port(&own),
		.accept_port = base_address_port(peer),
		.connect_port = base_address_port(&own),
		.handle = handle,
	};
	addr_put(m->accept_addr, peer);
	addr_put(m->connect_addr, &own);
	addr_put(m->mapped_addr, &own);
	return 0;
}

/* -EAGAIN: what came is no answer to @m */
static int answer_get(int fd, const struct portmap_message *m, in_port_t *port)
{
	struct portmap_message in;
	long n = syscall(SYS_recvfrom, fd, &in, sizeof(in), MSG_DONTWAIT, NULL, NULL);

	if (n < 0)
		return -errno;
	if (n < PORTMAP_ANSWER_LEN || in.handle != m->handle)
		return -EAGAIN;
	if (in.kind == (m->kind | PORTMAP_REJECT))
		return -ENOENT;
	/* Another address than the one that was asked for is none that the program has chosen */
	if (in.kind != (m->kind | PORTMAP_ACCEPT) || !in.accept_port ||
	    memcmp(in.accept_addr, m->accept_addr, sizeof(in.accept_addr)))
		return -EAGAIN;
	in.kind = m->kind | PORTMAP_ACK;
	syscall(SYS_sendto, fd, &in, PORTMAP_ANSWER_LEN, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	*port = in.accept_port;
	return 0;
}

/*
 * 0, -ENOENT, -ETIMEDOUT, or what the socket has. A signal does not end it: connect() would go
 * where the listener does not stand
 */
static int answer_wait(int fd, const struct portmap_message *m, uint64_t deadline, in_port_t *port)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int err;

	do {
		err = base_poll_until(&p, 1, deadline);
		if (!err)
			err = answer_get(fd, m, port);
		if (err != -EAGAIN && err != -EINTR)
			return err;
	} while (!base_deadline_passed(deadline, base_now()));
	return -ETIMEDOUT;
}

static int ask(int fd, int tcp, const struct sockaddr_in6 *peer, uint64_t limit, in_port_t *port)
{
	struct sockaddr_in6 mapper = *peer;
	struct portmap_message m;
	int err;

	base_address_set_port(&mapper, htobe16(PORTMAP_PORT));
	if (syscall(SYS_connect, fd, &mapper, base_address_len(&mapper)))
		return -errno;
	err = request_put(&m, peer, fd, tcp);
	if (err)
		return err;
	for (int i = 0; i < TRIES && (!i || err == -ETIMEDOUT); i++) {
		if (syscall(SYS_sendto, fd, &m, sizeof(m), MSG_NOSIGNAL, NULL, 0) < 0)
			return -errno;
		err = answer_wait(fd, &m, base_deadline(base_now(), limit / TRIES), port);
	}
	return err;
}

/* Of the peer, and not that it could not be asked from here */
static bool is_told(int err)
{
	return !err || err == -ENOENT || err == -ETIMEDOUT || err == -ECONNREFUSED;
}

static in_port_t port_of(int tcp, const struct sockaddr_in6 *peer, uint64_t limit)
{
	int fd = (int)syscall(SYS_socket, base_address_is_four(peer) ? AF_INET : AF_INET6,
			      SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	in_port_t port = 0;
	int err;

	if (fd < 0)
		return 0;
	fd = base_fd_keep(fd);
	err = ask(fd, tcp, peer, limit, &port);
	base_fd_drop(fd);
	base_fd_close(fd);
	if (is_told(err))
		note(hash(peer), port);
	base_debug("the port mapper of a peer: %s, port %u", err ? strerror(-err) : "asked",
		   be16toh(port));
	return port;
}

bool llp_mapper_move(int fd, void *peer, socklen_t len, uint64_t limit)
{
	struct sockaddr_in6 addr = { 0 };
	int saved = errno;
	in_port_t port;

	if (!limit || len < sizeof(struct sockaddr_in) || base_process_confined())
		return false;
	memcpy(&addr, peer, base_min((size_t)len, sizeof(addr)));
	base_address_unmap(&addr);
	rest_clear(&addr);
	if (!known(hash(&addr), &port))
		port = port_of(fd, &addr, limit);
	errno = saved;
	if (!port || port == base_address_port(peer))
		return false;
	base_address_set_port(peer, port);
	return true;
}
