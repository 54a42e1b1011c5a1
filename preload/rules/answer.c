/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whoever has the port answers (docs/stream-wire.md).
 *
 * Yes is said only where a listener that processes have told each other of (host.c) is the one that
 * the kernel would give the connection to (listening.c): of exactly the address that the question
 * came to, or, if there is none of that, of all addresses.
 *
 * The answer leaves from the address that was asked and by the same length as the question, so
 * nobody is sent more for a source that was forged. Answers are counted (answer_rate.c), and so are
 * datagrams that are looked at: of a flood the kernel throws the rest away.
 */
#include "preload/rules/answer.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/log.h"
#include "base/rand.h"
#include "preload/rules/ask_message.h"
#include "preload/rules/host.h"
#include "preload/rules/listening.h"
#include "preload/rules/near.h"
#include "preload/table/internal.h"

/* So many datagrams are looked at, then there is a pause */
#define BATCH 64
#define PAUSE BASE_NS_PER_MS
/* What may wait while the process is stopped */
#define QUEUE (64 * 1024)

/* --- the port --- */

static void option_set(int fd, int level, int option, int value)
{
	syscall(SYS_setsockopt, fd, level, option, &value, sizeof(value));
}

/* At once an internal descriptor: meanwhile the program may count on the lowest number */
static int socket_make(sa_family_t family)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	fd = internal_move(fd);
	option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	option_set(fd, IPPROTO_IP, IP_PKTINFO, 1);
	option_set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	option_set(fd, SOL_SOCKET, SO_RCVBUF, QUEUE);
	return fd;
}

/* One socket for both families; where the host has no IPv6, one of IPv4 */
int answer_make(struct answer *a)
{
	int saved = errno, fd;

	if (a->fd >= 0)
		return 0;
	memset(&a->rate, 0, sizeof(a->rate));
	if (base_rand_fill(&a->key, sizeof(a->key)))
		return -EIO;
	a->family = AF_INET6;
	fd = socket_make(a->family);
	if (fd < 0) {
		a->family = AF_INET;
		fd = socket_make(a->family);
	}
	errno = saved;
	if (fd < 0)
		return fd;
	a->fd = fd;
	return 0;
}

int answer_open(struct answer *a, in_port_t port)
{
	struct sockaddr_in6 name = { .sin6_port = port };
	int saved = errno, err = answer_make(a);

	if (err)
		return err;
	name.sin6_family = a->family;
	if (syscall(SYS_bind, a->fd, &name, base_address_len(&name)))
		err = -errno;
	else
		a->port = port;
	errno = saved;
	return err;
}

void answer_close(struct answer *a)
{
	internal_close(a->fd);
	a->fd = -1;
	a->port = 0;
}

/* --- questions --- */

struct question {
	struct sockaddr_in6 from, at; /* of either family; at the port of TCP that is asked for */
	unsigned int device;
	struct ask ask;
};

union control {
	struct cmsghdr head;
	uint8_t room[2 * CMSG_SPACE(sizeof(struct in6_pktinfo))]; /* the larger of the two */
};

static void asked_at_four(const struct in_pktinfo *info, struct question *q)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr = info->ipi_addr };

	/* What was sent to many is nobody's question: the kernel says whose address it is then */
	if (info->ipi_addr.s_addr != info->ipi_spec_dst.s_addr)
		return;
	memcpy(&q->at, &four, sizeof(four));
	q->device = (unsigned int)info->ipi_ifindex;
}

static void asked_at_six(const struct in6_pktinfo *info, struct question *q)
{
	q->at = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = info->ipi6_addr };
	q->device = info->ipi6_ifindex;
	base_address_unmap(&q->at);
}

/* Which address was asked; one of IPv4 tells it by either family's message, or by both */
static void asked_at(struct msghdr *msg, struct question *q)
{
	struct in6_pktinfo six;
	struct in_pktinfo four;
	bool told = false;

	q->at.sin6_family = AF_UNSPEC;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(four))) {
			memcpy(&four, CMSG_DATA(c), sizeof(four));
			q->at.sin6_family = AF_UNSPEC;
			asked_at_four(&four, q);
			told = true;
		} else if (!told && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
			   c->cmsg_len >= CMSG_LEN(sizeof(six))) {
			memcpy(&six, CMSG_DATA(c), sizeof(six));
			asked_at_six(&six, q);
		}
	}
}

/* 0: @q is one; -EPROTO: what came is none; -errno: nothing has come */
static int question_take(int fd, struct question *q)
{
	uint8_t octets[ASK_LEN + 1];
	union control control;
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr msg = { .msg_name = &q->from,
			      .msg_namelen = sizeof(q->from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	long n = syscall(SYS_recvmsg, fd, &msg, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	asked_at(&msg, q);
	if (msg.msg_flags & MSG_TRUNC || ask_message_get(octets, (size_t)n, &q->ask) ||
	    q->ask.kind != ASK_QUESTION || !near_is_host((struct sockaddr *)&q->at, sizeof(q->at)))
		return -EPROTO;
	q->at.sin6_port = q->ask.port;
	return 0;
}

/* A network of IPv6 is one host's */
static uint64_t host_hash(const struct answer *a, const struct sockaddr_in6 *from)
{
	struct sockaddr_in6 addr = *from;

	if (base_address_is_four(&addr))
		base_address_map(&addr);
	if (IN6_IS_ADDR_V4MAPPED(&addr.sin6_addr))
		return base_siphash(&a->key, &addr.sin6_addr, sizeof(addr.sin6_addr));
	return base_siphash(&a->key, &addr.sin6_addr, sizeof(addr.sin6_addr) / 2);
}

/* --- answers --- */

static bool is_there(const struct question *q)
{
	const struct sockaddr *at = (const struct sockaddr *)&q->at;
	enum listening what = listening_at(at, sizeof(q->at), q->device);

	return what != LISTENING_NOT && host_tells(at, sizeof(q->at), what == LISTENING_ANY);
}

/* From the address that was asked */
static size_t source_put(const struct question *q, union control *control)
{
	struct in6_pktinfo six = { .ipi6_addr = q->at.sin6_addr };
	struct in_pktinfo info = { .ipi_ifindex = 0 };
	bool of_four = base_address_is_four(&q->at);

	memset(control, 0, sizeof(*control));
	if (of_four) {
		memcpy(&info.ipi_spec_dst,
		       &((const struct sockaddr_in *)(const void *)&q->at)->sin_addr,
		       sizeof(info.ipi_spec_dst));
		control->head.cmsg_level = IPPROTO_IP;
		control->head.cmsg_type = IP_PKTINFO;
		control->head.cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(&control->head), &info, sizeof(info));
		return CMSG_SPACE(sizeof(info));
	}
	if (IN6_IS_ADDR_LINKLOCAL(&q->at.sin6_addr))
		six.ipi6_ifindex = q->device;
	control->head.cmsg_level = IPPROTO_IPV6;
	control->head.cmsg_type = IPV6_PKTINFO;
	control->head.cmsg_len = CMSG_LEN(sizeof(six));
	memcpy(CMSG_DATA(&control->head), &six, sizeof(six));
	return CMSG_SPACE(sizeof(six));
}

static void question_answer(const struct answer *a, struct question *q)
{
	struct ask answer = { is_there(q) ? ASK_YES : ASK_NO, q->ask.port, q->ask.nonce };
	struct ask_message m;
	union control control;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_name = &q->from,
			      .msg_namelen = base_address_len(&q->from),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control };

	ask_message_put(&m, &answer);
	msg.msg_controllen = source_put(q, &control);
	if (syscall(SYS_sendmsg, a->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		base_debug("a question has no answer: %s", strerror(errno));
}

uint64_t answer_serve(struct answer *a)
{
	int saved = errno, err = 0;
	struct question q;

	for (unsigned int i = 0; i < BATCH && err != -EAGAIN; i++) {
		err = question_take(a->fd, &q);
		if (!err && answer_rate_take(&a->rate, host_hash(a, &q.from), base_now()))
			question_answer(a, &q);
	}
	errno = saved;
	return err == -EAGAIN ? BASE_NEVER : base_deadline(base_now(), PAUSE);
}
