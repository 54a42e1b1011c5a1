/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two endpoints of one process, each in a bundle of its own, that know each other as 0.
 *
 * They are on the loopback; or, for AF_XDP, which needs a wire, each in a network namespace:
 * AM_TEST_PLACES is "NAMESPACE ADDRESS NAMESPACE ADDRESS" then (tests/e2e/am-xdp.sh).
 */
#ifndef TESTS_AM_PAIR_H
#define TESTS_AM_PAIR_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "am/bundle.h"
#include "base/clock.h"
#include "include/warp/amudp.h"

#define PAIR_TAG 0x5A5Au
#define PAIR_SEGMENT (4u << 20)

struct pair {
	eb_t eb[2];
	ep_t ep[2];
	en_t name[2];
};

/* What is made from here on stands where this end does; the address it has there. */
static inline in_addr_t pair_place(int end)
{
	const char *places = getenv("AM_TEST_PLACES");
	char name[2][64], address[2][64], path[128];
	int fd;

	if (!places)
		return htonl(INADDR_LOOPBACK);
	cr_assert_eq(
		sscanf(places, "%63s %63s %63s %63s", name[0], address[0], name[1], address[1]), 4);
	snprintf(path, sizeof(path), "/run/netns/%s", name[end]);
	fd = open(path, O_RDONLY);
	cr_assert_eq(setns(fd, CLONE_NEWNET), 0, "%s: %s", path, strerror(errno));
	close(fd);
	return inet_addr(address[end]);
}

static inline void pair_endpoint(struct pair *p, int end)
{
	in_addr_t place = pair_place(end);

	AMUDP_SetUDPInterface(place);
	cr_assert_eq(AM_AllocateEndpoint(p->eb[end], &p->ep[end], &p->name[end]), AM_OK);
	cr_assert_str_eq(AMUDP_GetNic(p->ep[end]), getenv("AM_TEST_PLACES") ? "xdp" : "udp");
	cr_assert_eq(p->name[end].sin_addr.s_addr, place);
}

static inline void pair_equip(ep_t ep)
{
	cr_assert_eq(AM_SetTag(ep, PAIR_TAG), AM_OK);
	cr_assert_eq(AM_SetSeg(ep, calloc(1, PAIR_SEGMENT), PAIR_SEGMENT), AM_OK);
}

static inline void pair_open(struct pair *p, int mode)
{
	int i;

	cr_assert_eq(AM_Init(), AM_OK);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(AM_AllocateBundle(mode, &p->eb[i]), AM_OK);
		pair_endpoint(p, i);
		pair_equip(p->ep[i]);
	}
}

static inline void pair_map(struct pair *p, int depth)
{
	int i;

	for (i = 0; i < 2; i++) {
		pair_place(i); /* a peer's path is asked for there */
		cr_assert_eq(AM_Map(p->ep[i], 0, p->name[!i], PAIR_TAG), AM_OK);
		cr_assert_eq(AM_SetExpectedResources(p->ep[i], 1, depth), AM_OK);
	}
}

static inline void pair_poll(struct pair *p)
{
	AM_Poll(p->eb[1]);
	AM_Poll(p->eb[0]);
}

/* The second endpoint is gone, with what it had. */
static inline void pair_drop(struct pair *p)
{
	void *segment;
	uintptr_t len;

	AM_GetSeg(p->ep[1], &segment, &len);
	AM_FreeEndpoint(p->ep[1]);
	free(segment);
}

/* Polls both until the condition holds; a test that never gets there fails. */
#define pair_until(p, condition)                                                     \
	do {                                                                         \
		uint64_t pair_end = base_now() + 10 * BASE_NS_PER_S;                 \
		while (!(condition)) {                                               \
			pair_poll(p);                                                \
			cr_assert_lt(base_now(), pair_end, "never: %s", #condition); \
		}                                                                    \
	} while (0)

static inline void pair_close(struct pair *p)
{
	void *segment;
	uintptr_t len;
	int i;

	for (i = 0; i < 2; i++) {
		AM_GetSeg(p->ep[i], &segment, &len);
		free(segment);
	}
	cr_assert_eq(AM_Terminate(), AM_OK);
}

#endif
