/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who connects asks the peer's host by one datagram of UDP, beside the connection, so that a plain
 * server has nothing to notice.
 *
 * One socket serves the whole process. It belongs to the life that made it: a forked child makes
 * another one, or each would take the answers of the other. What the answers say is known to all of
 * them (ask_known.c).
 *
 * An answer counts if it comes from the port and address that were asked and has the nonce of that
 * question. The nonce is made of address and port by a key that only this process and its children
 * have, so nothing has to be kept for an answer that comes late; it changes every few minutes. A
 * kernel that refuses the datagram (ICMP) gives back what was sent, and that has the nonce, too.
 */
#include "preload/rules/ask.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/errqueue.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/siphash.h"
#include "preload/rules/ask_message.h"
#include "preload/rules/host.h"
#include "preload/rules/near.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"

/* A nonce is good for one such time and the next */
#define NONCE_LIFE (512 * BASE_NS_PER_S)
/* What is taken in by one look */
#define BATCH 64

static struct {
	in_port_t port; /* 0: nobody is asked */
	uint64_t life;	/* of a no */
	struct base_siphash_key key;
	uint64_t socket; /* atomic: 0, or whose life it is of, and its number plus one */
} ask;

/* An address as a socket of IPv6 has it, so that the same one is always the same octets */
struct place {
	struct sockaddr_in6 addr;
};

static bool place_of(const struct sockaddr *peer, socklen_t len, struct place *out)
{
	memset(out, 0, sizeof(*out));
	if (len < sizeof(struct sockaddr_in))
		return false;
	memcpy(&out->addr, peer, base_min((size_t)len, sizeof(out->addr)));
	if (base_address_is_four(&out->addr))
		base_address_map(&out->addr);
	out->addr.sin6_flowinfo = 0;
	if (!IN6_IS_ADDR_LINKLOCAL(&out->addr.sin6_addr))
		out->addr.sin6_scope_id = 0;
	return out->addr.sin6_family == AF_INET6;
}

static const struct sockaddr *addr_of(const struct place *p)
{
	return (const struct sockaddr *)&p->addr;
}

/* @slot: of the time, counted back from now */
static uint64_t nonce_of(const struct place *p, unsigned int slot)
{
	struct {
		struct in6_addr addr;
		uint32_t scope;
		uint32_t port;
		uint64_t slot;
	} text = { p->addr.sin6_addr, p->addr.sin6_scope_id, p->addr.sin6_port,
		   base_now() / NONCE_LIFE - slot };

	return base_siphash(&ask.key, &text, sizeof(text));
}

static bool is_nonce(const struct place *p, uint64_t nonce)
{
	return nonce == nonce_of(p, 0) || nonce == nonce_of(p, 1);
}

/* --- the socket --- */

static void option_set(int fd, int level, int option)
{
	int on = 1;

	syscall(SYS_setsockopt, fd, level, option, &on, sizeof(on));
}

/* Where the host has no IPv6 it is one of IPv4 */
static int socket_make(void)
{
	int type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = (int)syscall(SYS_socket, AF_INET6, type, 0), off = 0;

	if (fd >= 0)
		syscall(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	else
		fd = (int)syscall(SYS_socket, AF_INET, type, 0);
	if (fd < 0)
		return -1;
	option_set(fd, IPPROTO_IP, IP_RECVERR);
	option_set(fd, IPPROTO_IPV6, IPV6_RECVERR);
	return internal_move(fd);
}

/* -1: none of this life, for another one of the family made it */
static int socket_of(uint64_t word)
{
	return word && word >> 32 == fork_gen ? (int)(uint32_t)word - 1 : -1;
}

static int socket_now(void)
{
	return socket_of(__atomic_load_n(&ask.socket, __ATOMIC_ACQUIRE));
}

/* Of two threads that make one at once, one takes the other's */
static int socket_get(void)
{
	uint64_t was = __atomic_load_n(&ask.socket, __ATOMIC_ACQUIRE), word;
	int fd = socket_of(was);

	if (fd >= 0)
		return fd;
	fd = socket_make();
	if (fd < 0)
		return -1;
	word = (uint64_t)fork_gen << 32 | (uint32_t)(fd + 1);
	if (!__atomic_compare_exchange_n(&ask.socket, &was, word, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		internal_close(fd);
		return socket_of(was);
	}
	/* The parent's */
	internal_close((int)(uint32_t)was - 1);
	return fd;
}

/* --- answers --- */

static bool message_take(struct msghdr *msg, long n, const struct place *from, struct ask *out)
{
	return !(msg->msg_flags & MSG_TRUNC) &&
	       !ask_message_get(msg->msg_iov->iov_base, (size_t)n, out) &&
	       from->addr.sin6_port == ask.port;
}

static void answer_take(struct msghdr *msg, long n)
{
	struct place from;
	struct ask a;

	if (!place_of(msg->msg_name, msg->msg_namelen, &from) || !message_take(msg, n, &from, &a) ||
	    a.kind == ASK_QUESTION)
		return;
	from.addr.sin6_port = a.port;
	if (!is_nonce(&from, a.nonce)) {
		base_debug("an answer to no question of ours");
		return;
	}
	base_debug("a peer's host says %s", a.kind == ASK_YES ? "yes" : "no");
	ask_known_answer(addr_of(&from), sizeof(from.addr), a.kind == ASK_YES, ask.life,
			 base_now());
}

/* What comes back is the question, and the address that it was sent to */
static void refusal_take(struct msghdr *msg, long n)
{
	struct place to;
	struct ask a;

	if (!place_of(msg->msg_name, msg->msg_namelen, &to) || !message_take(msg, n, &to, &a) ||
	    a.kind != ASK_QUESTION)
		return;
	to.addr.sin6_port = a.port;
	if (is_nonce(&to, a.nonce))
		ask_known_silent(addr_of(&to), sizeof(to.addr), base_now());
}

/* -errno: there is no more, or what the kernel had to tell of one */
static int take_one(int fd, int flags, void (*take)(struct msghdr *msg, long n))
{
	uint8_t octets[ASK_LEN + 1], control[512];
	struct sockaddr_in6 name = { .sin6_family = AF_UNSPEC };
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr msg = { .msg_name = &name,
			      .msg_namelen = sizeof(name),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	long n = syscall(SYS_recvmsg, fd, &msg, MSG_DONTWAIT | flags);

	if (n < 0)
		return -errno;
	take(&msg, n);
	return 0;
}

static void take_all(int fd, int flags, void (*take)(struct msghdr *msg, long n))
{
	for (unsigned int i = 0; i < BATCH; i++)
		if (take_one(fd, flags, take) == -EAGAIN)
			break;
}

static void look(void)
{
	int fd = socket_now(), saved = errno;

	if (fd < 0)
		return;
	take_all(fd, 0, answer_take);
	take_all(fd, MSG_ERRQUEUE, refusal_take);
	errno = saved;
}

/* --- questions --- */

/* An error that is told here may be another peer's */
static long send_once(int fd, const struct ask_message *m, const struct sockaddr_in6 *to)
{
	return syscall(SYS_sendto, fd, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL, to,
		       base_address_len(to)) < 0
		       ? -errno
		       : 0;
}

static int question_send(const struct place *p)
{
	struct ask a = { ASK_QUESTION, p->addr.sin6_port, nonce_of(p, 0) };
	struct sockaddr_in6 to = p->addr;
	int fd = socket_get(), saved = errno;
	struct ask_message m;
	long err;

	if (fd < 0)
		return -EMFILE;
	base_address_set_port(&to, ask.port);
	ask_message_put(&m, &a);
	err = send_once(fd, &m, &to);
	if (err) {
		look();
		err = send_once(fd, &m, &to);
	}
	if (err == -EAFNOSUPPORT) { /* a socket of IPv4 */
		base_address_unmap(&to);
		err = send_once(fd, &m, &to);
	}
	errno = saved;
	return (int)err;
}

/* May its host be asked? One of this host's addresses need not be: what listens there is known */
static bool may_ask(const struct place *p, enum config_rule_ask how)
{
	socklen_t len = sizeof(p->addr);

	if (!near_is_host(addr_of(p), len) || host_is_local(addr_of(p), len))
		return false;
	return how == CONFIG_ASK_ALWAYS || near_is_private(addr_of(p), len) ||
	       near_is_on_link(addr_of(p), len);
}

/* Nothing is known of it */
static enum ask_known question_begin(const struct place *p, enum config_rule_ask how)
{
	socklen_t len = sizeof(p->addr);
	int err;

	if (!may_ask(p, how)) {
		ask_known_far(addr_of(p), len, base_now());
		return ASK_KNOWN_FAR;
	}
	if (!ask_known_claim(addr_of(p), len, base_now()))
		return ASK_KNOWN_ASKED;
	err = question_send(p);
	if (!err)
		return ASK_KNOWN_ASKED;
	base_debug("a peer's host cannot be asked: %s", strerror(-err));
	ask_expire(addr_of(p), len);
	return ASK_KNOWN_SILENT;
}

void ask_init(uint16_t port, uint64_t life)
{
	ask.port = htobe16(port);
	ask.life = life;
	if (!port)
		return;
	if (base_rand_fill(&ask.key, sizeof(ask.key)))
		ask.port = 0;
	ask_known_init();
}

/*
 * Descriptors of ours have high numbers. Once the process has threads, the kernel waits for a grace
 * period of RCU, which takes milliseconds, before its table has room for them; so it does that now.
 */
void ask_prepare(void)
{
	int fd, high;

	if (base_eventfd_create(&fd))
		return;
	high = base_fd_dup_high(fd);
	base_fd_close(high);
	base_fd_close(fd);
}

enum ask_known ask_begin(const struct sockaddr *peer, socklen_t len, enum config_rule_ask how)
{
	enum ask_known known;
	struct place p;

	if (!ask.port || how == CONFIG_ASK_NEVER || !place_of(peer, len, &p) || fork_gen_is_guest())
		return ASK_KNOWN_FAR;
	look();
	known = ask_known(addr_of(&p), sizeof(p.addr), base_now());
	if (known == ASK_KNOWN_NOTHING || (known == ASK_KNOWN_FAR && how == CONFIG_ASK_ALWAYS))
		known = question_begin(&p, how);
	return known;
}

void ask_repeat(const struct sockaddr *peer, socklen_t len)
{
	struct place p;

	if (ask.port && place_of(peer, len, &p))
		question_send(&p);
}

enum ask_known ask_look(const struct sockaddr *peer, socklen_t len)
{
	struct place p;

	if (!place_of(peer, len, &p))
		return ASK_KNOWN_NOTHING;
	look();
	return ask_known(addr_of(&p), sizeof(p.addr), base_now());
}

void ask_expire(const struct sockaddr *peer, socklen_t len)
{
	struct place p;

	if (place_of(peer, len, &p))
		ask_known_silent(addr_of(&p), sizeof(p.addr), base_now());
}
