/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who listens at an address and port: the kernel's own list (sock_diag), which has the listeners of
 * all users and of no other network namespace.
 *
 * The kernel gives a connection to a listener of exactly its address before one of all addresses,
 * and one of IPv6 may take connections of IPv4 as well.
 */
#include "preload/rules/listening.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/fdutil.h"
#include "base/map.h"

struct sought {
	struct sockaddr_in6 addr; /* of either family */
	unsigned int device;
};

static bool is_v6only(const struct nlmsghdr *h, const struct inet_diag_msg *m)
{
	size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	const struct rtattr *r = (const struct rtattr *)(const void *)(m + 1);

	for (; RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == INET_DIAG_SKV6ONLY && RTA_PAYLOAD(r) >= 1)
			return *(const uint8_t *)RTA_DATA(r);
	return false;
}

/* The address of a listener, one of IPv4 that is mapped as that of IPv4 */
static void name_of(const struct inet_diag_msg *m, struct sockaddr_in6 *out)
{
	struct sockaddr_in four = { .sin_family = AF_INET };

	*out = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	if (m->idiag_family == AF_INET) {
		memcpy(&four.sin_addr, m->id.idiag_src, sizeof(four.sin_addr));
		memcpy(out, &four, sizeof(four));
		return;
	}
	memcpy(&out->sin6_addr, m->id.idiag_src, sizeof(out->sin6_addr));
	base_address_unmap(out);
}

static bool address_equals(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	if (a->sin6_family != b->sin6_family)
		return false;
	if (base_address_is_four(a))
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->sin6_addr, &b->sin6_addr);
}

static enum listening judge(const struct nlmsghdr *h, const struct sought *s)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	struct sockaddr_in6 name;

	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) ||
	    m->idiag_state != TCP_LISTEN || m->id.idiag_sport != base_address_port(&s->addr) ||
	    (m->id.idiag_if && m->id.idiag_if != s->device))
		return LISTENING_NOT;
	name_of(m, &name);
	if (address_equals(&name, &s->addr))
		return LISTENING_EXACT;
	if (!base_address_is_any(&name))
		return LISTENING_NOT;
	/* All of the other family: only one of IPv6 that is not for that alone */
	if (name.sin6_family != s->addr.sin6_family &&
	    (base_address_is_four(&name) || is_v6only(h, m)))
		return LISTENING_NOT;
	return LISTENING_ANY;
}

static enum listening better(enum listening a, enum listening b)
{
	return a == LISTENING_EXACT || b == LISTENING_NOT ? a : b;
}

/* True: that was all */
static bool part_look(const void *buf, size_t len, const struct sought *s, enum listening *best)
{
	const struct nlmsghdr *h = buf;

	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return true;
		*best = better(*best, judge(h, s));
	}
	return false;
}

/* The kernel gives no message longer than it is asked for, and no stack has that much */
#define PART 32768

static enum listening list_look(int fd, sa_family_t family, const struct sought *s)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = (__u8)family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = 1u << TCP_LISTEN,
			  .id.idiag_sport = base_address_port(&s->addr) },
	};
	enum listening best = LISTENING_NOT;
	bool all = false;
	void *buf;

	if (base_map_create(PART, &buf))
		return LISTENING_NOT;
	if (syscall(SYS_sendto, fd, &ask, sizeof(ask), 0, NULL, 0) < 0)
		all = true;
	while (!all) {
		long n = syscall(SYS_recvfrom, fd, buf, PART, MSG_DONTWAIT, NULL, NULL);

		all = n <= 0 || part_look(buf, (size_t)n, s, &best);
	}
	base_map_destroy(buf, PART);
	return best;
}

static enum listening best_of(int fd, const struct sought *s)
{
	enum listening best = LISTENING_NOT;

	if (base_address_is_four(&s->addr))
		best = list_look(fd, AF_INET, s);
	return best == LISTENING_EXACT ? best : better(best, list_look(fd, AF_INET6, s));
}

enum listening listening_at(const struct sockaddr *addr, socklen_t len, unsigned int device)
{
	struct sought s = { .device = device };
	enum listening best = LISTENING_NOT;
	int fd;

	if (len < sizeof(struct sockaddr_in))
		return LISTENING_NOT;
	memcpy(&s.addr, addr, base_min((size_t)len, sizeof(s.addr)));
	base_address_unmap(&s.addr);
	fd = (int)syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd >= 0)
		best = best_of(fd, &s);
	base_fd_close(fd);
	return best;
}
