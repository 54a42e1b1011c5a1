/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Next hops for frames that bypass the kernel: asked of its routing and neighbour tables.
 *
 * Whenever an answer has expired, the packet at hand is left to the kernel: sending it keeps the
 * neighbour entry alive and makes the kernel ask for one that is missing, so that no ARP is
 * spoken here.
 */
#include "am/xdp_route.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"

#define GOOD_NS (1 * BASE_NS_PER_S)
#define BAD_NS (2 * BASE_NS_PER_MS)
#define USABLE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

struct query {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ndmsg neighbour;
	} body;
	uint8_t attributes[64];
};

int am_routes_init(struct am_routes *r, int ifindex)
{
	memset(r, 0, sizeof(*r));
	r->ifindex = ifindex;
	r->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	return r->netlink < 0 ? -errno : 0;
}

void am_routes_uninit(struct am_routes *r)
{
	if (r->netlink >= 0)
		close(r->netlink);
}

static void attribute_add(struct query *q, unsigned short type, const void *p, size_t n)
{
	struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(n);
	memcpy(RTA_DATA(a), p, n);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* Bytes of the answer, or -errno. */
static int netlink_ask(struct am_routes *r, struct query *q, void *answer, size_t size)
{
	const struct nlmsghdr *head = answer;
	ssize_t n;

	q->head.nlmsg_flags = NLM_F_REQUEST;
	if (send(r->netlink, q, q->head.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(r->netlink, answer, size, 0);
	if (n < (ssize_t)sizeof(*head))
		return -EIO;
	return head->nlmsg_type == NLMSG_ERROR ? -ENOENT : (int)n;
}

/* The next hop on our interface; 0 when there is none. */
static uint32_t next_hop(struct am_routes *r, uint32_t address)
{
	struct query q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
				     .nlmsg_type = RTM_GETROUTE },
			   .body.route = { .rtm_family = AF_INET, .rtm_dst_len = 32 } };
	char answer[4096] __attribute__((aligned(8)));
	struct nlmsghdr *head = (void *)answer;
	struct rtmsg *route = NLMSG_DATA(head);
	struct rtattr *a = RTM_RTA(route);
	uint32_t hop = address, n;
	int oif = 0, ret;

	attribute_add(&q, RTA_DST, &address, sizeof(address));
	ret = netlink_ask(r, &q, answer, sizeof(answer));
	if (ret < 0 || route->rtm_type != RTN_UNICAST)
		return 0;
	for (n = RTM_PAYLOAD(head); RTA_OK(a, n); a = RTA_NEXT(a, n)) {
		if (a->rta_type == RTA_OIF)
			memcpy(&oif, RTA_DATA(a), sizeof(oif));
		if (a->rta_type == RTA_GATEWAY)
			memcpy(&hop, RTA_DATA(a), sizeof(hop));
	}
	return oif == r->ifindex ? hop : 0;
}

static bool neighbour_get(struct am_routes *r, uint32_t hop, uint8_t *mac)
{
	struct query q = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
				     .nlmsg_type = RTM_GETNEIGH },
			   .body.neighbour = { .ndm_family = AF_INET, .ndm_ifindex = r->ifindex } };
	char answer[4096] __attribute__((aligned(8)));
	struct nlmsghdr *head = (void *)answer;
	struct ndmsg *neighbour = NLMSG_DATA(head);
	struct rtattr *a = (void *)((char *)neighbour + NLMSG_ALIGN(sizeof(*neighbour)));
	uint32_t n;

	attribute_add(&q, NDA_DST, &hop, sizeof(hop));
	if (netlink_ask(r, &q, answer, sizeof(answer)) < 0 || !(neighbour->ndm_state & USABLE))
		return false;
	for (n = NLMSG_PAYLOAD(head, sizeof(*neighbour)); RTA_OK(a, n); a = RTA_NEXT(a, n)) {
		if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == 6) {
			memcpy(mac, RTA_DATA(a), 6);
			return true;
		}
	}
	return false;
}

const uint8_t *am_routes_find(struct am_routes *r, uint32_t address, uint64_t now)
{
	struct am_route *route = &r->cache[(address * 2654435761u) >> 24];
	uint32_t hop;

	if (route->address == address && now < route->expires)
		return route->direct ? route->mac : NULL;
	route->address = address;
	hop = next_hop(r, address);
	route->direct = hop && neighbour_get(r, hop, route->mac);
	route->expires = now + (route->direct || !hop ? GOOD_NS : BAD_NS);
	return NULL;
}
