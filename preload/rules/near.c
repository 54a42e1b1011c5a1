/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hosts that are near: nobody on the open Internet is to find datagrams of ours because a program
 * has connected there.
 *
 * Whether an address is in a subnet of this host is said by the prefixes of its own addresses. The
 * route would not do: a default route without a gateway, as a tunnel has it, makes every address
 * look like a neighbour's. For the same reason a prefix of length 0 counts for nothing.
 */
#include "preload/rules/near.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/address.h"
#include "base/bits.h"
#include "base/fdutil.h"
#include "base/map.h"

struct place {
	bool four;
	uint8_t octets[16]; /* four of them, if so */
};

static bool place_of(const struct sockaddr *addr, socklen_t len, struct place *out)
{
	struct sockaddr_in6 a = { .sin6_family = AF_UNSPEC };

	memset(out, 0, sizeof(*out));
	if (len < sizeof(struct sockaddr_in))
		return false;
	memcpy(&a, addr, base_min((size_t)len, sizeof(a)));
	base_address_unmap(&a);
	out->four = base_address_is_four(&a);
	if (out->four)
		memcpy(out->octets, &((const struct sockaddr_in *)(const void *)&a)->sin_addr, 4);
	else
		memcpy(out->octets, &a.sin6_addr, 16);
	return out->four || a.sin6_family == AF_INET6;
}

static bool prefix_equals(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int octets = bits / 8, rest = bits % 8;

	return !memcmp(a, b, octets) && (!rest || !((a[octets] ^ b[octets]) >> (8 - rest)));
}

struct prefix {
	bool four;
	uint8_t bits;
	uint8_t octets[8];
};

static bool is_of(const struct place *p, const struct prefix *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].four == p->four &&
		    prefix_equals(p->octets, list[i].octets, list[i].bits))
			return true;
	return false;
}

bool near_is_host(const struct sockaddr *addr, socklen_t len)
{
	/* 240/4, with the broadcast, is in 224/3, as are :: and ::1 in ::/64 */
	static const struct prefix none[] = {
		{ true, 8, { 0 } },   { true, 8, { 127 } },   { true, 3, { 224 } },
		{ false, 64, { 0 } }, { false, 8, { 0xff } },
	};
	struct place p;

	return place_of(addr, len, &p) && !is_of(&p, none, base_array_size(none));
}

bool near_is_private(const struct sockaddr *addr, socklen_t len)
{
	static const struct prefix private[] = {
		{ true, 8, { 10 } },	{ true, 12, { 172, 16 } },     { true, 16, { 192, 168 } },
		{ false, 7, { 0xfc } }, { false, 10, { 0xfe, 0x80 } },
	};
	struct place p;

	return place_of(addr, len, &p) && is_of(&p, private, base_array_size(private));
}

/* --- the kernel's list of this host's addresses --- */

/* One of them, as the kernel tells it: is @p in its subnet? */
static bool is_neighbour(const struct nlmsghdr *h, const struct place *p)
{
	const struct ifaddrmsg *a = NLMSG_DATA(h);
	size_t want = p->four ? 4 : 16, left;
	const struct rtattr *r;

	if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*a)) ||
	    a->ifa_family != (p->four ? AF_INET : AF_INET6) || !a->ifa_prefixlen ||
	    a->ifa_prefixlen > 8 * want)
		return false;
	left = IFA_PAYLOAD(h);
	/* IFA_ADDRESS is the other end's of a link between two */
	for (r = IFA_RTA(a); RTA_OK(r, left); r = RTA_NEXT(r, left))
		if (r->rta_type == IFA_ADDRESS && RTA_PAYLOAD(r) >= want &&
		    prefix_equals(RTA_DATA(r), p->octets, a->ifa_prefixlen))
			return true;
	return false;
}

/* 1: it is; 0: not among these; -1: nor is there more */
static int part_look(const void *buf, size_t len, const struct place *p)
{
	const struct nlmsghdr *h = buf;

	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return -1;
		if (is_neighbour(h, p))
			return 1;
	}
	return 0;
}

/* The kernel gives no message longer than it is asked for, and no stack has that much */
#define PART 32768

static bool list_look(int fd, const struct place *p)
{
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type = RTM_GETADDR,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .ifa_family = p->four ? AF_INET : AF_INET6 },
	};
	int found = 0;
	void *buf;

	if (base_map_create(PART, &buf))
		return false;
	if (syscall(SYS_sendto, fd, &ask, sizeof(ask), 0, NULL, 0) < 0)
		found = -1;
	while (!found) {
		long n = syscall(SYS_recvfrom, fd, buf, PART, MSG_DONTWAIT, NULL, NULL);

		found = n <= 0 ? -1 : part_look(buf, (size_t)n, p);
	}
	base_map_destroy(buf, PART);
	return found > 0;
}

bool near_is_on_link(const struct sockaddr *addr, socklen_t len)
{
	int saved = errno, fd;
	bool found = false;
	struct place p;

	if (!place_of(addr, len, &p))
		return false;
	fd = (int)syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd >= 0)
		found = list_look(fd, &p);
	base_fd_close(fd);
	errno = saved;
	return found;
}
